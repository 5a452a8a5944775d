package elastic

import (
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// collapse is one search being collapsed, of a request of its own or of a multi-search.
type collapse struct {
	d      Dialect
	q      *query
	client *query // as the client wrote it
	page   rerank.Page
	pager  *rerank.Pager
	judge  *adapters.Judge
	rules  adapters.Rules
	show   adapters.Show
	scope  adapters.Scope

	deciding []adapters.Deciding // the fields extracted beside the sketch
	own      texts               // how the sketched texts come in the client's own reading
	numbered bool                // hits are told by their sequence numbers
	named    bool                // that can't be
	apart    bool                // what is judged can't be read in the client's own reading
	picks    bool                // sources may be picked; all but the page's hits then comes with the first sketches
	scatters bool                // the page's hits can stand anywhere in the window
	alone    bool                // hits told by their sequence numbers are all of one shard

	span      rerank.Span     // what was asked last
	fetch     fetch           // how its sources were asked for
	texts     bool            // readings bring the sketched texts too, for hits that lack a sketch
	judged    bool            // the sketches of the reading asked last are looked at
	read      sources         // the last reading whose sketches were looked at
	full      sources         // the last reading with sources
	baseReply *adapters.Reply // the first that holds everything but the page's hits
	base      frame           // it, around its hits
	total     int             // the engine's count, -1 where it gave none
	listTotal int             // that of the list that is collapsed
	lowest    bool            // the engine says that there may be more
	lacking   int             // hits without a sketch, of the longest reading
	empty     bool            // the page holds nothing; base is all that lacks
	plain     bool            // the client's own search was asked, whose reply is the answer
	hitBytes  int             // how long the hits of the last reading with sources are, in the mean; 0 where the client wants but a part of them
	rounds    int             // how often the engine was asked
	coding    []string        // the content coding of its last reply with sources
	longer    bool            // the list is one of more neighbours than the client's own
	beside    bool            // of neighbours, hits elsewhere in the reply show what the client's own reading does
	near      *neighbours     // until it is settled which list is collapsed; nil for most searches
	most      int             // of more neighbours, how many the client's own list holds at most; 0 for any number
	uncounted *uncounted      // until it is known how long the client's own list is
	late      func() bool     // says that the time for the search is over; nil if there is all the time
	ownPage   *ownPage        // once a reading held it
}

// newCollapse returns nil if the search is not understood.
func newCollapse(d Dialect, q *query, p adapters.Plan, scope adapters.Scope) *collapse {
	near, pinned, err := newNeighbours(q, scope.VectorWindow)
	if err != nil {
		return nil
	}
	c := &collapse{
		d: d, q: pinned, client: q, rules: p.Rules, judge: adapters.NewJudge(p.Rules, q.controls), show: scope.Show(q.controls),
		scope: scope, total: -1, listTotal: -1, near: near, deciding: decidingOf(scope.Deciding), late: p.Late,
	}
	c.judge.Late = p.Late
	c.page = p.Page(q.from, q.size, scope, q.controls, q.limit)
	c.beside = near != nil && q.inherits()
	c.own, c.apart = q.texts(c.fields()), d.apart(q, c.deciding)
	c.begin(scope.Rate)
	c.readTexts(scope.Lacking)
	return c
}

// readTexts begins the page, with the texts of hits read beside their sketches or not. Where it is not certain which of them the
// client sees, they are read in a reading of their own: asked for in the client's, they could not be told from what the
// client asked for.
func (c *collapse) readTexts(texts bool) {
	c.texts = texts
	c.page.SketchFirst = c.apart || c.show.DryRun || texts && !c.own.known
	if c.near != nil && !c.near.first {
		// As far as the page goes at least: where the client's own list ends is to be seen.
		c.page.First, c.page.SketchFirst = max(c.near.ranks, c.q.from+c.q.size), c.page.SketchFirst || c.near.mixed
	}
	window, sources := c.page.Whole || c.page.Transitive, c.show.Expand == adapters.ExpandSource
	// Else the page's and those folded into it are read when it is known which they are.
	c.page.HitBytes = 0
	if c.weighs() && !texts {
		c.page.HitBytes = c.scope.HitBytes
	}
	c.scatters = window || sources
	c.page.Sources = sources && !window && c.page.From == 0 && !c.page.SketchFirst
	if c.baseReply == nil {
		c.picks = c.near == nil && c.q.picks()
	}
	c.pager, c.numbered = rerank.NewPager(c.page), c.numbers()
}

// baseInSketch reports whether a reading of sketches alone asks for all that stands beside the hits.
func (c *collapse) baseInSketch() bool {
	return (c.near != nil || c.picks) && !c.beside && !c.show.DryRun
}

// basic reports whether the reading asked last can bring all that stands beside the hits.
func (c *collapse) basic() bool {
	return c.empty || !(c.beside && c.longer) && (!c.span.SketchOnly || c.baseInSketch())
}

// next returns the body to ask, with the URL parameters that it makes void, or false when the page is settled.
func (c *collapse) next() (body []byte, void []string, more bool, err error) {
	switch {
	case c.plain:
		return nil, nil, false, nil
	case c.uncounted != nil && c.struck():
		return nil, nil, false, adapters.ErrLate
	case c.uncounted != nil:
		body, void, err = c.askCount()
		return body, void, true, err
	}
	c.span, more = c.pager.Next()
	if !more || c.show.DryRun && c.span.Ranks != nil {
		if ready, err := c.ended(); ready || err != nil {
			return nil, nil, false, err
		}
		if c.struck() {
			return nil, nil, false, adapters.ErrLate
		}
		if c.rounds++; c.show.DryRun {
			c.plain = true
			return c.client.body, []string{"filter_path"}, true, nil
		}
		c.rounds--
		c.empty, c.span = true, rerank.Span{From: c.q.from, To: c.q.from + c.q.size}
	}
	if c.struck() {
		return nil, nil, false, adapters.ErrLate
	}
	c.judged = !c.empty && c.pager.Judged(c.span)
	c.rounds++
	q := c.q
	if c.empty && c.longer {
		q = c.client
	}
	body, void, err = q.ask(c.reading())
	return body, void, true, err
}

// ended reports whether all is at hand for the answer when the page is settled.
func (c *collapse) ended() (ready bool, err error) {
	if _, more := c.pager.Next(); !more {
		if _, err := c.pager.Ranks(); err != nil {
			return false, err
		}
		if c.q.limit < maxResultWindow && c.pager.Stats().Limited {
			return false, adapters.Alone{Reason: "rescore", Searched: true}
		}
	}
	return c.baseReply != nil && !c.show.DryRun, nil
}

// reading returns how to read the span.
func (c *collapse) reading() reading {
	r := reading{
		from: c.span.From, size: c.span.To - c.span.From, sketchOnly: c.span.SketchOnly,
		settled: c.baseReply != nil || !c.basic(),
	}
	r.numbered, r.uncounted = c.numbered, r.settled && !c.totals() && c.q.picks()
	if r.judged = c.judged; r.judged {
		r.deciding = c.deciding
	}
	c.fetch = fetch{from: r.from, to: c.span.To}
	switch {
	case c.texts && r.sketchOnly:
		r.texts = c.fields()
	case c.texts && c.judged:
		r.source = c.own.filter
	}
	if c.span.Ranks != nil {
		c.fetch = c.fetchFor(c.span, c.foldedBehind(c.span.Ranks))
		r.from, r.size = c.fetch.from, c.fetch.to-c.fetch.from
		if c.fetch.picked {
			r.from, r.size, r.only = 0, len(c.fetch.ranks), c.documents(c.fetch.ranks)
		}
	}
	return r
}

// totals reports whether the engine's count is wanted of the reading asked last, whatever stands beside its hits.
func (c *collapse) totals() bool {
	return c.near != nil || c.longer || c.judged && (c.show.Collapsed || c.show.DryRun)
}

// foldedBehind returns the ranks folded into those of the page, if they are to be shown with their sources.
func (c *collapse) foldedBehind(page []int) (ranks []int) {
	if c.show.Expand == adapters.ExpandSource {
		for _, g := range c.pager.Groups() {
			if slices.Contains(page, g.Representative) {
				ranks = append(ranks, g.Folded...)
			}
		}
	}
	return ranks
}

// weighs reports whether it matters how long the hits are: where they come with their whole source, and need not.
func (c *collapse) weighs() bool { return c.q.whole && c.near == nil && c.q.picks() && c.q.narrows() }

// weigh notes how long the hits of the reading asked last are, if they come as the client wants them.
func (c *collapse) weigh(list []hit) {
	if c.span.SketchOnly || len(list) == 0 || !c.weighs() {
		return
	}
	c.hitBytes = 0
	for i := range list {
		c.hitBytes += len(list[i].raw)
	}
	c.hitBytes /= len(list)
}

// fields returns the sketched fields of the rules that compute, of those that match behind the target.
func (c *collapse) fields() []string {
	fields := slices.Clone(c.scope.Texts)
	slices.Sort(fields)
	return slices.Compact(fields)
}

// take reads the reply to what next returned.
func (c *collapse) take(reply *adapters.Reply) error {
	switch {
	case c.plain:
		c.baseReply, c.coding = reply, reply.Header["Content-Encoding"]
		return nil
	case c.uncounted != nil:
		return c.takeCount(reply)
	}
	l, err := readListing(reply.Body, c.deciding)
	if err != nil {
		return err
	}
	if !c.span.SketchOnly {
		c.coding = reply.Header["Content-Encoding"]
	}
	c.weigh(l.hits)
	if !c.fetch.picked {
		l.hits = c.q.cut(l.hits, c.fetch.from)
	}
	c.keep(reply, l.hits)
	hits, err := c.comparable(l.hits)
	if c.name(nil, err) {
		return nil
	} else if err != nil {
		return err
	}
	list := rawOf(l.hits)
	if c.judged {
		c.read, c.listTotal, c.lowest = sources{list: list, texts: c.atHand()}, l.total, l.lowest
		if c.span.SketchOnly && c.show.Expand == adapters.ExpandOff && !c.show.DryRun && !c.q.inPIT() {
			c.read.list = nil // no one looks at them any more
		}
	}
	if c.baseReply == nil && c.basic() {
		c.baseReply, c.base, c.total = reply, l.frame, l.total
	}
	switch {
	case c.empty:
	case c.judge.Unread > 0 && c.texts:
		return errMoved // read again with its sources, the list does not show the texts that it did before
	case c.judge.Unread > 0:
		c.readTexts(true)
	case c.judged && !c.span.SketchOnly && c.apart:
		return errMoved // as above, what decides
	case c.near != nil && c.settle(reply, l.total, hits):
	case c.span.Ranks != nil:
		c.takeSources(list, hits)
	default:
		if !c.span.SketchOnly {
			c.full = c.read
		}
		c.pager.Take(c.span, hits)
		c.name(reply.Body, nil)
	}
	return nil
}

// comparable returns what is compared of the hits, and counts those that lack a sketch.
func (c *collapse) comparable(list []hit) ([]rerank.Hit, error) {
	c.judge.Reset()
	hits, err := c.judgeHits(list)
	if err != nil {
		return nil, err
	}
	if c.judged && c.judge.Lacking > 0 && c.struck() {
		return nil, adapters.ErrLate
	}
	c.lacking = max(c.lacking, c.judge.Lacking)
	return hits, nil
}

// judgeHits returns what is compared of the hits of the reading asked last.
func (c *collapse) judgeHits(list []hit) ([]rerank.Hit, error) {
	hits := make([]rerank.Hit, len(list))
	var told teller
	shown := &shownHit{atHand: c.atHand()}
	for i := range list {
		if i%adapters.BetweenLooks == 0 && c.judged && c.struck() {
			return nil, adapters.ErrLate
		}
		at := &list[i]
		index, key, err := told.of(c, at)
		switch {
		case err != nil:
			return nil, err
		case !c.judged:
			hits[i] = rerank.Hit{ID: key}
			continue
		}
		shown.hit = at
		if len(c.deciding) > 0 {
			shown.extracted, _ = adapters.Members(at.at(at.fields)) // there are none where none has a value
		}
		hits[i] = c.judge.Hit(adapters.Seen{Index: index, Key: key, Stored: sketchIn(at.at(at.sketch)), Shown: shown})
	}
	return hits, nil
}

// shownHit is what a reading shows of the document of a hit.
type shownHit struct {
	extracted
	hit    *hit
	atHand bool
}

// Document implements adapters.Shown.
func (s *shownHit) Document(*adapters.Rule) []byte {
	if !s.atHand {
		return nil
	}
	return orEmpty(s.hit.at(s.hit.source))
}

var errMoved = errors.New("the list moved between two readings")

// atHand reports whether the reading asked last shows the texts of its hits.
func (c *collapse) atHand() bool {
	if c.span.SketchOnly {
		return c.texts
	}
	return c.own.known && (c.own.filter == nil || c.texts && c.judged)
}

package elastic

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

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
	picks    bool                // sources may be picked by id; all but the page's hits then comes with the first sketches

	span      rerank.Span     // what was asked last
	fetch     fetch           // how its sources were asked for
	texts     bool            // readings bring the sketched texts too, for hits that lack a sketch
	judged    bool            // the sketches of the reading asked last are looked at
	read      sources         // the last reading whose sketches were looked at
	full      sources         // the last reading with sources
	baseReply *adapters.Reply // the first that holds everything but the page's hits
	total     int             // the engine's count, -1 where it gave none
	listTotal int             // that of the list that is collapsed
	lowest    bool            // the engine says that there may be more
	lacking   int             // hits without a sketch, of the longest reading
	empty     bool            // the page holds nothing; base is all that lacks
	plain     bool            // the client's own search was asked, whose reply is the answer
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
	c.page.Sources = sources && !window && c.page.From == 0 && !c.page.SketchFirst
	if c.baseReply == nil {
		c.picks = c.near == nil && c.q.picks() && (window || sources)
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
	r.numbered = c.numbered
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
	list, total, lowest, err := readHits(reply.Body, c.deciding)
	if err != nil {
		return err
	}
	if !c.span.SketchOnly {
		c.coding = reply.Header["Content-Encoding"]
	}
	if !c.fetch.picked {
		list = c.q.cut(list, c.fetch.from)
	}
	c.keep(reply, list)
	hits, err := c.comparable(list)
	if c.name(nil, err) {
		return nil
	} else if err != nil {
		return err
	}
	if c.judged {
		c.read, c.listTotal, c.lowest = sources{list: list, texts: c.atHand()}, total, lowest
		if c.span.SketchOnly && c.show.Expand == adapters.ExpandOff && !c.show.DryRun {
			c.read.list = nil // no one looks at them any more
		}
	}
	if c.baseReply == nil && c.basic() {
		c.baseReply, c.total = reply, total
	}
	switch {
	case c.empty:
	case c.judge.Unread > 0 && c.texts:
		return errMoved // read again with its sources, the list does not show the texts that it did before
	case c.judge.Unread > 0:
		c.readTexts(true)
	case c.judged && !c.span.SketchOnly && c.apart:
		return errMoved // as above, what decides
	case c.near != nil && c.settle(reply, total, hits):
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
func (c *collapse) comparable(list [][]byte) ([]rerank.Hit, error) {
	c.judge.Reset()
	hits := make([]rerank.Hit, len(list))
	var err error
	for i, raw := range list {
		if i%adapters.BetweenLooks == 0 && c.judged && c.struck() {
			return nil, adapters.ErrLate
		}
		if hits[i], err = c.hit(raw); err != nil {
			return nil, err
		}
	}
	if c.judged && c.judge.Lacking > 0 && c.struck() {
		return nil, adapters.ErrLate
	}
	c.lacking = max(c.lacking, c.judge.Lacking)
	return hits, nil
}

var errMoved = errors.New("the list moved between two readings")

// hitsOf returns the hits of a reply as they stand, and the engine's count or -1.
func hitsOf(reply []byte) (list [][]byte, total int, err error) {
	list, total, _, err = readHits(reply, nil)
	return list, total, err
}

// readHits returns the hits of a reply as they stand, and the engine's count or -1; lowest says that there may be more. A
// shard that failed leaves its hits out: where that can be for what we asked, be it our field, a deciding one, or more ranks
// than an index of several grants, that is ErrWidened.
func readHits(reply []byte, deciding []adapters.Deciding) (list [][]byte, total int, lowest bool, err error) {
	root, err := adapters.Members(reply)
	if err != nil {
		return nil, 0, false, err
	}
	if failedForUs(adapters.Get(root, "_shards"), deciding) {
		return nil, 0, false, adapters.ErrWidened
	}
	outer, err := adapters.Members(adapters.Get(root, "hits"))
	if err != nil {
		return nil, 0, false, err
	}
	count := adapters.Get(outer, "total")
	if members, err := adapters.Members(count); err == nil {
		count, lowest = adapters.Get(members, "value"), string(adapters.Get(members, "relation")) == `"gte"`
	}
	if total, err = strconv.Atoi(string(count)); err != nil {
		total = -1
	}
	list, err = adapters.Elements(adapters.Get(outer, "hits"))
	return list, total, lowest, err
}

// ours are words in the failures of shards that what we ask can be the reason of: limits of an index on ranks and extracted
// fields (index.max_result_window and the like), our field mapped otherwise, memory and load. A shard that is not there, or
// can't run the client's query, fails for the client's own search too.
var ours = [][]byte{
	[]byte("[index.max_"), []byte(adapters.SketchField), []byte("circuit_breaking_exception"),
	[]byte("rejected_execution_exception"),
}

// failedForUs reports whether a shard failed that may answer the client's own search.
func failedForUs(shards []byte, deciding []adapters.Deciding) bool {
	members, err := adapters.Members(shards)
	if err != nil {
		return false
	}
	if failed := adapters.Get(members, "failed"); failed == nil || string(failed) == "0" {
		return false
	}
	failures, err := adapters.Elements(adapters.Get(members, "failures"))
	if err != nil {
		return true
	}
	return slices.ContainsFunc(failures, func(failure []byte) bool {
		return blames(failure, deciding) || slices.ContainsFunc(ours, func(word []byte) bool { return bytes.Contains(failure, word) })
	})
}

func (c *collapse) hit(raw []byte) (rerank.Hit, error) {
	members, err := adapters.Members(raw)
	if err != nil {
		return rerank.Hit{}, err
	}
	index, ok := adapters.Text(adapters.Get(members, "_index"))
	if !ok {
		return rerank.Hit{}, errors.New("a hit without _index")
	}
	id, err := c.idOf(members)
	if err != nil {
		return rerank.Hit{}, err
	}
	if !c.judged {
		return adapters.Unjudged(index, id), nil
	}
	extracted, _ := adapters.Members(adapters.Get(members, "fields")) // there are none where none has a value
	seen := adapters.Seen{Index: c.d.ruleName(index), ID: id, Stored: storedSketch(extracted)}
	if len(c.deciding) > 0 {
		seen.Values = valuesIn(extracted)
	}
	seen.Document = func(*adapters.Rule) []byte {
		if !c.atHand() {
			return nil
		}
		return sourceIn(members)
	}
	hit := c.judge.Hit(seen)
	hit.ID = adapters.Unjudged(index, id).ID // two indices can stand behind one name
	return hit, nil
}

// atHand reports whether the reading asked last shows the texts of its hits.
func (c *collapse) atHand() bool {
	if c.span.SketchOnly {
		return c.texts
	}
	return c.own.known && (c.own.filter == nil || c.texts && c.judged)
}

// sourceIn returns a hit's source, of which there is none where no field of it was let through.
func sourceIn(hit []adapters.Member) []byte {
	if source := adapters.Get(hit, "_source"); source != nil {
		return source
	}
	return []byte("{}")
}

// storedSketch returns our field's value among the fields extracted from a hit, or nothing. OpenSearch gives it once for each
// time that it was asked for, be it by a pattern of the client's.
func storedSketch(fields []adapters.Member) string {
	values, err := adapters.Elements(adapters.Get(fields, adapters.SketchField))
	if err != nil || len(values) == 0 {
		return ""
	}
	for _, value := range values[1:] {
		if !bytes.Equal(value, values[0]) {
			return ""
		}
	}
	text, _ := adapters.Text(values[0])
	return padded(text)
}

// padded returns base64 with the padding that OpenSearch leaves out when it shows a binary field.
func padded(text string) string {
	if missing := -len(text) & 3; missing < 3 && !strings.HasSuffix(text, "=") {
		return text + "=="[:missing]
	}
	return text
}

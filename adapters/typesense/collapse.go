package typesense

import (
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// collapse is one search being collapsed.
type collapse struct {
	q     *query
	plan  adapters.Plan
	scope adapters.Scope
	show  adapters.Show
	page  rerank.Page
	pager *rerank.Pager
	judge *adapters.Judge
	rules adapters.Rules

	span   rerank.Span // what is being read
	asked  []ask       // for the span, in the order of the ranks and one content after the other
	main   []hit       // the span's hits in the client's content, or as sketches
	beside []hit       // what was read of them beside that, nil for nothing
	lacks  []int       // those of their ranks whose texts are still to be read, nil for none
	texts  bool        // texts are read along wherever the client's own content may hide them
	along  bool        // they are, of however many ranks
	full   []hit       // of the last reading in the client's content
	base   *result     // the first result in that content: it holds everything but the page's hits
	first  *result     // the first result of the reading at hand
	found  int         // the engine's total
	index  string      // the collection's real name
	rounds int         // how often the engine was asked
	most   int         // the size of the largest page that the engine grants
	atOnce int         // how many searches can be asked in one request

	ownPage *ownPage // once a reading held it

	sights []sight // of each rank judged, where reasons are given
}

func newCollapse(q *query, p adapters.Plan, scope adapters.Scope) *collapse {
	c := &collapse{
		q: q, plan: p, scope: scope, show: scope.Show(q.controls), rules: p.Rules, judge: adapters.NewJudge(p.Rules, q.controls),
		texts: scope.Lacking, most: maxPerPage, atOnce: maxSearches,
	}
	c.judge.Doubting, c.judge.Late = true, p.Late // a backfill's sketch can be of a former text
	c.begin()
	return c
}

// begin starts the page anew.
func (c *collapse) begin() {
	c.page = c.plan.Page(c.q.first, c.q.perPage, c.scope, c.q.controls, c.limit())
	if c.show.DryRun { // the client's own search is the answer
		c.page.SketchFirst, c.page.Sources = true, false
	}
	if c.q.near != nil {
		c.widen()
	}
	c.pager = rerank.NewPager(c.page)
}

// limit returns how many ranks can be read.
func (c *collapse) limit() int {
	if size := c.fixedSize(); size > 0 {
		return c.q.limit / size * size
	}
	return c.q.limit
}

// fixedSize is the size of every page that can be read, 0 if any can.
func (c *collapse) fixedSize() int {
	if _, fixed := c.q.fixed["per_page"]; fixed {
		return c.q.perPage
	}
	return 0
}

// sizes returns the sizes of the pages that can be read.
func (c *collapse) sizes() sizes {
	if size := c.fixedSize(); size > 0 {
		return sizes{size, size}
	}
	return sizes{1, c.most}
}

// narrow begins anew with smaller pages where the engine says that it grants no larger ones: servers can be told so.
func (c *collapse) narrow(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return false
	}
	most := r.mostPerPage()
	if most < c.q.perPage || most >= c.most { // the client's own page is too large for it
		return false
	}
	c.most, c.lacks = most, nil
	c.begin()
	return true
}

// next returns what to ask, nothing when the page is settled.
func (c *collapse) next() ([]ask, error) {
	c.asked = nil
	if c.lacks != nil && c.struck() {
		return nil, adapters.ErrLate
	}
	if c.lacks != nil {
		c.add(texts)
		c.rounds++
		return c.asked, nil
	}
	span, more := c.pager.Next()
	if known := !more || span.Ranks != nil; known && !c.decide() {
		c.begin()
		span, more = c.pager.Next()
	}
	if c.show.DryRun && span.Ranks != nil { // no hit of the page is shown
		more = false
	}
	if _, err := c.pager.Ranks(); !more && err != nil {
		return nil, err
	}
	switch c.lead(); {
	case c.q.near != nil && c.q.near.unfolded:
		return nil, nil
	case more:
		c.span, c.main, c.beside = span, nil, nil
		c.read()
	case c.base == nil && len(c.asked) == 0: // an empty page, found by sketches alone
		c.asked = []ask{{content: frame, page: c.q.page, perPage: c.q.perPage, facets: true}}
	}
	if len(c.asked) > 0 {
		if c.struck() {
			return nil, adapters.ErrLate
		}
		c.rounds++
	}
	return c.asked, nil
}

// fields returns the fields that are read whatever the client asks for.
func (c *collapse) fields() fields {
	return fields{texts: textFields(c.rules), deciding: decidingFields(c.scope.Deciding)}
}

// textsAlong is up to how many ranks texts are read along with the sketches, where some are known to lack. Of more ranks those are read
// that turn out to lack a sketch: some documents never have one.
const textsAlong = 100

// read adds the asks for the span.
func (c *collapse) read() {
	beside := sketches
	if c.texts && (!c.span.SketchOnly || c.span.To <= textsAlong || c.along) {
		beside = texts
	}
	switch {
	case c.q.hidesID(): // no other content could be told to be of the same hits
		c.add(full)
		return
	case c.span.SketchOnly:
		c.add(beside)
		return
	}
	c.add(full)
	// Whether the client's own hits show our field can't be told under a preset, so that it is read beside them; and so is whatever else
	// is looked at and may not be shown in them.
	needed := c.fields()
	if c.q.preset || c.pager.Judged(c.span) && (c.texts && !c.q.seesText(needed.texts) || !c.q.seesText(needed.deciding)) {
		c.add(beside)
	}
}

// add adds the asks for the span in a content.
func (c *collapse) add(content content) {
	pages := c.pages()
	for i, page := range pages {
		facets := content == full && i == 0 && c.base == nil && !c.leads() && !c.span.SketchOnly
		c.asked = append(c.asked, ask{content: content, page: page.page, perPage: page.size, facets: facets})
	}
}

// pages returns pages that hold what is wanted of the span. No page of neighbours ends behind the number that is looked for, if the
// span does not: the engine would look for more, and might find others.
func (c *collapse) pages() []slice {
	limit := c.limit()
	if near := c.q.near; near != nil && c.span.To <= near.k {
		limit = min(near.k, limit)
	}
	if ranks := c.wanted(); ranks != nil {
		return scatter(ranks, c.sizes(), limit, c.atOnce)
	}
	return cover(c.span.From, c.span.To, c.sizes(), limit)
}

// wanted returns the ranks that are wanted of the span, nil for all.
func (c *collapse) wanted() []int {
	if c.lacks != nil {
		return c.lacks
	}
	return c.span.Ranks
}

// take reads the results of what next returned.
func (c *collapse) take(results []*result) error {
	asked := c.asked
	if len(asked) > 0 && (asked[0].content == asSent || asked[0].own) {
		if done, err := c.takeOwn(results[0], asked[0]); done || err != nil {
			return err
		}
		if results, asked = results[1:], asked[1:]; len(results) == 0 {
			return nil
		}
	}
	for i, r := range results {
		err := r.check(asked[i])
		if c.narrow(err) {
			return nil
		}
		if err != nil {
			return c.refused(err)
		}
		if c.q.near == nil && r.near() {
			return c.refused(adapters.Alone{Reason: "vector", Searched: true}) // newer engines make vectors of texts by themselves
		}
	}
	c.index = results[0].collection
	if !c.leads() {
		c.found = results[0].found
	}
	if near := c.q.near; near != nil && c.pager.Judged(c.span) {
		near.all = results[0].found
		near.cut = near.all == max(near.k, asked[0].page*asked[0].perPage)
	}
	if asked[0].content == frame {
		c.base = results[0]
		return nil
	}
	return c.sort(results, asked)
}

// sort joins the results of each content to a reading.
func (c *collapse) sort(results []*result, asked []ask) error {
	for i := 0; i < len(results); {
		n := i
		for n < len(results) && asked[n].content == asked[i].content {
			n++
		}
		join := c.join
		if c.wanted() != nil {
			join = c.pick
		}
		list, err := join(results[i:n], asked[i:n])
		if err != nil {
			return err
		}
		switch {
		case c.lacks != nil:
			return c.filled(list)
		case asked[i].content == full:
			c.main, c.first = list, results[i]
			c.keep(list, c.first)
		case c.span.SketchOnly:
			c.main, c.beside = list, list
		default:
			c.beside = list
		}
		i = n
	}
	if asked[len(asked)-1].content == texts {
		return c.judged(c.beside)
	}
	return c.judged(nil)
}

// join returns the hits of the span from pages in order, which must show the same hits where they overlap, and none twice.
func (c *collapse) join(results []*result, asked []ask) ([]hit, error) {
	start := (asked[0].page - 1) * asked[0].perPage
	most := 0
	for _, r := range results {
		most += len(r.hits)
	}
	list, ended := make([]hit, 0, most), false
	ranks := make(map[string]int, most)
	for i, r := range results {
		from := (asked[i].page-1)*asked[i].perPage - start
		if ended && len(r.hits) > 0 && from+len(r.hits) > len(list) || r.collection != c.index {
			return nil, errMoved
		}
		ended = ended || len(r.hits) < asked[i].perPage
		for at, h := range r.hits {
			rank, seen := ranks[h.id]
			if from+at < len(list) && list[from+at].id != h.id || h.id != "" && seen && rank != from+at {
				return nil, errMoved
			}
			if ranks[h.id] = from + at; from+at == len(list) {
				list = append(list, h)
			}
		}
	}
	skip := c.span.From - start
	return list[min(skip, len(list)):min(skip+c.span.To-c.span.From, len(list))], nil
}

// pick returns the hits of the ranks that are wanted, in their order, up to where the list ends.
func (c *collapse) pick(results []*result, asked []ask) ([]hit, error) {
	var list []hit
	for _, rank := range c.wanted() {
		i := slices.IndexFunc(asked, func(a ask) bool { return rank >= (a.page-1)*a.perPage && rank < a.page*a.perPage })
		if i < 0 || results[i].collection != c.index {
			return nil, errMoved
		}
		at := rank - (asked[i].page-1)*asked[i].perPage
		if at >= len(results[i].hits) {
			break
		}
		list = append(list, results[i].hits[at])
	}
	return list, nil
}

var errMoved = errors.New("the list moved while it was read")

package typesense

import (
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// collapse is one search being collapsed.
type collapse struct {
	q     *query
	plan  adapters.Plan
	scope adapters.Scope
	page  rerank.Page
	pager *rerank.Pager
	judge *adapters.Judge
	rules adapters.Rules

	span   rerank.Span // what is being read
	asked  []ask       // for the span, in the order of the ranks and one content after the other
	main   []hit       // the span's hits in the client's content, or as sketches
	again  bool        // the span's texts are still to be read
	texts  bool        // texts are read along wherever the client's own content may hide them
	full   []hit       // of the last reading in the client's content
	base   []byte      // the first result in that content: it holds everything but the page's hits
	first  []byte      // the first result of the reading at hand
	found  int         // the engine's total
	index  string      // the collection's real name
	rounds int         // how often the engine was asked
	most   int         // the size of the largest page that the engine grants
}

func newCollapse(q *query, p adapters.Plan, scope adapters.Scope) *collapse {
	c := &collapse{
		q: q, plan: p, scope: scope, rules: p.Rules, judge: adapters.NewJudge(p.Rules, q.controls),
		texts: scope.Lacking, most: maxPerPage,
	}
	c.judge.Doubting = true // a backfill's sketch can be of a former text
	c.begin()
	return c
}

// begin starts the page anew.
func (c *collapse) begin() {
	c.page = c.plan.Page(c.q.first, c.q.perPage, c.scope, c.q.controls, c.limit())
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
	c.most, c.again = most, false
	c.begin()
	return true
}

// next returns what to ask, nothing when the page is settled.
func (c *collapse) next() ([]ask, error) {
	c.asked = nil
	if c.again {
		c.add(texts)
	} else if c.unfolded() {
		return nil, nil
	} else if span, more := c.pager.Next(); more {
		c.span, c.main = span, nil
		c.lead()
		c.read()
	} else if _, err := c.pager.Ranks(); err != nil {
		return nil, err
	} else if c.base == nil { // an empty page, found by sketches alone
		c.asked = []ask{{content: frame, page: c.q.page, perPage: c.q.perPage, facets: true}}
	}
	if len(c.asked) > 0 {
		c.rounds++
	}
	return c.asked, nil
}

// read adds the asks for the span.
func (c *collapse) read() {
	beside := sketches
	if c.texts {
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
	// Whether the client's own hits show our field can't be told under a preset, so that it is read beside them.
	if c.q.preset || c.texts && c.span.From == 0 && !c.q.seesText(textFields(c.rules)) {
		c.add(beside)
	}
}

// add adds the asks for the span in a content.
func (c *collapse) add(content content) {
	for i, page := range cover(c.span.From, c.span.To, c.sizes(), c.bound()) {
		facets := content == full && i == 0 && c.base == nil && !c.leads() && !c.span.SketchOnly
		c.asked = append(c.asked, ask{content: content, page: page.page, perPage: page.size, facets: facets})
	}
}

// take reads the results of what next returned.
func (c *collapse) take(raw [][]byte) error {
	asked := c.asked
	if len(asked) > 0 && (asked[0].content == asSent || asked[0].own) {
		if done, err := c.takeOwn(raw[0], asked[0]); done || err != nil {
			return err
		}
		raw, asked = raw[1:], asked[1:]
	}
	results := make([]*result, len(raw))
	for i := range raw {
		var err error
		if results[i], err = parseResult(raw[i], asked[i]); c.narrow(err) {
			return nil
		}
		if err != nil {
			return c.refused(err)
		}
		if c.q.near == nil && results[i].near() {
			return c.refused(adapters.Alone{Reason: "vector", Searched: true}) // newer engines make vectors of texts by themselves
		}
	}
	c.index = results[0].collection
	if !c.leads() {
		c.found = results[0].found
	}
	if asked[0].content == frame {
		c.base = results[0].raw
		return nil
	}
	return c.sort(results, asked)
}

// sort joins the results of each content to a reading.
func (c *collapse) sort(results []*result, asked []ask) error {
	var beside []hit
	for i := 0; i < len(results); {
		n := i
		for n < len(results) && asked[n].content == asked[i].content {
			n++
		}
		list, err := c.join(results[i:n], asked[i:n])
		if err != nil {
			return err
		}
		switch {
		case asked[i].content == full:
			c.main, c.first = list, results[i].raw
		case c.span.SketchOnly:
			c.main, beside = list, list
		default:
			beside = list
		}
		i = n
	}
	return c.judged(beside, asked[len(asked)-1].content == texts)
}

// join returns the hits of the span from pages in order, which must show the same hits where they overlap, and none twice.
func (c *collapse) join(results []*result, asked []ask) ([]hit, error) {
	start := (asked[0].page - 1) * asked[0].perPage
	list, ended := []hit{}, false
	ranks := map[string]int{}
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

var errMoved = errors.New("the list moved while it was read")

// judged judges the span's hits, with what was read beside them, and hands them to the pager; or, where texts lack that were not asked
// for, has them asked.
func (c *collapse) judged(beside []hit, withTexts bool) error {
	hits := make([]rerank.Hit, len(c.main))
	judge := c.judge
	if !c.pager.Judged(c.span) { // the page's own hits, of which the sketches are known
		judge = adapters.NewJudge(nil, adapters.Controls{})
	}
	if beside != nil && len(beside) != len(c.main) {
		return errMoved
	}
	rule := c.rules.For(c.index)
	readable := rule != nil && c.q.mayRead(rule.Fields)
	judge.Reset()
	for i, h := range c.main {
		if h.id == "" && !c.q.hidesID() {
			return c.refused(errors.New("a hit without id"))
		}
		stored := h.stored
		if beside != nil {
			if beside[i].id != h.id {
				return errMoved
			}
			stored = beside[i].stored
		}
		seen := adapters.Seen{Index: c.index, ID: h.identity(), Stored: stored}
		seen.Document = func(rule *adapters.Rule) []byte {
			switch {
			case !readable:
				return nil
			case withTexts && rule.Compute: // they are the texts of such rules alone
				return unflattened(beside[i].document)
			case c.span.SketchOnly && !c.q.hidesID() || !c.q.seesText(rule.Fields):
				return nil
			}
			return unflattened(h.document)
		}
		hits[i] = judge.Hit(seen)
		hits[i].Pinned = h.curated
	}
	if c.again = judge.Unread > 0 && !withTexts && readable && !c.q.hidesID(); c.again {
		c.texts = true
		return nil
	}
	if !c.span.SketchOnly {
		if c.full = c.main; c.base == nil {
			c.base = c.first
		}
	}
	c.pager.Take(c.span, hits)
	return nil
}

// identity tells whether two readings show the same hit. Where the id is hidden, it is all that is shown.
func (h hit) identity() string {
	if h.id == "" {
		return "\x00" + string(h.document)
	}
	return h.id
}

// result returns the result that the client gets, when next has returned nothing.
func (c *collapse) result() ([]byte, error) {
	list, err := c.shown()
	if err != nil {
		return nil, err
	}
	hits := make([][]byte, len(list))
	for i, h := range list {
		if hits[i], err = c.q.bare(h); err != nil {
			return nil, err
		}
	}
	return c.q.present(c.base, hits)
}

// shown returns the page's hits.
func (c *collapse) shown() ([]hit, error) {
	if c.unfolded() {
		return c.q.near.hits, nil
	}
	ranks, err := c.pager.Ranks()
	if err != nil {
		return nil, err
	}
	if c.q.near != nil {
		ranks = ranks[:min(len(ranks), max(c.q.near.length-c.page.From, 0))]
	}
	list := make([]hit, len(ranks))
	for i, rank := range ranks {
		at, ok := c.pager.At(rank)
		if !ok || at >= len(c.full) {
			return nil, errMoved
		}
		list[i] = c.full[at]
	}
	return list, nil
}

// outcome returns what was done.
func (c *collapse) outcome() adapters.Outcome {
	o := adapters.OutcomeOf(c.q.target, c.page, c.pager.Stats(), c.judge.Lacking, c.found)
	o.Rounds = c.rounds
	return o
}

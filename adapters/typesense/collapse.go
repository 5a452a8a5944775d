package typesense

import (
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// collapse is one search being collapsed.
type collapse struct {
	q     *query
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
}

func newCollapse(q *query, p adapters.Plan, scope adapters.Scope) *collapse {
	c := &collapse{q: q, rules: p.Rules, judge: adapters.NewJudge(p.Rules, q.controls), texts: scope.Lacking}
	c.page = p.Page((q.page-1)*q.perPage, q.perPage, scope, q.controls, 0)
	c.pager = rerank.NewPager(c.page)
	return c
}

// next returns what to ask, nothing when the page is settled.
func (c *collapse) next() ([]ask, error) {
	c.asked = nil
	if c.again {
		c.plan(texts)
	} else if span, more := c.pager.Next(); more {
		c.span, c.main = span, nil
		switch {
		case span.SketchOnly && c.texts:
			c.plan(texts)
		case span.SketchOnly:
			c.plan(sketches)
		default:
			c.plan(full)
			if c.texts && span.From == 0 && !c.q.seesText(textFields(c.rules)) {
				c.plan(texts)
			}
		}
	} else if _, err := c.pager.Ranks(); err != nil {
		return nil, err
	} else if c.base == nil { // an empty page, found by sketches alone
		c.asked = []ask{{content: frame, page: c.q.page, facets: true}}
	}
	if len(c.asked) > 0 {
		c.rounds++
	}
	return c.asked, nil
}

// plan adds the asks for the span in a content.
func (c *collapse) plan(content content) {
	first, last, perPage := pages(c.span.From, c.span.To)
	for page := first; page <= last; page++ {
		facets := content == full && page == first && c.base == nil
		c.asked = append(c.asked, ask{content: content, page: page, perPage: perPage, facets: facets})
	}
}

// take reads the results of what next returned.
func (c *collapse) take(raw [][]byte) error {
	results := make([]*result, len(raw))
	for i := range raw {
		var err error
		if results[i], err = parseResult(raw[i], c.asked[i]); err != nil {
			return err
		}
	}
	c.found, c.index = results[0].found, results[0].collection
	if c.asked[0].content == frame {
		c.base = results[0].raw
		return nil
	}
	var readings [2][]hit // the client's content or sketches; texts
	for i := 0; i < len(results); {
		n := i
		for n < len(results) && c.asked[n].content == c.asked[i].content {
			n++
		}
		list, err := c.join(results[i:n], c.asked[i])
		if err != nil {
			return err
		}
		if c.asked[i].content == texts {
			readings[1] = list
		} else {
			readings[0], c.first = list, results[i].raw
		}
		i = n
	}
	if c.main == nil {
		c.main = readings[0]
	}
	if c.span.SketchOnly && readings[1] != nil {
		c.main = readings[1]
	}
	return c.read(readings[1])
}

// join returns the hits of the span from pages in a row.
func (c *collapse) join(results []*result, first ask) ([]hit, error) {
	list, ended := []hit{}, false
	seen := map[string]bool{}
	for _, r := range results {
		if ended && len(r.hits) > 0 || r.collection != c.index {
			return nil, errMoved
		}
		ended = len(r.hits) < first.perPage
		for _, h := range r.hits {
			if len(results) > 1 && seen[h.id] {
				return nil, errMoved
			}
			seen[h.id] = true
		}
		list = append(list, r.hits...)
	}
	skip := c.span.From - (first.page-1)*first.perPage
	return list[min(skip, len(list)):min(skip+c.span.To-c.span.From, len(list))], nil
}

var errMoved = errors.New("the list moved while it was read")

// read judges the span's hits, with the texts beside them if they were asked for, and hands them to the pager; or, where texts lack that
// were not asked for, has them asked.
func (c *collapse) read(beside []hit) error {
	hits := make([]rerank.Hit, len(c.main))
	judge := c.judge
	if c.span.From > 0 { // the page's own hits, of which the sketches are known
		judge = adapters.NewJudge(nil, adapters.Controls{})
	}
	if beside != nil && len(beside) != len(c.main) {
		return errMoved
	}
	judge.Reset()
	for i, h := range c.main {
		if beside != nil && beside[i].id != h.id {
			return errMoved
		}
		hits[i] = judge.Hit(c.index, h.id, h.stored, func(rule *adapters.Rule) []byte {
			switch {
			case beside != nil:
				return unflattened(beside[i].document)
			case c.span.SketchOnly || !c.q.seesText(rule.Fields):
				return nil
			}
			return unflattened(h.document)
		})
	}
	if c.again = judge.Unread > 0 && beside == nil; c.again {
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

// result returns the result that the client gets, when next has returned nothing.
func (c *collapse) result() ([]byte, error) {
	ranks, err := c.pager.Ranks()
	if err != nil {
		return nil, err
	}
	hits := make([][]byte, len(ranks))
	for i, rank := range ranks {
		at := rank - c.pager.Full().From
		if at < 0 || at >= len(c.full) {
			return nil, errMoved
		}
		if hits[i], err = c.q.bare(c.full[at]); err != nil {
			return nil, err
		}
	}
	return c.q.present(c.base, hits)
}

// outcome returns what was done.
func (c *collapse) outcome() adapters.Outcome {
	o := adapters.OutcomeOf(c.q.target, c.page, c.pager.Stats(), c.judge.Lacking, c.found)
	o.Rounds = c.rounds
	return o
}

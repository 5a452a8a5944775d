package typesense

import (
	"fmt"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// Some searches are asked as the client means them, too, ahead of the first reading: those for nearest neighbours, whose total and facets
// follow from the page, those whose page only the reply tells, and those that are to be answered as they are (a dry run).

// settled is the error of a search that is left alone when its own answer is there.
type settled struct {
	reason string
	raw    []byte
}

// Error implements error.
func (s *settled) Error() string { return fmt.Sprintf("the search is left alone: %s", s.reason) }

// leads reports whether the client's own search is asked too.
func (c *collapse) leads() bool { return c.q.unseen() || c.q.near != nil || c.show.DryRun }

// lead adds the client's own search ahead of the first reading.
func (c *collapse) lead() {
	switch {
	case c.base != nil || !c.leads():
	case c.q.unseen() || c.show.DryRun:
		c.asked = append(c.asked, ask{content: asSent})
	default:
		c.asked = append(c.asked, ask{page: c.q.page, perPage: c.q.perPage, facets: true, own: true})
	}
}

// takeOwn reads the result of the client's own search. It is done with the round if what was read beside it was of no use.
func (c *collapse) takeOwn(r *result, a ask) (done bool, err error) {
	if err := r.check(a); err != nil {
		return false, err
	}
	c.base, c.found, c.index = r, r.found, r.collection
	if near := c.q.near; near != nil {
		near.hits, near.length = r.hits, r.found
		return false, nil
	}
	switch {
	case !c.q.unseen():
		return false, nil
	case r.grouped:
		return false, &settled{"grouped", r.raw}
	case r.perPage == 0:
		return false, &settled{"size_zero", r.raw}
	case r.perPage < 0 || r.first < 0 || r.perPage > maxPerPage:
		return false, &settled{c.q.inTheWay(), r.raw}
	case r.near():
		return false, &settled{"vector", r.raw}
	case r.first == c.q.first && r.perPage == c.q.perPage:
		return false, nil
	}
	c.q.first, c.q.perPage = r.first, r.perPage
	c.begin()
	return true, nil
}

// refused returns the error of a reading. Where the client's own answer is there already, it will do: what a preset holds can be in the
// way of all others.
func (c *collapse) refused(err error) error {
	if c.q.unseen() && c.base != nil {
		return &settled{c.q.inTheWay(), c.base.raw}
	}
	return err
}

// inTheWay is the reason where a parameter that makes the page unseen leaves the search alone.
func (q *query) inTheWay() string {
	if q.preset {
		return "preset"
	}
	return "offset"
}

// widen has the page cut from the list of as many neighbours on every page.
func (c *collapse) widen() {
	near := c.q.near
	near.k = max(c.scope.VectorWindow, near.own)
	if size := c.fixedSize(); size > 0 {
		near.k = (near.k + size - 1) / size * size
	}
	c.page.Window = min(c.page.Window, near.k)
	if c.page.Window == 0 { // there is nothing to know before the page is cut
		c.page.Whole, c.page.Transitive = false, false
	}
	near.within = c.q.first+c.q.perPage <= near.k && !near.flat
	if near.within {
		c.page.Limit = min(c.page.Limit, near.k)
	}
	if near.deep {
		c.page.First, c.page.SketchFirst = near.k, true
	}
}

// decide finds out, once the page is known, whether the client's own page of neighbours is the answer: it is where nothing in the longer
// list folds or is shown in another's place. It is false where more of that list has to be read.
func (c *collapse) decide() (decided bool) {
	near := c.q.near
	ranks, err := c.ranks()
	if near == nil || c.base == nil || c.show.DryRun || err != nil {
		return true
	}
	stats := c.pager.Stats()
	if stats.Folded > 0 || slices.ContainsFunc(c.pager.Groups(), func(g rerank.Group) bool { return g.Representative != g.Leader }) {
		// All that a filter lets pass are looked at where they are few: then the list does not end with k.
		near.flat = near.flat || near.within && near.all > near.k && len(ranks) < min(c.q.perPage, near.length-c.q.first)
		return !near.flat || !near.within
	}
	// As long as both are the same page, it need not be known.
	near.unfolded = stats.Ended || near.deep || slices.EqualFunc(ranks, near.hits, func(rank int, h hit) bool {
		read := c.rank(rank)
		return read != nil && read.ID == adapters.Unjudged(c.index, h.identity()).ID
	})
	near.deep = !near.unfolded
	return near.unfolded
}

// unfoldedHits returns the client's own page of neighbours, each with its rank in the longer list.
func (c *collapse) unfoldedHits() []placed {
	at := map[string]int{}
	for rank := 0; c.rank(rank) != nil; rank++ {
		at[c.rank(rank).ID] = rank
	}
	var list []placed
	for i := range c.q.near.hits {
		h := &c.q.near.hits[i]
		rank, ok := at[adapters.Unjudged(c.index, h.identity()).ID]
		if !ok {
			rank = -1
		}
		list = append(list, placed{h, rank})
	}
	return list
}

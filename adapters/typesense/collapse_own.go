package typesense

import "fmt"

// Some searches are asked as the client means them, too, ahead of the first reading: those for nearest neighbours, whose total and facets
// follow from the page, and those whose page only the reply tells.

// settled is the error of a search that is left alone when its own answer is there.
type settled struct {
	reason string
	raw    []byte
}

// Error implements error.
func (s *settled) Error() string { return fmt.Sprintf("the search is left alone: %s", s.reason) }

// leads reports whether the client's own search is asked too.
func (c *collapse) leads() bool { return c.q.unseen() || c.q.near != nil }

// lead adds the client's own search ahead of the first reading.
func (c *collapse) lead() {
	switch {
	case c.base != nil || !c.leads():
	case c.q.unseen():
		c.asked = append(c.asked, ask{content: asSent})
	default:
		c.asked = append(c.asked, ask{page: c.q.page, perPage: c.q.perPage, facets: true, own: true})
	}
}

// takeOwn reads the result of the client's own search. It is done with the round if what was read beside it was of no use.
func (c *collapse) takeOwn(raw []byte, a ask) (done bool, err error) {
	r, err := parseResult(raw, a)
	if err != nil {
		return false, err
	}
	c.base, c.found, c.index = raw, r.found, r.collection
	if near := c.q.near; near != nil {
		near.hits, near.length = r.hits, r.found
		return false, nil
	}
	switch {
	case r.grouped:
		return false, &settled{"grouped", raw}
	case r.perPage == 0:
		return false, &settled{"size_zero", raw}
	case r.perPage < 0 || r.first < 0 || r.perPage > maxPerPage:
		return false, &settled{c.q.inTheWay(), raw}
	case r.near():
		return false, &settled{"vector", raw}
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
		return &settled{c.q.inTheWay(), c.base}
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

// widen has the list of neighbours read down to the same rank on every page.
func (c *collapse) widen() {
	near := c.q.near
	near.k = max(c.scope.VectorWindow, near.own)
	if size := c.fixedSize(); size > 0 {
		near.k = (near.k + size - 1) / size * size
	}
	c.page.Window = min(c.page.Window, near.k)
	c.page.First = near.k
	c.page.SketchFirst = near.k > maxPerPage
}

// bound returns the rank behind which no page may end that is read for the span. With a later one the engine would look for more
// neighbours.
func (c *collapse) bound() int {
	if near := c.q.near; near != nil && c.span.To <= near.k {
		return min(near.k, c.limit())
	}
	return c.limit()
}

// unfolded reports whether the client's own page of neighbours is the answer: the list beside it was read and nothing in it folds.
func (c *collapse) unfolded() bool {
	if c.q.near == nil || c.base == nil || c.again {
		return false
	}
	stats := c.pager.Stats()
	return stats.Readings > 0 && stats.Folded == 0
}

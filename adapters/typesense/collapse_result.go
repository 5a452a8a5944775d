package typesense

import (
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// placed is a hit and its rank in the list that was read, -1 if it is not in there.
type placed struct {
	*hit
	rank int
}

// result returns the result that the client gets, when next has returned nothing.
func (c *collapse) result() ([]byte, error) {
	if c.show.DryRun {
		return c.q.clean(c.base.raw), nil
	}
	list, err := c.pageHits()
	if err != nil {
		return nil, err
	}
	found := -1
	if c.show.Collapsed {
		found, _ = c.total()
	}
	return c.q.present(c.base, found, func(dst []byte) ([]byte, error) { return c.appendHits(dst, list) })
}

// appendHits appends the page's hits as the client gets them.
func (c *collapse) appendHits(dst []byte, list []placed) (_ []byte, err error) {
	var views *adapters.Views
	if c.show.Expand > adapters.ExpandOff {
		views = adapters.NewViews(c.pager.Groups(), c.rank, c.pager.Stats().Ended, c.page.Window)
	}
	for i, h := range list {
		if c.show.Explain && c.struck() {
			return nil, adapters.ErrLate
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if views == nil {
			dst, err = c.q.appendBare(dst, h.hit)
		} else {
			dst, err = c.appendExpanded(dst, h, views)
		}
		if err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// pageHits returns the page's hits.
func (c *collapse) pageHits() ([]placed, error) {
	if c.q.near != nil && c.q.near.unfolded {
		return c.unfoldedHits(), nil
	}
	ranks, err := c.ranks()
	if err != nil {
		return nil, err
	}
	list := make([]placed, len(ranks))
	for i, rank := range ranks {
		h, ok := c.source(rank)
		if !ok {
			return nil, errMoved
		}
		list[i] = placed{h, rank}
	}
	return list, nil
}

// ranks returns the engine's ranks of the page's hits.
func (c *collapse) ranks() ([]int, error) {
	ranks, err := c.pager.Ranks()
	if c.q.near != nil {
		ranks = ranks[:min(len(ranks), max(c.q.near.length-c.page.From, 0))]
	}
	return ranks, err
}

// source returns the hit of a rank in the client's content, and false if it was not read in it.
func (c *collapse) source(rank int) (h *hit, ok bool) {
	at, ok := c.pager.At(rank)
	if !ok || at >= len(c.full) {
		return nil, false
	}
	return &c.full[at], true
}

// rank returns what was read of a rank, nil if there is none such.
func (c *collapse) rank(rank int) *rerank.Hit {
	if rank < 0 {
		return nil
	}
	return c.pager.Hit(rank)
}

// id returns the id of a rank's document as it was read, and false if the client's key hides it.
func (c *collapse) id(rank int) (id string, ok bool) {
	h := c.rank(rank)
	if h == nil {
		return "", false
	}
	id = strings.TrimPrefix(h.ID, adapters.Unjudged(c.index, "").ID)
	return id, !strings.HasPrefix(id, "\x00")
}

// total returns how many hits the collapsed list holds, as far as the window tells: exactly, or at most.
func (c *collapse) total() (hits int, exact bool) {
	folded, exact := c.pager.Stats().Folded, c.found <= c.page.Window
	near := c.q.near
	switch {
	case near == nil:
		return max(c.found-folded, 0), exact
	case near.unfolded:
		return near.length, exact
	case near.cut && !near.within:
		return near.length, false
	}
	return min(near.length, max(near.all-folded, 0)), exact
}

// appendExpanded appends a hit with what is folded into it.
func (c *collapse) appendExpanded(dst []byte, h placed, views *adapters.Views) ([]byte, error) {
	raw, err := c.q.bare(h.hit)
	if err != nil {
		return nil, err
	}
	rank := h.rank
	folded, exact := views.Folded(rank)
	out := strconv.AppendInt([]byte(`{"found":`), int64(len(folded)), 10)
	out = append(strconv.AppendBool(append(out, `,"exact":`...), exact), `,"hits":[`...)
	for i, member := range folded {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = c.appendFolded(out, member, views); err != nil {
			return nil, err
		}
	}
	out = append(out, ']')
	if c.show.Explain {
		var leader []byte
		if first := views.Leader(rank); first != rank {
			leader = c.appendID([]byte{'{'}, first)
			leader = append(leader, '}')
		}
		out = views.AppendExplanation(append(out, `,"explain":`...), rank, c.rules.For(c.index), leader)
	}
	raw, err = adapters.Set(raw, "neardup", append(out, '}'))
	return append(dst, raw...), err
}

// appendID appends the id of a rank's document as a member.
func (c *collapse) appendID(dst []byte, rank int) []byte {
	id, ok := c.id(rank)
	if !ok {
		return dst
	}
	return adapters.AppendString(append(dst, `"id":`...), id)
}

// appendFolded appends what is shown of a folded hit.
func (c *collapse) appendFolded(dst []byte, rank int, views *adapters.Views) ([]byte, error) {
	pair := views.Pair(rank)
	open := len(dst)
	if dst = c.appendID(append(dst, '{'), rank); len(dst) > open+1 {
		dst = append(dst, ',')
	}
	dst = adapters.AppendAgreement(append(dst, `"agreement":`...), pair.Agreement)
	if h, read := c.source(rank); read && c.show.Expand == adapters.ExpandSource {
		document, err := c.q.bareDocument(h)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, `,"document":`...), document...)
	}
	if c.show.Explain {
		pair.Shared = c.shared(rank, views.With(rank))
		dst = pair.AppendExplanation(append(dst, `,"explain":`...))
	}
	return append(dst, '}'), nil
}

// shared returns shingles that the documents of two ranks have in common, nil where not both are at hand.
func (c *collapse) shared(rank, other int) []string {
	rule := c.rules.For(c.index)
	if rule == nil || max(rank, other) >= len(c.sights) {
		return nil
	}
	a, b := c.sights[rank].document(c.q, rule), c.sights[other].document(c.q, rule)
	if a == nil || b == nil {
		return nil
	}
	return rule.Shared(a, b, adapters.MaxShared)
}

// outcome returns what was done.
func (c *collapse) outcome() adapters.Outcome {
	o := adapters.OutcomeOf(c.q.target, c.page, c.pager.Stats(), c.judge.Lacking, c.found)
	o.Rounds, o.DryRun, o.Sketches = c.rounds, c.show.DryRun, c.judge.Sketches()
	if near := c.q.near; near != nil && !near.unfolded { // what is folded is of the longer list
		o.Raw = max(o.Raw, near.all)
		o.Limited = o.Limited && !(near.within && near.k <= c.limit())
	}
	if c.show.Collapsed {
		_, exact := c.total()
		o.Exact = o.Exact && exact
	}
	return o
}

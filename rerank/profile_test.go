package rerank

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNoProfileIsTheDefault: a hit with a sketch and no profile folds as one with Default, however the list is collapsed.
func TestNoProfileIsTheDefault(t *testing.T) {
	r := rand.New(rand.NewPCG(36, 1))
	standard := Default()
	with := kind{duplicates: 0.5, families: 9, pins: 0.1, nils: 0.1, profiles: []*Profile{&standard}}.list(r, many+50)
	without := make([]Hit, len(with))
	for i, h := range with {
		h.Profile = nil
		without[i] = h
	}
	for _, n := range []int{40, len(with)} {
		for name, collapse := range map[string]func([]Hit, int) Collapsed{"leaders": Collapse, "components": CollapseTransitive, "pages": paged, "walk": walkedOver} {
			want := collapse(with[:n], n)
			if diff := cmp.Diff(want, collapse(without[:n], n)); diff != "" || len(want.Shown) == n {
				t.Errorf("%s of %d: %s", name, n, diff)
			}
		}
	}
}

// paged collapses hits by a Pager.
func paged(hits []Hit, window int) (c Collapsed) {
	p := NewPager(Page{Size: window, Window: window})
	for span, more := p.Next(); more; span, more = p.Next() {
		p.Take(span, hits[min(span.From, len(hits)):min(span.To, len(hits))])
	}
	c.Groups = p.Groups()
	c.Shown, _ = p.Ranks()
	return c
}

// walkedOver collapses hits by a Walk over the first half and a page after it.
func walkedOver(hits []Hit, window int) (c Collapsed) {
	var w Walk
	for i := range hits[:len(hits)/2] {
		if w.Take(&hits[i], window) {
			c.Shown = append(c.Shown, i)
		}
	}
	p := NewPager(Page{Size: window, Window: window, After: &w})
	for span, more := p.Next(); more; span, more = p.Next() {
		rest := hits[len(hits)/2:]
		p.Take(span, rest[min(span.From, len(rest)):min(span.To, len(rest))])
	}
	ranks, _ := p.Ranks()
	c.Groups, c.Shown = p.Groups(), append(c.Shown, ranks...)
	return c
}

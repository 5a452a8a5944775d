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
	with := kind{duplicates: 0.5, families: 9, pins: 0.1, nils: 0.1, profiles: []*Profile{&standard}}.list(r, 1250)
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

// paged collapses hits as one page.
func paged(hits []Hit, window int) Collapsed {
	return readAll(hits, Page{Size: window, Window: window})
}

// readAll reads a page of the hits.
func readAll(hits []Hit, page Page) Collapsed {
	f := FindPage(page)
	for to, ranks := range f.Readings() {
		var read []Hit
		for _, rank := range ranks {
			read = append(read, hits[rank])
		}
		if f.Add(append(read, hits[:min(to, len(hits))]...)) != nil {
			break
		}
	}
	return Collapsed{Groups: f.Groups, Shown: f.Ranks}
}

// walkedOver collapses hits by a Walk over the first half and a page after it.
func walkedOver(hits []Hit, window int) (c Collapsed) {
	var w Walk
	for i := range hits[:len(hits)/2] {
		if w.Take(&hits[i], window) {
			c.Shown = append(c.Shown, i)
		}
	}
	page := readAll(hits[len(hits)/2:], Page{Size: window, Window: window, After: &w})
	c.Groups, c.Shown = page.Groups, append(c.Shown, page.Shown...)
	return c
}

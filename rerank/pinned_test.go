package rerank

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPinnedHitsAreNeverFolded(t *testing.T) {
	hits := []Hit{hit("a", 1, 0), hit("b", 1, 1), hit("c", 1, 2), hit("d", 2, 0), hit("e", 2, 1)}
	hits[1].Pinned, hits[3].Pinned = true, true
	want := []Group{
		{Folded: []int{2}}, {Leader: 1, Representative: 1}, {Leader: 3, Representative: 3, Folded: []int{4}},
	}
	if diff := cmp.Diff(want, Collapse(hits, 5, false).Groups); diff != "" {
		t.Error(diff)
	}
	r := rand.New(rand.NewPCG(5, 5))
	for range trials(200) {
		hits := randomHits(r, r.IntN(80), r.Float64())
		for i := range hits {
			hits[i].Pinned = r.IntN(6) == 0
		}
		for _, g := range Collapse(hits, 80, false).Groups {
			if slices.ContainsFunc(g.Folded, func(rank int) bool { return hits[rank].Pinned }) {
				t.Fatalf("%+v holds a pinned hit", g)
			}
		}
	}
}

package rerank

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// TestDifferentStayApart: no component holds two hits that were decided to be different, pinned or not, and components are as they are defined.
func TestDifferentStayApart(t *testing.T) {
	r, clashes := rand.New(rand.NewPCG(4, 8)), 0
	for round := range effort.Rounds(2000) {
		k := kind{duplicates: 1, families: 2, pins: 0.2, decided: 1, profiles: []*Profile{{Threshold: 0.8}}}
		hits := k.list(r, 3+r.IntN(20))
		got, defined := CollapseTransitive(hits, len(hits)).Groups, definedGroups(hits, true)
		expect.Must(t, len(defined), len(got), "round %d: groups", round)
		for at, g := range got {
			members := append([]int{g.Leader}, g.Folded...)
			expect.Must(t, defined[at], members, "round %d", round)
			for _, i := range members {
				for _, j := range members {
					if definedDifferent(hits, i, j) {
						t.Fatalf("round %d: %d and %d are together: %v", round, i, j, got)
					}
				}
			}
		}
		for i := range hits {
			hits[i].Decided = nil
		}
		if !slices.EqualFunc(got, CollapseTransitive(hits, len(hits)).Groups, func(a, b Group) bool { return slices.Equal(a.Folded, b.Folded) }) {
			clashes++
		}
	}
	if clashes == 0 {
		t.Error("no decision made a difference")
	}
}

// late is a deadline that is over.
type late struct{}

func (late) Late() bool { return true }

// TestLateSearchStops: a late search does not go through its decided pairs.
func TestLateSearchStops(t *testing.T) {
	hits := make([]Hit, 2)
	for i := range hits {
		hits[i] = hit("h", 1, 0)
		hits[i].Decided = &Decided{Document: uint64(i), Pairs: []Decision{{Other: uint64(1 - i), Fingerprint: hits[0].Sketch.Fingerprint}}}
	}
	expect.Same(t, 2, len(differing(hits, &pace{})), "pairs, in time")
	expect.Same(t, 0, len(differing(hits, &pace{Deadline: late{}})), "pairs, late")
}

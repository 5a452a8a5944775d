package rerank

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWalkShowsTheCollapsedList: in pieces of any size, each from a copy of what the last one left.
func TestWalkShowsTheCollapsedList(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 1))
	for i := range trials(3000) {
		k := randomKind(r, true)
		hits, window := k.list(r, r.IntN(120)), r.IntN(130)
		want, folded, _ := defined(hits, window, false)
		walk, got := new(Walk), []int(nil)
		for at := 0; at < len(hits); {
			next := min(len(hits), at+1+r.IntN(20))
			walk = walk.Clone()
			for ; at < next; at++ {
				h := hits[at]
				if walk.Take(&h, window) {
					got = append(got, at)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("case %d, window %d: shows %v, want %v", i, window, got, want)
		}
		if walk.Ranks() != len(hits) || walk.Folded() != folded {
			t.Fatalf("case %d: %d ranks, %d folded; want %d and %d", i, walk.Ranks(), walk.Folded(), len(hits), folded)
		}
	}
}

// TestClonesOfAWalkAreIndependent: a client may go on twice from one cursor.
func TestClonesOfAWalkAreIndependent(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 1))
	take := func(w *Walk, hits []Hit) (shown []bool) {
		for i := range hits {
			shown = append(shown, w.Take(&hits[i], 1000))
		}
		return shown
	}
	for range trials(500) {
		k := randomKind(r, true)
		before, one, two := k.list(r, 30), k.list(r, 40), k.list(r, 40)
		walk := new(Walk)
		take(walk, before)
		memory := walk.Bytes()
		want := take(walk.Clone(), two)
		take(walk.Clone(), one)
		other := walk.Clone()
		if take(walk, one); !slices.Equal(take(other, two), want) {
			t.Fatal("what one walk took shows in its clone")
		}
		if other.Leaders() > 0 && memory < 0 || walk.Bytes() < memory {
			t.Fatalf("%d bytes after more hits than had taken %d", walk.Bytes(), memory)
		}
	}
}

package rerank

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// TestPagesAfterWalks reads a list in pages of any size, each of which begins behind what was walked before and knows no more of
// the list in front of it: together they are the collapsed list.
func TestPagesAfterWalks(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 1))
	for i := range effort.Rounds(800) {
		k := randomKind(r, true)
		k.pins = 0 // an engine with cursors pins nothing
		hits, window := k.list(r, r.IntN(160)), r.IntN(170)
		want, folded, _ := defined(hits, window, false)
		walk, got, all := new(Walk), []string{}, 0
		for at := 0; at < len(hits); {
			size := 1 + r.IntN(25)
			page := Page{Size: size, Window: max(0, window-walk.Ranks()), Widening: Widening{Rate: r.Float64()}, After: walk, SketchFirst: r.IntN(5) == 0, Whole: r.IntN(6) == 0}
			shown, p, err := still(hits[at:]).serve(t, page)
			if err != nil {
				t.Fatalf("case %d: %v", i, err)
			}
			ranks := p.Ranks
			if page.Whole {
				all = walk.Folded() + p.Stats().Folded
				expect.Must(t, folded, all, "case %d: folded in all, behind %d ranks", i, at)
			}
			got = append(got, shown...)
			if len(ranks) == 0 {
				break
			}
			walk = walk.Clone()
			for rank := range ranks[len(ranks)-1] + 1 {
				hit := p.Hit(rank)
				if hit == nil {
					hit = &Hit{}
				}
				if in := slices.Contains(ranks, rank); walk.Take(hit, window) != in {
					t.Fatalf("case %d: rank %d is shown: %v", i, at+rank, in)
				}
			}
			known := p.Walk(ranks[len(ranks)-1] + 1)
			by := expect.By{cmp.AllowUnexported(Walk{}, leaders{}, leader{}, outline{}), cmpopts.EquateEmpty()}
			by.Must(t, walk, known, "case %d: the walk taken (-), known of the page (+)", i)
			if walk.Ranks() >= window && r.IntN(2) == 0 {
				walk.Forget()
			}
			at += ranks[len(ranks)-1] + 1
		}
		expect.Must(t, ids(hits, want), got, "case %d, window %d of %d", i, window, len(hits))
	}
}

package rerank

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// FuzzPager holds pages of any shape over lists of any kind against the definition, and a walk over the same list.
func FuzzPager(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(60), uint8(0), uint8(10), uint8(50), uint8(0), uint8(0), uint16(0))
	f.Add(uint64(3), uint64(4), uint8(200), uint8(90), uint8(20), uint8(120), uint8(150), uint8(30), uint16(0x3ff))
	f.Add(uint64(5), uint64(6), uint8(200), uint8(0), uint8(20), uint8(120), uint8(150), uint8(30), uint16(0x401))
	f.Fuzz(func(t *testing.T, one, two uint64, n, from, size, window, limit, _ uint8, flags uint16) {
		r := rand.New(rand.NewPCG(one, two))
		flag := func(bit int) bool { return flags>>bit&1 == 1 }
		ranked := flag(0)
		k := randomKind(r, ranked)
		hits := k.list(r, int(n))
		page := Page{
			From: int(from), Size: int(size), Window: int(window), Limit: int(limit), Widening: Widening{Rate: r.Float64()}.Learn(Stats{Read: 1, Reach: marginFor(4 * r.Float64())}),
			SketchFirst: flag(1), FoldedToo: flag(2), Whole: !ranked || flag(3), Transitive: !ranked && flag(4),
		}
		if flag(10) {
			page.HitBytes, page.costs = float64(r.IntN(100_000)), randomCosts(r)
		}
		if flag(5) {
			page.First = r.IntN(int(n) + 1)
			if page.Limit > 0 {
				page.First = min(page.First, page.Limit)
			}
		}
		readable := hits
		if page.Limit > 0 {
			readable = hits[:min(len(hits), page.Limit)]
		}
		list, folded, _ := defined(readable, page.Window, page.Transitive)
		e := still(hits)
		got, p, err := e.serve(t, page)
		expect.OK(t, err)
		expect.Must(t, ids(hits, cut(list, page.From, page.Size)), got, "page %+v of %d hits", page, n)
		if page.Size > 0 {
			checkReadings(t, page, p, e, folded)
		}
		if !ranked {
			return
		}
		walk, shown := new(Walk), []int(nil)
		for rank := range hits {
			if r.IntN(5) == 0 {
				walk = walk.Clone()
			}
			if h := hits[rank]; walk.Take(&h, page.Window) {
				shown = append(shown, rank)
			}
		}
		if whole, _, _ := defined(hits, page.Window, false); !slices.Equal(shown, whole) {
			t.Fatalf("a walk shows %v, want %v", shown, whole)
		}
	})
}

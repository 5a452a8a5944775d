package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// The pairs are those that comparing every two sets gives, at any threshold.
func TestExactPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		sets := make([][]uint64, 40)
		for i := range sets {
			for range 1 + r.IntN(12) {
				sets[i] = append(sets[i], r.Uint64N(14)<<40*0x9E3779B97F4A7C15)
			}
			slices.Sort(sets[i])
			sets[i] = slices.Compact(sets[i])
		}
		threshold := float64(1+r.IntN(20)) / 20
		var want []pair
		for i := range sets {
			for j := range i {
				common := 0
				for _, x := range sets[i] {
					if slices.Contains(sets[j], x) {
						common++
					}
				}
				if float64(common)/float64(len(sets[i])+len(sets[j])-common) >= threshold-epsilon {
					want = append(want, pair{int32(j), int32(i)})
				}
			}
		}
		got := exactPairs(sets, threshold)
		for _, list := range [][]pair{got, want} {
			slices.SortFunc(list, func(a, b pair) int { return cmp.Or(cmp.Compare(a[1], b[1]), cmp.Compare(a[0], b[0])) })
		}
		expect.Same(t, want, got, "pairs at %v", threshold)
	}
}

// The documents have the same shingles for the sidecar as for the judge, and planted versions lie on both sides of a threshold.
func TestPlanted(t *testing.T) {
	texts := expect.Value(corpora.LoadTexts(0))(t)
	scheme := sketch.DefaultScheme()
	scheme.Words = 3
	sketcher := expect.Value(sketch.New(scheme))(t)
	set := make([]string, 400)
	for i := range set {
		set[i] = planted(texts, corpora.Shelf{Count: len(set), Bytes: 1250, Duplicates: .3}, i)
		expect.Same(t, len(sketcher.Shingles(set[i])), len(shingles(set[i], 3)), "shingles of document %d", i)
	}
	near, all := exactPairs(setsOf(set, 3), .7), exactPairs(setsOf(set, 3), .3)
	if len(near) < 20 || len(all) < 2*len(near) {
		t.Errorf("%d pairs reach 0.7, and %d reach 0.3", len(near), len(all))
	}
}

// Found and wanted clusters {0 1 2} {3 4} and {0 1} {2 3 4} share 2 of 4 pairs, and 2 of 3 copies.
func TestScores(t *testing.T) {
	wanted := connected(5, []pair{{0, 1}, {2, 3}, {3, 4}})
	found := connected(5, []pair{{1, 2}, {0, 2}, {3, 4}})
	expect.Same(t, score{.5, .5}, sameClusters(found, wanted), "clusters")
	expect.Same(t, score{2. / 3, 2. / 3}, sameCopies(copies(found), copies(wanted)), "copies")
	expect.Same(t, score{1. / 3, 1. / 3}, samePairs([]pair{{1, 2}, {0, 2}, {3, 4}}, []pair{{0, 1}, {2, 3}, {3, 4}}), "pairs")
}

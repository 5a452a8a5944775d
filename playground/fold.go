package playground

import (
	"cmp"
	"slices"

	"github.com/neardup/sidecar/rerank"
)

// least is the agreement below which a pair is left out: no threshold of the page goes there.
const least = 0.05

// pairsOf returns for every two ranks i before j the greatest threshold at which j may fold into i, and 1 behind it where that is
// for their fingerprints: [i, j, agreement] or [i, j, 1, 1]. What the rule asks for beside the agreement holds for all of them.
func pairsOf(hits []rerank.Hit) [][]float64 {
	pairs := [][]float64{}
	for j := range hits {
		hit := &hits[j]
		if hit.Sketch == nil || hit.Pinned {
			continue
		}
		profile := *hit.Profile
		profile.Threshold = least
		for i := range j {
			near, agreement := profile.Near(hit, &hits[i])
			switch {
			case !near:
			case hit.Sketch.SameText(hits[i].Sketch):
				pairs = append(pairs, []float64{float64(i), float64(j), 1, 1})
			default:
				pairs = append(pairs, []float64{float64(i), float64(j), min(agreement, 1)})
			}
		}
	}
	return pairs
}

// ordersOf returns for each hit its place in the order by which representatives are chosen: of any group the least is shown.
// Those that are pinned come before all others, since each leads its group.
func ordersOf(hits []rerank.Hit) []int {
	ranks := make([]int, len(hits))
	for i := range ranks {
		ranks[i] = i
	}
	class := func(h *rerank.Hit) (class int) {
		if !h.Pinned {
			class = 2
		}
		if h.Sketch == nil {
			class++
		}
		return class
	}
	slices.SortStableFunc(ranks, func(a, b int) int {
		one, other := &hits[a], &hits[b]
		if one.Sketch == nil || other.Sketch == nil { // those without are in no group with others
			return cmp.Compare(class(one), class(other))
		}
		return cmp.Or(cmp.Compare(class(one), class(other)), one.Profile.Compare(one, other))
	})
	orders := make([]int, len(hits))
	for place, rank := range ranks {
		orders[rank] = place
	}
	return orders
}

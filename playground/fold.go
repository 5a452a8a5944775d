package playground

import (
	"cmp"
	"math"
	"slices"

	"github.com/neardup/sidecar/jobs/calibrate"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
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

// curve is what the page draws p(r) from: how probable it is that two documents fold, by the resemblance that they truly have (or
// the containment, where that is the measure).
type curve struct {
	// Positions are compared one by one, and fold two documents where enough of them are equal; 0 where none are counted.
	Positions int `json:"positions"`
	// Matching is the probability that one is equal, Errors the standard error of the estimate, at 0, 1/100, … 1.
	Matching []float64 `json:"matching"`
	Errors   []float64 `json:"errors"`
}

// curveOf returns the curve of a scheme. shingles are those of the documents at hand, of each as many as it has.
func curveOf(s sketch.Scheme, measure rerank.Measure, shingles []uint32) curve {
	c := curve{Matching: make([]float64, 101), Errors: make([]float64, 101)}
	precision := calibrate.NewPrecision(s, shingles)
	if precision.Counts() {
		c.Positions = s.Positions
	}
	for i := range c.Matching {
		resemblance, slope := float64(i)/100, 1.0
		if value := resemblance; measure == rerank.Containment { // of two documents of about the same size
			resemblance, slope = value/(2-value), 2/((2-value)*(2-value))
		}
		c.Matching[i] = round(precision.Matching(resemblance), 1e6)
		if s.Family != sketch.Hamming {
			c.Errors[i] = round(precision.Deviation(resemblance)/slope, 1e4)
		}
	}
	return c
}

// round returns a value to a part of one.
func round(value, parts float64) float64 { return math.Round(value*parts) / parts }

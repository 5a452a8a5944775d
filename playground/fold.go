package playground

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs/calibrate"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// minThreshold is the least threshold of the page. Pairs with a lower agreement are left out.
const minThreshold = 0.05

// apart is an earlier hit that a hit agrees with and does not fold into, whatever the threshold, and why.
type apart struct {
	Rank      int     `json:"rank"`
	With      int     `json:"with"`
	Agreement float64 `json:"agreement"`
	Why       string  `json:"why"`
}

// compared returns for every two ranks i < j the greatest threshold at which j may fold into i: [i, j, agreement], or [i, j, 1, 1] if their
// fingerprints are equal, [i, j, 1, 2] if it was decided that they are the same, or [i, j, 1, 3] if their vectors are enough. All but decided pairs meet the
// conditions of the rule. Of the earlier hits that a hit agrees with but does not fold into at any threshold, kept has the one that it agrees with most.
func compared(hits []rerank.Hit, shown []hit) (pairs [][]float64, kept []apart) {
	pairs, kept = [][]float64{}, []apart{}
	for j := range hits {
		one := &hits[j]
		if one.Sketch == nil || one.Pinned {
			continue
		}
		profile := *one.Profile
		profile.Threshold = minThreshold
		best := apart{Rank: j}
		for i := range j {
			other := &hits[i]
			decision := one.Decision(other)
			if other.Sketch == nil || decision == nil && !profile.ConditionsHold(one, other) {
				continue
			}
			agreement, reason := profile.Judge(one.Sketch, other.Sketch)
			switch {
			case decision != nil && decision.Same:
				pairs = append(pairs, []float64{float64(i), float64(j), 1, 2})
			case decision != nil:
				if agreement > best.Agreement {
					best.With, best.Agreement, best.Why = i, min(agreement, 1), "it was decided that they are different"
				}
			case reason == rerank.SameText:
				pairs = append(pairs, []float64{float64(i), float64(j), 1, 1})
			case vectorsAgree(profile, one.Sketch, other.Sketch):
				pairs = append(pairs, []float64{float64(i), float64(j), 1, 3})
			case reason.Near():
				pairs = append(pairs, []float64{float64(i), float64(j), min(agreement, 1)})
			case reason != rerank.Disagrees && reason != rerank.Incomparable && agreement > best.Agreement:
				best.With, best.Agreement, best.Why = i, min(agreement, 1), profile.Why(one.Sketch, other.Sketch, agreement, reason)
			}
		}
		if best.Why == "" {
			continue
		}
		in := fmt.Sprintf("in rank %d", best.With+1)
		if numbers := rule.NumbersApart(wordsOf(&shown[best.With]), wordsOf(&shown[j]), in, "here"); numbers != "" {
			best.Why += "; " + numbers
		}
		kept = append(kept, best)
	}
	return pairs, kept
}

// vectorsAgree reports whether two documents are near-duplicates by their vectors, whatever the threshold of their texts.
func vectorsAgree(p rerank.Profile, a, b *sketch.Sketch) bool {
	p.Threshold = 2 // no agreement of texts reaches it
	_, reason := p.Judge(a, b)
	return reason == rerank.VectorsAgree
}

// wordsOf returns the words of a hit's fields, in the order of their names.
func wordsOf(h *hit) (words []string) {
	for _, name := range slices.Sorted(maps.Keys(h.Fields)) {
		words = append(words, sketch.Words(h.Fields[name])...)
	}
	return words
}

// ordersOf returns each hit's position in the order in which representatives are chosen: of any group the hit with the least position is shown.
// Pinned hits come first, since each leads its group.
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
		if one.Sketch == nil || other.Sketch == nil { // a hit without a sketch is alone in its group
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

// errorsOf returns the standard error of an agreement of 0, 1/100, … 1. shingles are the numbers of shingles of the documents.
func errorsOf(s sketch.Scheme, measure rerank.Measure, shingles []uint32) []float64 {
	errs, precision, edge := make([]float64, 101), calibrate.NewPrecision(s, shingles), 0.0
	if precision.Counts() {
		edge = 0.5 / float64(s.Positions) // half a position, so that no agreement is without error
	}
	for i := range errs {
		resemblance, slope := float64(i)/100, 1.0
		if value := resemblance; measure == rerank.Containment { // of two documents of about the same size
			resemblance, slope = value/(2-value), 2/((2-value)*(2-value))
		}
		if s.Family != sketch.Hamming {
			errs[i] = math.Round(1e4*precision.Deviation(min(max(resemblance, edge), 1-edge))/slope) / 1e4
		}
	}
	return errs
}

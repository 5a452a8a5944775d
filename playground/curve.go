package playground

import (
	"math"
	"slices"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

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
	const step = 1e-4
	c := curve{Matching: make([]float64, 101), Errors: make([]float64, 101)}
	middle, n := median(shingles), float64(s.Positions)
	whole := s.Family == sketch.MSmallest && middle <= s.Positions
	switch s.Family {
	case sketch.FastSimilarity, sketch.Permutations, sketch.SimHash:
		c.Positions = s.Positions
	case sketch.MSmallest:
		if !whole {
			c.Positions = s.Positions
		}
	case sketch.ZeroModM: // what is kept of a document in the middle
		n = float64(max(1, min(s.Positions, middle/max(1, s.Modulus)*max(1, s.Repeats))))
	}
	matching := func(value float64) float64 { return matchingAt(s, resemblanceOf(measure, value)) }
	for i := range c.Matching {
		at := float64(i) / 100
		low, high := max(0, at-step), min(1, at+step)
		q, slope := matching(at), (matching(high)-matching(low))/(high-low)
		c.Matching[i] = round(q, 1e6)
		if !whole && s.Family != sketch.Hamming && slope > 0 {
			c.Errors[i] = round(math.Sqrt(max(0, q*(1-q)/n))/slope, 1e4)
		}
	}
	return c
}

// resemblanceOf returns the resemblance of two documents of about the same size that have a value of the measure.
func resemblanceOf(measure rerank.Measure, value float64) float64 {
	if measure == rerank.Containment {
		return value / (2 - value)
	}
	return value
}

// matchingAt is how probable it is that a position agrees in the sketches of two documents of a resemblance, of about the same
// size. What b bits keep of a position agrees by chance as well; two sets lie on the same side of a plane by the angle between
// them.
func matchingAt(s sketch.Scheme, r float64) float64 {
	switch s.Family {
	case sketch.FastSimilarity, sketch.Permutations:
		return r + (1-r)/float64(int(1)<<s.Bits)
	case sketch.SimHash:
		return 1 - math.Acos(min(1, 2*r/(1+r)))/math.Pi
	}
	return r
}

// median returns the number in the middle, 0 of none.
func median(numbers []uint32) int {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	return int(sorted[len(sorted)/2])
}

// round returns a value to a part of one.
func round(value, parts float64) float64 { return math.Round(value*parts) / parts }

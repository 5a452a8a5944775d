package playground

import (
	"math"

	"github.com/neardup/sidecar/jobs/calibrate"
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

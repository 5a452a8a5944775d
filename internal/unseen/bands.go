package unseen

import (
	"math"

	"github.com/neardup/sidecar/sketch"
)

// chooseBands returns into how many bands of how many rows to cut a sketch, so that few unlike documents share a band and few near-duplicates do not: the two
// areas between the curve of [sketch.Candidate] and a step at the threshold have the least sum (Zhu and others: "LSH Ensemble", VLDB 2016; so does
// datasketch). Unlike a search, nothing looks at the whole sketches afterwards.
//
// Positions of few bits are often equal by chance. So bands must have enough rows: by chance alone a document may share a band with one of the expected documents
// with a probability of at most rate. If no bands are long enough, it returns 0.
func chooseBands(scheme sketch.Scheme, threshold, expected, rate float64) (bands, rows int) {
	byChance := math.Exp2(-float64(scheme.Bits))
	least := math.Inf(1)
	for r := 1; r <= scheme.Positions; r++ {
		for b := 1; b <= scheme.Positions/r; b++ {
			if expected*float64(b)*math.Pow(byChance, float64(r)) > rate {
				break
			}
			if area := areaBeside(threshold, byChance, b, r); area < least {
				least, bands, rows = area, b, r
			}
		}
	}
	return bands, rows
}

// areaBeside returns the area between the curve of the bands and the step at the threshold.
func areaBeside(threshold, byChance float64, bands, rows int) (area float64) {
	const steps = 100
	for i := range steps {
		below := (float64(i) + 0.5) / steps * threshold
		above := threshold + (float64(i)+0.5)/steps*(1-threshold)
		area += threshold*sketch.Candidate(below+(1-below)*byChance, bands, rows) + (1-threshold)*(1-sketch.Candidate(above+(1-above)*byChance, bands, rows))
	}
	return area / steps
}

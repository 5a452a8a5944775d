package calibrate

import (
	"math"

	"github.com/neardup/sidecar/sketch"
)

// Curve is p(r): how probable it is that two documents of the resemblance r fold, by the sketches alone.
type Curve struct {
	Threshold float64 `json:"threshold"`
	// Matches of Positions have to agree; both 0 where the scheme counts no positions.
	Matches   int     `json:"matches"`
	Positions int     `json:"positions"`
	Points    []Point `json:"points"`
	// Error is the standard error of an agreement at the threshold; at the resemblance From one pair in twenty folds, at To all
	// but one.
	Error float64 `json:"error"`
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	// Measured are shares of the pairs that were compared by their texts.
	Measured []Measured `json:"measured"`

	taken [Bins][2]int
}

// Point is a point of the curve.
type Point struct {
	Resemblance float64 `json:"resemblance"`
	Folds       float64 `json:"folds"`
	// Candidate is how probable it is that the two share a band, where there are bands.
	Candidate float64 `json:"candidate,omitempty"`
}

// Measured is the share of pairs of an exact resemblance that reach the threshold by agreement: in two bins' width around it.
// The truth lies from Low to High with a probability of 95 %.
type Measured struct {
	Resemblance float64 `json:"resemblance"`
	Pairs       int     `json:"pairs"`
	Folds       float64 `json:"folds"`
	Low         float64 `json:"low"`
	High        float64 `json:"high"`
}

// From and To bound the resemblances that are counted.
func (m Measured) From() float64 { return m.Resemblance - 0.5/Bins }

// To is the upper bound.
func (m Measured) To() float64 { return m.Resemblance + 0.5/Bins }

func (c *Curve) take(exact float64, folds bool) {
	bin := min(Bins-1, int(exact*Bins))
	c.taken[bin][0]++
	if folds {
		c.taken[bin][1]++
	}
}

// drawCurve fills in the curve of the scheme at the threshold.
func (c *calibration) drawCurve() {
	k, scheme := &c.report.Curve, c.rule.Sketcher.Scheme()
	k.Threshold, k.Error = c.report.Threshold, c.deviation(c.report.Threshold)
	if c.precision.Counts() {
		k.Positions = scheme.Positions
		k.Matches = int(math.Ceil(float64(k.Positions)*c.precision.Matching(k.Threshold) - 1e-9))
	}
	bands, rows := c.report.Bands, c.report.Rows
	if bands == 0 {
		bands, rows = c.rule.Bands, c.rule.Rows
	}
	k.From, k.To = 0, 1
	for i := range 101 {
		p := Point{Resemblance: float64(i) / 100}
		p.Folds = c.folds(p.Resemblance)
		if bands > 0 {
			p.Candidate = sketch.Candidate(c.precision.Matching(p.Resemblance), bands, rows)
		}
		if p.Folds <= 0.05 {
			k.From = p.Resemblance
		}
		if p.Folds < 0.95 {
			k.To = min(1, p.Resemblance+0.01)
		}
		k.Points = append(k.Points, p)
	}
	k.Measured = []Measured{}
	for bin, n := range k.taken {
		if n[0] > 0 {
			m := Measured{Resemblance: (float64(bin) + 0.5) / Bins, Pairs: n[0], Folds: float64(n[1]) / float64(n[0])}
			m.Low, m.High = wilson(m.Folds, float64(n[0]))
			k.Measured = append(k.Measured, m)
		}
	}
}

// folds returns p(r). For families that count no positions it goes by the normal distribution around r.
func (c *calibration) folds(r float64) float64 {
	k := &c.report.Curve
	if c.precision.Counts() {
		return sketch.AtLeast(c.precision.Matching(r), k.Matches, k.Positions)
	}
	return 0.5 * math.Erfc((k.Threshold-r)/max(1e-9, c.deviation(r))/math.Sqrt2)
}

// leastDeviation is what counts as near to a threshold where sketches are exact.
const leastDeviation = 0.005

// deviation is the standard error of an agreement at a resemblance.
func (c *calibration) deviation(r float64) float64 {
	return max(leastDeviation, c.precision.Deviation(r))
}

package calibrate

import (
	"maps"
	"math"
	"slices"

	"github.com/neardup/sidecar/rerank"
)

// thresholds are those at which partners are counted.
var thresholds = [...]float64{0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95}

// Share is how many documents fold at a threshold.
type Share struct {
	// Name is that of the preset, if it is one.
	Name      string  `json:"name,omitempty"`
	Threshold float64 `json:"threshold"`
	// Folded is the share of documents that would fold if all were one list of hits: of each group all but one. The truth lies
	// from Low to High with a probability of 95 %, as far as chance decided which documents were looked at.
	Folded float64 `json:"folded"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Contested is the share of documents with a partner within one standard error of the threshold.
	Contested float64 `json:"contested"`
}

// countShares counts how many documents fold at each threshold.
func (c *calibration) countShares() {
	for t := range thresholds {
		c.report.Shares = append(c.report.Shares, c.shareAt("", thresholds[t]))
	}
	if !c.ofResemblance() { // the presets' thresholds are of resemblance
		return
	}
	for _, name := range slices.Sorted(maps.Keys(rerank.Presets())) {
		c.report.Presets = append(c.report.Presets, c.shareAt(name, rerank.Presets()[name].Threshold))
	}
	c.report.Presets = append(c.report.Presets, c.shareAt("rule", c.report.Threshold))
}

// shareAt returns how many documents fold at one threshold. Between two of those at which partners are counted it interpolates.
func (c *calibration) shareAt(name string, threshold float64) Share {
	s := Share{Name: name, Threshold: threshold}
	at, part := 0, 0.0
	for at < len(thresholds)-2 && thresholds[at+1] <= threshold {
		at++
	}
	if threshold > thresholds[at] {
		part = min(1, (threshold-thresholds[at])/(thresholds[at+1]-thresholds[at]))
	}
	documents := 0
	folded := func(u *unit, t int) float64 { return 1 - 1/(float64(u.size)+float64(u.partners[t])) }
	deviation := c.deviation(threshold)
	for i := range c.units {
		u := &c.units[i]
		if !u.judged {
			continue
		}
		documents += u.size
		s.Folded += float64(u.size) * ((1-part)*folded(u, at) + part*folded(u, at+1))
		if u.marked(threshold-deviation, threshold+deviation) {
			s.Contested += float64(u.size)
		}
	}
	if c.report.Textless > 0 && c.report.Way == ByStored && documents > 0 { // as many as among all that were read
		documents += c.report.Textless * documents / max(1, c.report.Read-c.report.Textless)
	} else {
		documents += c.report.Textless
	}
	if documents == 0 {
		return s
	}
	s.Folded, s.Contested = s.Folded/float64(documents), s.Contested/float64(documents)
	s.Low, s.High = s.Folded, s.Folded
	if !c.report.Whole { // of a finite whole
		n, all := float64(documents), float64(max(c.report.Documents, documents+1))
		s.Low, s.High = wilson(s.Folded, n*(all-1)/(all-n))
	}
	return s
}

// wilson returns the interval in which a share lies with a probability of 95 %, by what was seen (Wilson 1927).
func wilson(share, n float64) (low, high float64) {
	const z = 1.96
	if n <= 0 {
		return 0, 1
	}
	middle := (share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

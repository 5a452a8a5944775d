package calibrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Suggestion is a threshold and why.
type Suggestion struct {
	Threshold float64 `json:"threshold"`
	// Kind is one of the Kinds; Sure says that the documents themselves speak for it.
	Kind   string `json:"kind"`
	Sure   bool   `json:"sure"`
	Reason string `json:"reason"`
	// Contested are how many documents are so at the suggested threshold, at the present one, and on the heights to both sides of
	// the suggested one.
	Contested int `json:"contested"`
	Present   int `json:"contested_now"`
	Below     int `json:"contested_below"`
	Above     int `json:"contested_above"`
	// Partnered is how many documents have a partner of 0.3 and more with another text.
	Partnered int `json:"partnered"`
}

// The kinds of suggestions.
const (
	// Few: too few documents have anything like them for the index to speak for any threshold.
	Few = "few"
	// Kept: the present threshold lies in a valley, where few documents are contested.
	Kept = "kept"
	// Valley: another one does, and the present one does not, or farther away.
	Valley = "valley"
	// Flat: documents lie everywhere between near-duplicates and strangers: there is no border to be seen.
	Flat = "flat"
)

// Facts are what a suggestion is made of.
type Facts struct {
	// Threshold is the present one, Base the one to start from.
	Threshold, Base float64
	// Contested is how many documents are so at each hundredth.
	Contested [101]int
	// Partnered is how many documents have a partner of 0.3 and more with another text.
	Partnered int
	Measure   rerank.Measure
}

const (
	// fewPartnered is below how many partnered documents nothing is suggested.
	fewPartnered = 20
	// lowest and highest bound what is suggested.
	lowest, highest = 40, 90
	// reluctance is how much of the logarithm of contested documents a distance of reluctanceOver from the base weighs: a
	// border that is hardly better and far away is none to go to.
	reluctance, reluctanceOver = 0.5, 0.15
	// lower is how far below the heights on both sides the contested of a valley lie at most.
	lower = 0.6
)

// facts gathers what the suggestion is made of.
func (c *calibration) facts() Facts {
	f := Facts{Threshold: c.report.Threshold, Base: c.base(), Measure: c.rule.Profile.Measure}
	for i := range c.units {
		u := &c.units[i]
		if !u.judged {
			continue
		}
		if u.marked(0.3, 1) {
			f.Partnered += u.size
		}
		for t := 15; t <= 100; t++ {
			threshold := float64(t) / 100
			deviation := c.deviation(min(0.99, threshold))
			if u.marked(threshold-deviation, threshold+deviation) {
				f.Contested[t] += u.size
			}
		}
	}
	return f
}

// base returns where a suggestion starts from: the default, which has the best mean over labelled documents of many kinds,
// wherever the shingles are those that it was measured with; else the present threshold.
func (c *calibration) base() float64 {
	s, d := c.rule.Sketcher.Scheme(), sketch.DefaultScheme()
	if c.ofResemblance() && s.Family != sketch.Hamming && s.Features == d.Features && s.Words == d.Words &&
		s.Characters == d.Characters {
		return rerank.Default().Threshold
	}
	return c.report.Threshold
}

// Suggest returns the threshold that the documents speak for: where the fewest are contested, as near to the base as is as good.
// Where they do not tell, it is the base, and the reason says so.
func Suggest(f Facts) Suggestion {
	base := min(100, max(0, int(math.Round(f.Base*100))))
	now := min(100, max(0, int(math.Round(f.Threshold*100))))
	s := Suggestion{Threshold: f.Base, Kind: Few, Present: f.Contested[now], Contested: f.Contested[base], Partnered: f.Partnered}
	start := fmt.Sprintf("The present threshold, %.2f, stays.", f.Threshold)
	if base != now {
		start = fmt.Sprintf("%.2f, the preset default, does best over labelled texts of many kinds; the present threshold is %.2f.",
			f.Base, f.Threshold)
	}
	if f.Partnered < fewPartnered {
		s.Reason = fmt.Sprintf("Only %s a partner of another text that agrees with them by 0.3 or more: too few to tell one "+
			"threshold from another. %s",
			terminal.Count(f.Partnered, "document has", "documents have"), start)
		return s
	}
	at := base
	if least := f.least(base); f.valley(least) && f.clearly(least, base) {
		s.Threshold, at = float64(least)/100, least
	}
	if f.valley(now) && !f.clearly(at, now) { // to change it would gain nothing
		s.Threshold, at = f.Threshold, now
	}
	s.Contested = f.Contested[at]
	s.Below, s.Above = f.sides(at)
	if f.valley(at) {
		s.Kind, s.Sure = Valley, true
		s.Reason = fmt.Sprintf("%.2f lies in a valley: at it %s a partner so near to the threshold that the error of the sketches decides whether "+
			"they fold. On the two sides of it up to %d and %d do", s.Threshold, terminal.Count(s.Contested, "document has", "documents have"), s.Below, s.Above)
		if at == now {
			s.Kind = Kept
			s.Reason += ". It is the present threshold, and no other is clearly better."
		} else {
			s.Reason += fmt.Sprintf(", and at the present %.2f %s.", f.Threshold, terminal.Count(s.Present, "does", "do"))
		}
	} else {
		s.Kind = Flat
		s.Reason = fmt.Sprintf("The documents do not tell: %s a partner of another text of 0.3 or more, and these lie about as thickly at every "+
			"agreement from there up, so there is no border to be seen. %s The pairs of each level show what another threshold "+
			"would mean.",
			terminal.Count(f.Partnered, "document has", "documents have"), start)
	}
	if near := presetNear(s.Threshold); s.Sure && f.Measure != rerank.Containment {
		s.Reason += " The nearest preset is " + near + "."
	}
	return s
}

// sides returns how many documents are contested at the heights below and above a hundredth.
func (f *Facts) sides(at int) (below, above int) {
	return slices.Max(f.Contested[min(at, 15) : at+1]), slices.Max(f.Contested[at:])
}

// valley reports whether a hundredth lies well below the heights on both sides: by a good part, and by three times what chance accounts
// for, since it was picked as the lowest of many.
func (f *Facts) valley(at int) bool {
	below, above := f.sides(at)
	side := min(below, above)
	return float64(f.Contested[at]) <= lower*float64(side) && beyond(f.Contested[at], side, 3)
}

// clearly reports whether fewer documents are contested at a than at b, by more than chance accounts for.
func (f *Facts) clearly(a, b int) bool { return beyond(f.Contested[a], f.Contested[b], 2) }

// beyond reports whether one count exceeds another by a number of standard deviations of their difference.
func beyond(less, more int, deviations float64) bool {
	return float64(more-less) > deviations*math.Sqrt(float64(more+less+1))
}

// least returns the hundredth at which the fewest documents are contested, distance from the base held against it.
func (f *Facts) least(base int) int {
	best, at := math.Inf(1), base
	for t := lowest; t <= highest; t++ {
		away := float64(t-base) / 100 / reluctanceOver
		if cost := math.Log(float64(f.Contested[t]+1)) + reluctance*away*away; cost < best {
			best, at = cost, t
		}
	}
	return at
}

// presetNear returns the preset whose threshold is the nearest, and what it is.
func presetNear(threshold float64) string {
	best, name := math.Inf(1), ""
	for _, preset := range []string{"default", "safe", "thorough"} {
		if away := math.Abs(rerank.Presets()[preset].Threshold - threshold); away < best {
			best, name = away, fmt.Sprintf("%s (%.2f)", preset, rerank.Presets()[preset].Threshold)
		}
	}
	return name
}

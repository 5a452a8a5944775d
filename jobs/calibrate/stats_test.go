package calibrate

import (
	"fmt"
	"math"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/sketch"
)

// TestWilson holds the interval to the tables, and at its ends to what a share can be.
func TestWilson(t *testing.T) {
	if low, high := wilson(0.5, 100); math.Abs(low-0.4038) > 1e-4 || math.Abs(high-0.5962) > 1e-4 {
		t.Errorf("%v to %v", low, high)
	}
	for _, share := range []float64{0, 1} {
		if low, high := wilson(share, 5); low < 0 || high > 1 || low > share || high < share || high-low < 0.1 {
			t.Errorf("%v: %v to %v", share, low, high)
		}
	}
}

// TestCurve holds p(r) against pairs of texts of known resemblance.
func TestCurve(t *testing.T) {
	for _, family := range []sketch.Family{sketch.Permutations, sketch.FastSimilarity, sketch.MSmallest, sketch.SimHash} {
		t.Run(string(family), func(t *testing.T) {
			m, exact := planted(t, sketch.Scheme{Family: family, Positions: 128}, 2, max(300, effort.Rounds(3000)))
			c := calibration{rule: m.rule, report: Report{Setting: Setting{Threshold: 0.5, Positions: 128}, Reading: Reading{Sample: 2}}}
			for i := range exact {
				for _, id := range []string{"a", "b"} {
					d := document{}
					d.sketch, _ = m.rule.Sketcher.Sketch(textsOf(m.sources[fmt.Sprint(id, "-", i)])...)
					c.docs = append(c.docs, d)
				}
			}
			c.precision = NewPrecision(m.rule.Sketcher.Scheme(), []uint32{c.docs[0].sketch.Shingles, c.docs[1].sketch.Shingles})
			c.drawCurve()
			var folds, want [10]float64
			for i, r := range exact {
				if agreement, _ := c.docs[2*i].sketch.Agreement(&c.docs[2*i+1].sketch); agreement >= 0.5 {
					folds[min(9, int(r*10))]++
				}
				want[min(9, int(r*10))] += c.folds(r)
			}
			for bin := range folds {
				if math.Abs(folds[bin]-want[bin]) > 4*math.Sqrt(want[bin]+1)+0.06*want[bin] {
					t.Errorf("from %.1f on %.0f fold, by p(r) %.1f", float64(bin)/10, folds[bin], want[bin])
				}
			}
			k := &c.report.Curve
			if !(k.From < 0.5 && 0.5 < k.To) || k.Error <= 0 || k.Points[0].Folds > 1e-6 || k.Points[100].Folds < 1-1e-6 {
				t.Errorf("from %v to %v, error %v", k.From, k.To, k.Error)
			}
		})
	}
}

// heights makes contested documents along the thresholds of points between which they lie on a line.
func heights(points ...[2]int) (list [101]int) {
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		for t := a[0]; t <= b[0]; t++ {
			list[t] = a[1] + (b[1]-a[1])*(t-a[0])/(b[0]-a[0])
		}
	}
	return list
}

func TestSuggest(t *testing.T) {
	for _, c := range []struct {
		name         string
		present      float64
		partnered    int
		contested    [101]int
		kind         string
		lowest, most float64
	}{
		{"nothing", 0.64, 0, [101]int{}, Few, 0.64, 0.64},
		{"few", 0.7, 19, heights([2]int{0, 50}, [2]int{50, 0}, [2]int{100, 10}), Few, 0.64, 0.64},
		{"a valley elsewhere", 0.64, 500, heights([2]int{0, 300}, [2]int{45, 0}, [2]int{50, 0}, [2]int{60, 150}, [2]int{100, 300}),
			Valley, 0.45, 0.52},
		{"a valley above", 0.64, 500, heights([2]int{0, 300}, [2]int{60, 200}, [2]int{78, 2}, [2]int{82, 2}, [2]int{100, 300}),
			Valley, 0.76, 0.84},
		{"a valley here", 0.64, 500, heights([2]int{0, 300}, [2]int{55, 0}, [2]int{75, 0}, [2]int{100, 300}), Kept, 0.64, 0.64},
		{"a present one that is as good", 0.58, 500, heights([2]int{0, 300}, [2]int{55, 0}, [2]int{75, 0}, [2]int{100, 300}), Kept,
			0.58, 0.58},
		{
			"another that is hardly better", 0.88, 500,
			heights([2]int{0, 300}, [2]int{55, 100}, [2]int{64, 12}, [2]int{70, 9}, [2]int{75, 100}, [2]int{100, 300}), Valley, 0.64, 0.64,
		},
		{
			"a dent of chance", 0.64, 300,
			heights([2]int{0, 300}, [2]int{30, 36}, [2]int{60, 12}, [2]int{80, 8}, [2]int{84, 1}, [2]int{90, 9}, [2]int{100, 9}), Flat, 0.64, 0.64,
		},
		{"flat", 0.64, 500, heights([2]int{0, 100}, [2]int{100, 100}), Flat, 0.64, 0.64},
		{"flat, another present", 0.88, 500, heights([2]int{0, 100}, [2]int{100, 100}), Flat, 0.64, 0.64},
		{"a slope", 0.64, 500, heights([2]int{0, 300}, [2]int{100, 20}), Flat, 0.64, 0.64},
		{"noise", 0.64, 200, heights([2]int{0, 30}, [2]int{60, 30}, [2]int{64, 30}, [2]int{68, 22}, [2]int{72, 30}, [2]int{100, 30}),
			Flat, 0.64, 0.64},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Suggest(Facts{Threshold: c.present, Base: 0.64, Contested: c.contested, Partnered: c.partnered})
			if s.Kind != c.kind || s.Threshold < c.lowest || s.Threshold > c.most || s.Sure != (c.kind == Valley || c.kind == Kept) ||
				s.Reason == "" {
				t.Errorf("%+v", s)
			}
		})
	}
}

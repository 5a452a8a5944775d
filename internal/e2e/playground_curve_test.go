package e2e

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/sketch"
)

type curveOfReply struct {
	Positions int       `json:"positions"`
	Matching  []float64 `json:"matching"`
	Errors    []float64 `json:"errors"`
}

type curveCase struct {
	Curve     curveOfReply `json:"curve"`
	Threshold float64      `json:"threshold"`
	At        []float64    `json:"at"`

	bits int
}

type curveAnswer struct {
	Matches  int
	Folds    []float64
	Errors   []float64
	From, To float64
}

// TestPlaygroundCurve holds p(r) and the standard errors that the page shows against those of package sketch.
func TestPlaygroundCurve(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 10))
	var cases []curveCase
	for range 200 {
		c := curveCase{bits: []int{1, 2, 4, 8}[random.IntN(4)], Threshold: 0.05 + 0.95*random.Float64()}
		c.Curve.Positions = 8 * (1 + random.IntN(128))
		for i := range 101 {
			r := float64(i) / 100
			c.Curve.Matching = append(c.Curve.Matching, r+(1-r)/float64(int(1)<<c.bits))
		}
		c.Curve.Errors = make([]float64, 101)
		for range 20 {
			// The agreement of so many equal positions, as two sketches have it.
			values, k, equal := 1<<c.bits, c.Curve.Positions, random.IntN(c.Curve.Positions+1)
			if at := float64(values*equal-k) / float64((values-1)*k); at >= 0 {
				c.At = append(c.At, at)
			}
		}
		cases = append(cases, c)
	}
	for n, got := range modules[curveCase, curveAnswer](t, "curve", cases) {
		c := cases[n]
		chance := func(r float64) float64 { return r + (1-r)/float64(int(1)<<c.bits) }
		needed := int(math.Ceil(float64(c.Curve.Positions)*chance(c.Threshold) - 1e-9))
		if got.Matches != needed {
			t.Errorf("case %d: %d matches, want %d", n, got.Matches, needed)
		}
		for i, r := range c.At {
			if want := sketch.AtLeast(chance(r), needed, c.Curve.Positions); math.Abs(got.Folds[i]-want) > 1e-9 {
				t.Errorf("case %d: p(%v) = %v, want %v", n, r, got.Folds[i], want)
			}
			if want := errorOf(r, c.Curve.Positions, c.bits); math.Abs(got.Errors[i]-want) > 1e-9 {
				t.Errorf("case %d: error at %v: %v, want %v", n, r, got.Errors[i], want)
			}
		}
		for share, r := range map[float64]float64{0.05: got.From, 0.95: got.To} {
			p := sketch.AtLeast(chance(r), needed, c.Curve.Positions)
			if atEdge := r <= 1e-9 && p >= share || r == 1 && p <= share; math.Abs(p-share) > 1e-6 && !atEdge {
				t.Errorf("case %d: a share of %v folds at %v, want %v", n, p, r, share)
			}
		}
	}
}

// errorOf is the standard error that two sketches of this agreement tell.
func errorOf(agreement float64, positions, bits int) float64 {
	values := 1 << bits
	equal := int(math.Round(float64(positions) * (agreement*float64(values-1) + 1) / float64(values)))
	a := sketch.Sketch{Scheme: 1, Bits: uint8(bits), Shingles: 9, Payload: make([]byte, positions*bits/8)}
	b := a
	b.Payload = make([]byte, len(a.Payload))
	for i := range positions - equal {
		b.Payload[i*bits/8] |= 1 << (i * bits % 8)
	}
	e, _ := a.Resemblance(&b)
	return e.Error
}

// TestPlaygroundCurveByErrors: where a scheme counts no positions, p(r) goes by the normal distribution.
func TestPlaygroundCurveByErrors(t *testing.T) {
	c := curveCase{Threshold: 0.6, At: []float64{0, 0.5, 0.58, 0.6, 0.62, 0.7, 1}}
	c.Curve.Matching, c.Curve.Errors = make([]float64, 101), make([]float64, 101)
	for i := range c.Curve.Errors {
		c.Curve.Errors[i] = 0.04
	}
	exact := c
	exact.Curve.Errors = make([]float64, 101)
	answers := modules[curveCase, curveAnswer](t, "curve", []curveCase{c, exact})
	for i, r := range c.At {
		if want := 0.5 * math.Erfc((0.6-r)/0.04/math.Sqrt2); math.Abs(answers[0].Folds[i]-want) > 1e-6 {
			t.Errorf("p(%v) = %v, want %v", r, answers[0].Folds[i], want)
		}
		if got := answers[1].Folds[i]; r < 0.6 && got > 1e-6 || r > 0.6 && got < 1-1e-6 {
			t.Errorf("exact agreements: p(%v) = %v", r, got)
		}
	}
}

type yamlCase struct {
	YAML      string  `json:"yaml"`
	Threshold float64 `json:"threshold"`
	Window    int     `json:"window,omitempty"`
}

// TestPlaygroundYAML: only the values of the two keys are replaced.
func TestPlaygroundYAML(t *testing.T) {
	rule := "- match: \"threshold: 9, window: 9\"\n  fields: [title]\n  threshold: 0.64 # why\n  window: 1000\n  within: {field: at, span: 72h}\n"
	cases := []yamlCase{{rule, 0.7, 0}, {rule, 1, 50}, {strings.Replace(rule, "1000", "20", 1), 0.055, 7}}
	want := []string{
		strings.Replace(rule, "0.64", "0.7", 1),
		strings.NewReplacer("0.64", "1", "1000", "50").Replace(rule),
		strings.NewReplacer("0.64", "0.055", "1000", "7").Replace(rule),
	}
	for n, got := range modules[yamlCase, string](t, "yaml", cases) {
		if got != want[n] {
			t.Errorf("case %d: got\n%s\nwant\n%s", n, got, want[n])
		}
	}
}

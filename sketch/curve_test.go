package sketch

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"text/template"
)

// exactTails returns, for every number of matches from 0 to positions, the sum of AtLeast in numbers of 400 bits: no term is
// negative, so nothing is lost by adding.
func exactTails(r float64, positions int) []*big.Float {
	wide := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
	agree, differ := []*big.Float{wide(1)}, []*big.Float{wide(1)} // powers
	for i := range positions {
		agree = append(agree, wide(0).Mul(agree[i], wide(r)))
		differ = append(differ, wide(0).Mul(differ[i], wide(0).Sub(wide(1), wide(r))))
	}
	tails, sum := make([]*big.Float, positions+1), wide(0)
	for k := positions; k >= 0; k-- {
		ways := wide(0).SetInt(new(big.Int).Binomial(int64(positions), int64(k)))
		sum = wide(0).Add(sum, ways.Mul(ways, wide(0).Mul(agree[k], differ[positions-k])))
		tails[k] = sum
	}
	return tails
}

func relativeError(got float64, want *big.Float) float64 {
	gap := new(big.Float).Sub(want, big.NewFloat(got))
	quotient, _ := gap.Quo(gap.Abs(gap), want).Float64()
	return quotient
}

// TestAtLeastAgainstExactSums holds every result down to 1e-300 to the documented error, and what lies near 1 to the last
// digits of what is missing from it.
func TestAtLeastAgainstExactSums(t *testing.T) {
	tiny, nearOne := 0, 0
	for _, positions := range []int{1, 2, 7, 8, 64, 100, 128, 200, 511, 1024} {
		for i, r := range []float64{1e-12, 1e-3, 0.01, 0.1, 0.25, 0.4, 0.5, 0.6, 0.8, 0.9, 0.95, 0.96, 0.99, 0.999, 1 - 1e-12} {
			if testing.Short() && positions > 64 && i%4 != 0 {
				continue
			}
			for matches, want := range exactTails(r, positions) {
				got := AtLeast(r, matches, positions)
				if want.Cmp(big.NewFloat(1e-300)) < 0 {
					if got > 1.0001e-300 {
						t.Errorf("AtLeast(%v, %d, %d) = %v, want %.4g", r, matches, positions, got, want)
					}
					continue
				}
				wrong := relativeError(got, want)
				if wrong > 1e-12 || got > 1 {
					t.Errorf("AtLeast(%v, %d, %d) = %v, want %.20g: relative error %.2g", r, matches, positions, got, want, wrong)
				}
				missing, _ := new(big.Float).Sub(big.NewFloat(1), want).Float64()
				if math.Abs((1-got)-missing) > 2.3e-16+1e-12*missing {
					t.Errorf("1 - AtLeast(%v, %d, %d) = %v, want %v", r, matches, positions, 1-got, missing)
				}
				if got < 1e-200 {
					tiny++
				}
				if missing < 1e-6 {
					nearOne++
				}
			}
		}
	}
	if tiny < 10 || nearOne < 10 {
		t.Errorf("%d tiny results and %d near 1 are too few to say anything", tiny, nearOne)
	}
	// Far more positions than any sketch has: neither overflow nor underflow on the way, and the error grows no faster than they do.
	if testing.Short() {
		return
	}
	for matches, want := range exactTails(0.5, 3000) {
		if got := AtLeast(0.5, matches, 3000); want.Cmp(big.NewFloat(1e-300)) > 0 && relativeError(got, want) > 3e-12 {
			t.Errorf("AtLeast(0.5, %d, 3000) = %v, want %.20g", matches, got, want)
		}
	}
}

func TestAtLeastOfAnyArguments(t *testing.T) {
	for _, c := range []struct {
		r                  float64
		matches, positions int
		want               float64
	}{
		{0, 1, 100, 0}, {0, 0, 100, 1}, {1, 100, 100, 1}, {1, 101, 100, 0}, {0.5, 0, 100, 1}, {0.5, -3, 100, 1},
		{0.5, 101, 100, 0}, {0.5, 0, 0, 1}, {0.5, 1, 0, 0}, {0.5, 1, -5, 0}, {0.5, 0, -5, 1}, {-0.1, 1, 10, 0}, {1.1, 10, 10, 1},
		{math.Inf(-1), 1, 10, 0}, {math.Inf(1), 10, 10, 1}, {math.Copysign(0, -1), 1, 10, 0}, {0.25, 1, 1, 0.25},
		{1e-3, 1024, 1024, 0}, {math.NaN(), 1, 10, math.NaN()}, {math.NaN(), 0, 10, math.NaN()},
	} {
		got := AtLeast(c.r, c.matches, c.positions)
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("AtLeast(%v, %d, %d) = %v, want %v", c.r, c.matches, c.positions, got, c.want)
		}
	}
}

// TestAtLeastOfTheLecture holds the figures that CS124 prints. Its "almost 10^-18" for resemblance 0.5 is that of 91
// matches: for 90 it is 1.53e-17.
func TestAtLeastOfTheLecture(t *testing.T) {
	for _, line := range lecture(t, "cs124")("curve") {
		r, err1 := strconv.ParseFloat(line[0], 64)
		bound, err2 := strconv.ParseFloat(line[3], 64)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		matches := atoi(t, line[1])
		p := AtLeast(r, matches, 100)
		switch line[2] {
		case "below":
			if p >= bound || p < bound*0.9 {
				t.Errorf("p(%v) = %v, printed below %v", r, p, bound)
			}
		case "above":
			if p <= bound || p > bound+0.001 {
				t.Errorf("p(%v) = %v, printed above %v", r, p, bound)
			}
		case "almost":
			next := AtLeast(r, matches+1, 100)
			if fmt.Sprintf("%.3g %.3g", p, next) != "1.53e-17 1.66e-18" || p < 10*bound || next > 2*bound || next < bound {
				t.Errorf("p(%v) = %.3g, for one match more %.3g; printed almost %v", r, p, next, bound)
			}
		default:
			t.Errorf("relation %q", line[2])
		}
	}
}

// TestCandidate holds the S-curve against exact arithmetic and the figures of "Mining of Massive Datasets" for 20 bands of 5.
func TestCandidate(t *testing.T) {
	for r, want := range map[float64]string{0.2: "0.006", 0.3: "0.047", 0.4: "0.186", 0.5: "0.470", 0.6: "0.802", 0.7: "0.975"} {
		if got := fmt.Sprintf("%.3f", Candidate(r, 20, 5)); got != want {
			t.Errorf("Candidate(%v, 20, 5) = %s, want %s", r, got, want)
		}
	}
	one := func() *big.Float { return new(big.Float).SetPrec(3000).SetInt64(1) }
	power := func(x *big.Float, n int) *big.Float {
		p := one()
		for range n {
			p.Mul(p, x)
		}
		return p
	}
	for _, r := range []float64{1e-9, 1e-3, 0.1, 0.3, 0.5, 0.8, 0.9, 0.99, 1 - 1e-9} {
		for _, c := range []struct{ bands, rows int }{{1, 1}, {1, 20}, {20, 5}, {16, 8}, {32, 4}, {128, 1}, {1024, 30}} {
			each := power(new(big.Float).SetPrec(3000).SetFloat64(r), c.rows)
			want := one().Sub(one(), power(each.Sub(one(), each), c.bands))
			if wrong := relativeError(Candidate(r, c.bands, c.rows), want); wrong > 1e-13 {
				t.Errorf("Candidate(%v, %d, %d): relative error %.2g of %.6g", r, c.bands, c.rows, wrong, want)
			}
		}
	}
	for _, c := range []struct {
		r           float64
		bands, rows int
		want        float64
	}{{0, 4, 4, 0}, {1, 4, 4, 1}, {-1, 4, 4, 0}, {2, 4, 4, 1}, {0.5, 0, 4, 0}, {0.5, 4, 0, 0}, {1, -1, 4, 0}, {1, 4, -1, 0}} {
		if got := Candidate(c.r, c.bands, c.rows); got != c.want {
			t.Errorf("Candidate(%v, %d, %d) = %v, want %v", c.r, c.bands, c.rows, got, c.want)
		}
	}
	if got := Candidate(math.NaN(), 0, 4); !math.IsNaN(got) {
		t.Errorf("Candidate of NaN = %v", got)
	}
}

// setPair draws two random sets of which common elements are shared and own more are in one alone, by turns.
func setPair(r *rand.Rand, common, own int) (a, b []uint64) {
	for range common {
		x := r.Uint64()
		a, b = append(a, x), append(b, x)
	}
	for i := range own {
		if i%2 == 0 {
			a = append(a, r.Uint64())
		} else {
			b = append(b, r.Uint64())
		}
	}
	return a, b
}

// sketchPairs draws trials pairs of sets of resemblance common/(common+own), sketches both into 100 positions and calls f
// with them.
func sketchPairs(seed uint64, trials, common, own int, family func(slots, set []uint64), f func(a, b []uint64)) {
	r := rand.New(rand.NewPCG(124, seed))
	one, other := make([]uint64, 100), make([]uint64, 100)
	for range trials {
		a, b := setPair(r, common, own)
		family(one, a)
		family(other, b)
		f(one, other)
	}
}

const curveFile = "../docs/images/curve.svg"

// TestCurveDrawing holds docs/images/curve.svg against the curve and the simulation it shows. Seeds are fixed and
// coordinates rounded, so the bytes are the same on every machine; -update writes them.
func TestCurveDrawing(t *testing.T) {
	if testing.Short() {
		t.Skip("it sketches 31,000 pairs")
	}
	got := drawCurve(t)
	if *update {
		if err := os.MkdirAll(filepath.Dir(curveFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(curveFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(curveFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is not what the curve draws: go test ./sketch -run TestCurveDrawing -update, and look at it", curveFile)
	}
}

// The plot in the drawing's units: resemblance from plotFrom to 1, probability from 0 to 1, and how many pairs are sketched
// for a dot.
const (
	plotLeft, plotRight, plotTop, plotBottom = 84.0, 724.0, 64.0, 394.0
	plotFrom                                 = 0.5
	plotPairs                                = 1000
)

// plotPoint is a place in the drawing, with the text that stands there.
type plotPoint struct{ X, Y, Label string }

func plotAt(r, p float64, label string) plotPoint {
	place := func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
	return plotPoint{
		X:     place(plotLeft + (r-plotFrom)/(1-plotFrom)*(plotRight-plotLeft)),
		Y:     place(plotBottom - p*(plotBottom-plotTop)),
		Label: label,
	}
}

func drawCurve(t *testing.T) []byte {
	t.Helper()
	var d struct {
		Line, Dots, Rings, Across, Up []plotPoint
		Threshold                     plotPoint
		Pairs                         string
	}
	for i := range 401 {
		r := plotFrom + (1-plotFrom)*float64(i)/400
		d.Line = append(d.Line, plotAt(r, AtLeast(r, 90, 100), ""))
	}
	for common := 40; common <= 80; common++ { // of 80 elements in all
		if common < 60 && common%2 != 0 {
			continue // flat there
		}
		similar := 0
		sketchPairs(uint64(1000+common), plotPairs, common, 80-common, permutations, func(a, b []uint64) {
			if agreeing(a, b) >= 90 {
				similar++
			}
		})
		r, share := float64(common)/80, float64(similar)/plotPairs
		if p := AtLeast(r, 90, 100); math.Abs(share-p) > 4.5*math.Sqrt(p*(1-p)/plotPairs)+1.0/plotPairs {
			t.Errorf("the dot at %v lies at %v, off the line at %v", r, share, p)
		}
		d.Dots = append(d.Dots, plotAt(r, share, ""))
	}
	for _, r := range []float64{0.8, 0.95, 0.96} {
		d.Rings = append(d.Rings, plotAt(r, AtLeast(r, 90, 100), fmt.Sprintf("p(%v) = %.4f", r, AtLeast(r, 90, 100))))
	}
	for i := range 6 {
		d.Across = append(d.Across, plotAt(plotFrom+float64(i)/10, 0, fmt.Sprintf("%.1f", plotFrom+float64(i)/10)))
		d.Up = append(d.Up, plotAt(plotFrom, float64(i)/5, fmt.Sprintf("%.1f", float64(i)/5)))
	}
	d.Threshold, d.Pairs = plotAt(0.9, 1, ""), "1,000"
	var b bytes.Buffer
	if err := curveTemplate.Execute(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var curveTemplate = template.Must(template.New("curve").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 464"
  role="img" aria-labelledby="title desc">
<title id="title">The chance that 90 of 100 positions agree</title>
<desc id="desc">A curve over the resemblance of two documents: next to 0 up to 0.8, one half just below 0.9, next to 1 from
0.96 on. Dots from sketching random pairs of sets lie on it.</desc>
<style>
  svg { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }
  .paper { fill: #ffffff }
  text { fill: #5b6675 }
  .head, .name { fill: #1f2937 }
  .head { font-size: 17px; font-weight: 600 }
  .grid { stroke: #e5e9ef }
  .axis, .mark { stroke: #5b6675 }
  .mark { stroke-dasharray: 2 4 }
  .area { fill: #2463c9; opacity: .09 }
  .curve { fill: none; stroke: #2463c9; stroke-width: 2.5; stroke-linejoin: round }
  .dot { fill: #d9480f; stroke: #ffffff }
  .ring { fill: none; stroke: #1f2937; stroke-width: 1.5 }
  .end { text-anchor: end }
  .middle { text-anchor: middle }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #11161d }
    text { fill: #9aa7b6 }
    .head, .name { fill: #e6eaf0 }
    .grid { stroke: #28313c }
    .axis, .mark { stroke: #9aa7b6 }
    .area { fill: #6ea8fe }
    .curve { stroke: #6ea8fe }
    .dot { fill: #ffa066; stroke: #11161d }
    .ring { stroke: #e6eaf0 }
  }
</style>
<rect class="paper" width="760" height="464" rx="8"/>
<text class="head" x="84" y="36">When do 90 of 100 positions agree?</text>
{{- range .Up}}
<line class="grid" x1="84" x2="724" y1="{{.Y}}" y2="{{.Y}}"/><text class="end" x="74" y="{{.Y}}" dy="4.5">{{.Label}}</text>
{{- end}}
{{- range .Across}}
<line class="axis" x1="{{.X}}" x2="{{.X}}" y1="394" y2="400"/><text class="middle" x="{{.X}}" y="417">{{.Label}}</text>
{{- end}}
<line class="axis" x1="84" x2="724" y1="394" y2="394"/>
<line class="mark" x1="{{.Threshold.X}}" x2="{{.Threshold.X}}" y1="{{.Threshold.Y}}" y2="394"/>
<path class="area" d="M84 394{{range .Line}}L{{.X}} {{.Y}}{{end}}L724 394z"/>
<path class="curve" d="{{range $i, $p := .Line}}{{if $i}}L{{else}}M{{end}}{{$p.X}} {{$p.Y}}{{end}}"/>
{{- range .Dots}}
<circle class="dot" cx="{{.X}}" cy="{{.Y}}" r="4"/>
{{- end}}
{{- range .Rings}}
<circle class="ring" cx="{{.X}}" cy="{{.Y}}" r="7.5"/>
{{- end}}
<line class="curve" x1="104" x2="130" y1="88" y2="88"/>
<text class="name" x="142" y="92.5">p(r) = Σ C(100, k) rᵏ (1−r)¹⁰⁰⁻ᵏ for k = 90 … 100</text>
<circle class="dot" cx="117" cy="111" r="4"/>
<text class="name" x="142" y="115.5">the share found among {{.Pairs}} random pairs of sets, sketched</text>
<circle class="ring" cx="117" cy="149" r="7.5"/>
<text class="name" x="142" y="153.5">the lecture's examples (CS124, lecture 12)</text>
<text x="142" y="177">{{range $i, $p := .Rings}}{{if $i}},  {{end}}{{$p.Label}}{{end}}</text>
<text class="middle" x="404" y="446">resemblance r of two documents</text>
<text class="middle" transform="translate(32 229) rotate(-90)">probability that they pass for near-duplicates</text>
</svg>
`))

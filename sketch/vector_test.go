package sketch

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

var vectorScheme = Scheme{Family: SimHash, Features: Vectors, Positions: 1024}

// angleBetween returns the angle between two vectors.
func angleBetween(a, b []float32) float64 {
	var ab, aa, bb float64
	for i, x := range a {
		y := float64(b[i])
		ab, aa, bb = ab+float64(x)*y, aa+float64(x)*float64(x), bb+y*y
	}
	return math.Acos(max(-1, min(1, ab/math.Sqrt(aa*bb))))
}

// at returns a vector at an angle to another one, in a random direction.
func at(r *rand.Rand, v []float32, angle float64) []float32 {
	other, along, square := make([]float64, len(v)), 0.0, 0.0
	for i, x := range v {
		other[i] = r.NormFloat64()
		along, square = along+other[i]*float64(x), square+float64(x)*float64(x)
	}
	length := 0.0
	for i, x := range v {
		other[i] -= along / square * float64(x)
		length += other[i] * other[i]
	}
	turned := make([]float32, len(v))
	for i, x := range v {
		turned[i] = float32(math.Cos(angle)*float64(x)/math.Sqrt(square) + math.Sin(angle)*other[i]/math.Sqrt(length))
	}
	return turned
}

// deviations are the errors of estimated angles in units of the standard error that theory gives: π·sqrt(p(1-p)/P) with p = θ/π (Charikar 2002).
type deviations struct{ n, sum, squares float64 }

func (d *deviations) add(t *testing.T, s *Sketcher, a, b []float32) {
	t.Helper()
	first, ok1 := s.SketchVector(a)
	second, ok2 := s.SketchVector(b)
	angle, comparable := first.angle(&second)
	if !ok1 || !ok2 || !comparable {
		t.Fatal("not comparable")
	}
	truth := angleBetween(a, b)
	p := truth / math.Pi
	deviation := (angle.Value - truth) / (math.Pi * math.Sqrt(p*(1-p)/float64(s.scheme.Positions)))
	if math.Abs(deviation) > 6 {
		t.Errorf("angle %.4f is estimated as %.4f: %.1f standard errors", truth, angle.Value, deviation)
	}
	if agreement, _ := first.Agreement(&second); math.Abs(agreement-math.Cos(angle.Value)) > 1e-12 {
		t.Errorf("agreement %v at the angle %v", agreement, angle.Value)
	}
	d.n, d.sum, d.squares = d.n+1, d.sum+deviation, d.squares+deviation*deviation
}

// check fails where the mean of the errors is not 0, or their spread more than theory says.
func (d *deviations) check(t *testing.T, name string) {
	t.Helper()
	mean, spread := d.sum/d.n, math.Sqrt(d.squares/d.n)
	t.Logf("%s: %.0f pairs, mean error %+.3f, spread %.3f standard errors", name, d.n, mean, spread)
	if math.Abs(mean) > 5/math.Sqrt(d.n) || spread > 1+4/math.Sqrt(2*d.n) {
		t.Errorf("%s: mean error %+.3f, spread %.3f standard errors of %.0f pairs", name, mean, spread, d.n)
	}
}

// TestVectorAngles holds estimated angles of random vectors against theory: few and many dimensions, whole numbers, a few numbers that are not zero.
func TestVectorAngles(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 4))
	kinds := map[string]func() float32{
		"normal":  func() float32 { return float32(r.NormFloat64()) },
		"bytes":   func() float32 { return float32(r.IntN(256) - 128) },
		"sparse":  func() float32 { return float32(max(0, r.IntN(100)-95)) },
		"shifted": func() float32 { return float32(3 + r.NormFloat64()) },
	}
	for name, number := range kinds {
		for _, dimensions := range []int{2, 3, 50, 384, 768, 1536} {
			var d deviations
			for range effort.Rounds(500) {
				s := expect.Value(New(Scheme{Family: SimHash, Features: Vectors, Positions: 1024, Seed: fmt.Sprint(r.Uint64())}))(t)
				v := make([]float32, dimensions)
				for i := range v {
					v[i] = number()
				}
				v[r.IntN(dimensions)] = 1
				d.add(t, s, v, at(r, v, 0.1+3*r.Float64()))
			}
			d.check(t, fmt.Sprint(name, ", ", dimensions))
		}
	}
}

// TestVectorAnglesOfTexts does the same for vectors of real texts: how often words occur in the paragraphs of the manual, hashed to 500 dimensions.
func TestVectorAnglesOfTexts(t *testing.T) {
	var list [][]float32
	for _, page := range expect.Value(filepath.Glob("../docs/*.md"))(t) {
		for paragraph := range strings.SplitSeq(string(expect.Value(os.ReadFile(page))(t)), "\n\n") {
			words := strings.Fields(paragraph)
			v := make([]float32, 500)
			for _, word := range words {
				h := fnv.New32a()
				_, _ = h.Write([]byte(word))
				v[h.Sum32()%500]++
			}
			if len(words) > 20 {
				list = append(list, v)
			}
		}
	}
	r := rand.New(rand.NewPCG(25, 5))
	var d deviations
	for range effort.Rounds(10000) {
		s := expect.Value(New(Scheme{Family: SimHash, Features: Vectors, Positions: 1024, Seed: fmt.Sprint(r.Uint64())}))(t)
		if a, b := list[r.IntN(len(list))], list[r.IntN(len(list))]; angleBetween(a, b) > 0.01 {
			d.add(t, s, a, b)
		}
	}
	d.check(t, "paragraphs")
}

// TestVectorForms reads one vector in all forms, at any length: the sketch says only which way it points.
func TestVectorForms(t *testing.T) {
	s := expect.Value(New(vectorScheme))(t)
	r := rand.New(rand.NewPCG(25, 6))
	for range 200 {
		v := make([]float32, 1+r.IntN(40))
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		want, ok := s.SketchVector(v)
		if !ok {
			t.Fatal("no sketch")
		}
		var raw []byte
		twice := make([]float32, len(v))
		for i, x := range v {
			raw = binary.BigEndian.AppendUint32(raw, math.Float32bits(x))
			twice[i] = 2 * x
		}
		list := expect.Value(json.MarshalIndent(v, " ", "\t"))(t)
		longer, _ := s.SketchVector(twice)
		for _, got := range []Sketch{first(s.Sketch(string(list))), first(s.Sketch(base64.StdEncoding.EncodeToString(raw))), longer} {
			expect.Same(t, want.String(), got.String(), "%s", list)
		}
		expect.Same(t, want.Fingerprint, s.Fingerprint(string(list)), "fingerprint of %s", list)
		other, _ := s.SketchVector(append(v, 0))
		if _, comparable := want.Agreement(&other); comparable {
			t.Fatal("vectors of other dimensions are compared")
		}
	}
}

func first(k Sketch, _ bool) Sketch { return k }

// TestNoVector lists what has no sketch.
func TestNoVector(t *testing.T) {
	s := expect.Value(New(vectorScheme))(t)
	for _, texts := range [][]string{
		{}, {""}, {"[]"}, {"[0,0]"}, {"[1,NaN]"}, {"[1e39]"}, {"[1e-60]"}, {"[1,]"}, {"[1"}, {"1]"}, {"[[1,2]]"}, {`["1"]`}, {"[1 2]"}, {"word"}, {"AAAA"},
		{"[1]", "[2]"}, {"f4AAAA=="}, {strings.Repeat("0a7fC4ff", 4)},
		{base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{63, 128, 0, 0}, maxDimensions+1))}, {"[" + strings.Repeat("1,", maxDimensions) + "1]"},
	} {
		if k, ok := s.Sketch(texts...); ok {
			t.Errorf("%.40q has the sketch %s", texts, k)
		}
	}
	if _, ok := s.SketchVector([]float32{1, float32(math.Inf(1))}); ok {
		t.Error("an infinite vector has a sketch")
	}
}

// BenchmarkVector sketches a vector, from JSON and from numbers.
func BenchmarkVector(b *testing.B) {
	for _, dimensions := range []int{384, 768, 1536, 3072} {
		r := rand.New(rand.NewPCG(25, 7))
		v := make([]float32, dimensions)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		list, _ := json.Marshal(v)
		text := string(list)
		s, _ := New(vectorScheme)
		var k Sketch
		b.Run(fmt.Sprint("json/", dimensions), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.SketchInto(&k, text)
			}
		})
		b.Run(fmt.Sprint("numbers/", dimensions), func(b *testing.B) {
			for b.Loop() {
				s.SketchVector(v)
			}
		})
	}
}

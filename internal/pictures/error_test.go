package pictures

import (
	"fmt"
	"math"
	"sync"

	"github.com/neardup/sidecar/sketch"
)

// lengths are the lengths of sketch whose error is shown.
var lengths = []int{16, 32, 64, 128, 256, 512, 1024}

// kinds are the pairs whose error is measured: their resemblance, and how they are drawn.
var kinds = []struct {
	resemblance       float64
	line, class, text string
}{
	{0.5, "line-one", "dot-one", "one"},
	{0.8, "line-two", "dot-two", "two"},
	{0.95, "line-three", "dot-three", "three"},
}

const (
	errorPairs  = 400
	longTexts   = 1000 // shingles of each text of a filled dot
	shortTexts  = 30   // of each of a hollow one
	shownInText = 0.8  // the resemblance for which figures are written below the axis
)

// theory is the standard error of an agreement of k independent positions of one byte.
func theory(r float64, k int) float64 {
	q := matching(r)
	return math.Sqrt(q*(1-q)/float64(k)) * 256 / 255
}

// errorsOf is the root of the mean square of agreement less resemblance, for every length of sketch, over pairs of texts of n
// shingles.
func errorsOf(n int, r float64) (exact float64, errs []float64) {
	source := newSource(uint64(n) + uint64(math.Round(1000*r)))
	squares := make([]float64, len(lengths))
	var sketchers []*sketch.Sketcher
	for _, k := range lengths {
		sketchers = append(sketchers, sketcher(func(s *sketch.Scheme) { s.Positions = k }))
	}
	for range errorPairs {
		var a, b string
		a, b, exact = source.pair(n, r)
		for i, s := range sketchers {
			one, _ := s.Sketch(a)
			other, _ := s.Sketch(b)
			agreement, _ := one.Agreement(&other)
			squares[i] += (agreement - exact) * (agreement - exact)
		}
	}
	for _, sum := range squares {
		errs = append(errs, math.Sqrt(sum/errorPairs))
	}
	return exact, errs
}

// errors are what was measured, once for the picture and its test.
var measuredErrors = sync.OnceValue(func() map[int][][]float64 {
	all := map[int][][]float64{}
	for _, n := range []int{longTexts, shortTexts} {
		for _, kind := range kinds {
			_, errs := errorsOf(n, kind.resemblance)
			all[n] = append(all[n], errs)
		}
	}
	return all
})

// drawError shows the standard error of an agreement over the length of the sketch.
func drawError() ([]byte, error) {
	p := plot{left: 84, right: 764, top: 70, bottom: 370, fromX: math.Log2(16) - 0.3, toX: math.Log2(1024) + 0.3, toY: 0.14}
	var d drawing
	d.text(24, 38, "title", "How far an agreement is off, by the length of the sketch")
	p.up(&d, []float64{0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14}, func(v float64) string { return fmt.Sprintf("%.2f", v) })
	var at []float64
	for _, k := range lengths {
		at = append(at, math.Log2(float64(k)))
	}
	p.across(&d, at, func(v float64) string { return thousands(int(math.Round(math.Exp2(v)))) })
	standard := p.x(math.Log2(float64(defaults.Positions)))
	d.line(standard, p.top, standard, p.bottom, "mark")
	d.text(standard+6, p.top+12, "small", "the default")
	all := measuredErrors()
	for i, kind := range kinds {
		p.curve(&d, kind.line, at[0], at[len(at)-1], 120, func(v float64) float64 {
			q := matching(kind.resemblance)
			return math.Sqrt(q*(1-q)/math.Exp2(v)) * 256 / 255
		})
		for j := range lengths {
			d.dot(p.x(at[j]), p.y(all[shortTexts][i][j]), 4, kind.class+" hollow")
			d.dot(p.x(at[j]), p.y(all[longTexts][i][j]), 4, kind.class)
		}
	}
	d.legend(p)
	p.name(&d, "positions of a sketch", "standard error of an agreement")
	d.sizes(p, at)
	desc := fmt.Sprintf("Three curves that fall with the square root of the number of positions, for pairs of resemblance "+
		"%v, %v and %v. "+
		"Filled dots, measured on long texts, lie on them; hollow ones, measured on short texts, lie below. At %d positions and "+
		"resemblance %v the error is %.3f.", kinds[0].resemblance, kinds[1].resemblance, kinds[2].resemblance,
		defaults.Positions, shownInText, theory(shownInText, defaults.Positions))
	return d.done(474, "The error of an agreement by the length of the sketch", desc), nil
}

func (d *drawing) legend(p plot) {
	x, y := p.x(7.25), p.top+34
	for i, kind := range kinds {
		at := y + float64(i)*22
		d.line(x, at, x+28, at, kind.line)
		d.text(x+38, at+4.5, kind.text+" strong", fmt.Sprintf("pairs of resemblance %v", kind.resemblance))
	}
	y += float64(len(kinds)) * 22
	d.text(x, y+6, "small", "lines: √(r(1−r)/k), of one byte a position")
	d.dot(x+6, y+21, 4, "dot-one")
	d.text(x+18, y+25, "small", fmt.Sprintf("measured on %d pairs of texts", errorPairs))
	d.text(x+18, y+40, "small", fmt.Sprintf("of %s shingles each", thousands(longTexts)))
	d.dot(x+6, y+55, 4, "dot-one hollow")
	d.text(x+18, y+59, "small", fmt.Sprintf("the same, of %d shingles each", shortTexts))
}

// sizes writes below the axis how long a sketch is.
func (d *drawing) sizes(p plot, at []float64) {
	d.text(p.left-10, p.bottom+80, "end small", "length")
	for i, k := range lengths {
		s, _ := sketcher(func(s *sketch.Scheme) { s.Positions = k }).Sketch(report, reprint, unlike) // as in the table of the same page
		d.text(p.x(at[i]), p.bottom+80, "middle small", thousands(len(s.String()))+" B")
	}
}

package pictures

import (
	"fmt"
	"math"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// folding is one curve of the picture: the lengths of sketch that are shown, and how they are drawn.
var folding = []struct {
	k           int
	line, class string
	label       string
}{
	{32, "line-two", "dot-two", "two"},
	{128, "line-one", "dot-one", "one"},
	{512, "line-three", "dot-three", "three"},
}

const (
	foldPairs    = 800 // sketched for each dot
	foldShingles = 300 // of each of their texts
)

// foldedShares returns, for each length of sketch, how many of the pairs of a resemblance reach the threshold.
func foldedShares(r, threshold float64) (exact float64, shares []float64) {
	source := newSource(uint64(math.Round(1000 * r)))
	var sketchers []*sketch.Sketcher
	for _, f := range folding {
		sketchers = append(sketchers, sketcher(func(s *sketch.Scheme) { s.Positions = f.k }))
	}
	shares = make([]float64, len(folding))
	for range foldPairs {
		var a, b string
		a, b, exact = source.pair(foldShingles, r)
		for i, s := range sketchers {
			one, _ := s.Sketch(a)
			other, _ := s.Sketch(b)
			if agreement, _ := one.Agreement(&other); agreement >= threshold {
				shares[i] += 1.0 / foldPairs
			}
		}
	}
	return exact, shares
}

// drawThreshold shows how probable it is that a pair folds, over its resemblance.
func drawThreshold() ([]byte, error) {
	threshold := rerank.Default().Threshold
	p := plot{left: 84, right: 764, top: 84, bottom: 404, fromX: 0.4, toX: 0.9, fromY: 0, toY: 1}
	var d drawing
	d.text(24, 38, "title", fmt.Sprintf("Which pairs fold at a threshold of %.2f?", threshold))
	p.up(&d, []float64{0, 0.25, 0.5, 0.75, 1}, func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) })
	p.across(&d, []float64{0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, func(v float64) string { return fmt.Sprintf("%.1f", v) })
	d.line(p.x(threshold), p.top-14, p.x(threshold), p.bottom, "mark")
	d.text(p.x(threshold)+6, p.top-6, "small", "the threshold")
	for _, f := range folding {
		m := matches(threshold, f.k)
		p.curve(&d, f.line, p.fromX, p.toX, 200, func(r float64) float64 { return sketch.AtLeast(matching(r), m, f.k) })
	}
	for r := 0.45; r < 0.86; r += 0.025 {
		exact, shares := foldedShares(r, threshold)
		for i, f := range folding {
			d.dot(p.x(exact), p.y(shares[i]), 4, f.class)
		}
	}
	x, y := p.left+16, p.top+14
	for i, f := range folding {
		at := y + float64(i)*22
		d.line(x, at, x+28, at, f.line)
		d.dot(x+14, at, 4, f.class)
		name := fmt.Sprintf("%d positions", f.k)
		if f.k == defaults.Positions {
			name += ", the default"
		}
		d.text(x+38, at+4.5, f.label+" strong", name)
	}
	at := y + 3*22 + 6
	for i, line := range []string{
		"lines: p(r), the sum of a binomial",
		fmt.Sprintf("dots: the share of %s pairs", thousands(foldPairs)),
		fmt.Sprintf("of %d shingles each, sketched", foldShingles),
	} {
		d.text(x, at+float64(i)*17, "small", line)
	}
	p.name(&d, "resemblance r of the two texts", "share of the pairs that fold")
	desc := fmt.Sprintf("Three curves that rise from 0 to 1 around the threshold of %.2f, the more steeply the more "+
		"positions a sketch "+
		"has: %d, %d, %d. Dots on them are shares counted among pairs of texts that were sketched.",
		threshold, folding[0].k, folding[1].k, folding[2].k)
	return d.done(466, "How probable it is that a pair folds", desc), nil
}

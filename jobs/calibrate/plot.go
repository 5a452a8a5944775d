package calibrate

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// plot draws one picture. Coordinates of the data are turned into those of the picture; colours are classes of the page's
// style, so that they follow light and dark.
type plot struct {
	strings.Builder
	xMin, xMax, yMax float64
}

// The picture and the place of the data in it.
const (
	plotWidth, plotHeight            = 760, 300
	left, right, top, bottom         = 64, 16, 16, 44
	dataWidth, dataHeight    float64 = plotWidth - left - right, plotHeight - top - bottom
)

// newPlot begins a picture. Its title and description are read out where it can't be seen.
func newPlot(title, description string, xMin, xMax, yMax float64) *plot {
	p := &plot{xMin: xMin, xMax: xMax, yMax: yMax}
	fmt.Fprintf(p, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s"><title>%s</title>`,
		plotWidth, plotHeight, html.EscapeString(title+". "+description), html.EscapeString(title))
	return p
}

func (p *plot) x(value float64) float64 { return left + (value-p.xMin)/(p.xMax-p.xMin)*dataWidth }

func (p *plot) y(value float64) float64 { return top + dataHeight*(1-min(1, max(0, value/p.yMax))) }

func (p *plot) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(p, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (p *plot) text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(p, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, html.EscapeString(text))
}

// axes draws both axes: x at every step of its scale, y at the given values with their labels.
func (p *plot) axes(xStep float64, name string, at []float64, labels []string) {
	for i, value := range at {
		p.line("grid", left, p.y(value), plotWidth-right, p.y(value))
		p.text("tick", "end", left-6, p.y(value)+4, labels[i])
	}
	for n := 0; ; n++ {
		x := p.xMin + float64(n)*xStep
		if x > p.xMax+1e-9 {
			break
		}
		p.line("axis", p.x(x), top+dataHeight, p.x(x), top+dataHeight+4)
		p.text("tick", "middle", p.x(x), top+dataHeight+17, fmt.Sprintf("%.1f", x))
	}
	p.line("axis", left, top+dataHeight, plotWidth-right, top+dataHeight)
	p.text("name", "middle", left+dataWidth/2, plotHeight-6, name)
}

// path draws a line through points.
func (p *plot) path(class string, points [][2]float64) {
	fmt.Fprintf(p, `<path class="%s" d="`, class)
	for i, point := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(p, "%s%.1f %.1f", command, p.x(point[0]), p.y(point[1]))
	}
	p.WriteString(`"/>`)
}

// thresholds draws the present threshold and the suggested one.
func (p *plot) thresholds(r *Report) {
	now, then := r.Threshold, r.Suggestion.Threshold
	if math.Abs(now-then) < 0.005 {
		p.line("now", p.x(now), top, p.x(now), top+dataHeight)
		p.text("mark", "end", p.x(now)-5, top+11, fmt.Sprintf("present = suggested %.2f", now))
		return
	}
	anchors := [2]string{"end", "start"}
	shift := -5.0
	if now > then {
		anchors, shift = [2]string{"start", "end"}, 5
	}
	p.line("now", p.x(now), top, p.x(now), top+dataHeight)
	p.text("mark", anchors[0], p.x(now)+shift, top+11, fmt.Sprintf("present %.2f", now))
	p.line("then", p.x(then), top, p.x(then), top+dataHeight)
	p.text("mark", anchors[1], p.x(then)-shift, top+11, fmt.Sprintf("suggested %.2f", then))
}

// end returns the picture. All that is text in it was escaped.
func (p *plot) end() template.HTML {
	p.WriteString("</svg>")
	return template.HTML(p.String()) // #nosec G203 -- numbers, names of our own, and what was escaped
}

// plotHistogram draws how many pairs there are of each agreement.
func plotHistogram(r *Report) template.HTML {
	most := max(1, largest(&r.Random), largest(&r.Candidates))
	high := math.Ceil(math.Log10(most + 1))
	p := newPlot("Pairs by agreement", "For each twentieth of agreement, how many random pairs and how many candidate pairs "+
		"there are, on a "+
		"logarithmic scale. The figures stand in the table below.", 0, 1, high)
	var at []float64
	var labels []string
	for n := range int(high) + 1 {
		at, labels = append(at, float64(n)), append(labels, group(math.Pow10(n)))
	}
	p.axes(0.1, "agreement", at, labels)
	width := dataWidth / Bins
	for bin := range Bins {
		for i, n := range []float64{r.Random.Found[bin], r.Candidates.Estimated[bin]} {
			if n <= 0 {
				continue
			}
			y := p.y(max(0.06*high/3, math.Log10(max(1, n))))
			class := [...]string{"random", "candidate"}[i]
			fmt.Fprintf(p, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f">`+
				"<title>%.0f %s pairs from %.2f to %.2f</title></rect>",
				class, p.x(float64(bin)/Bins)+2+float64(i)*(width-4)/2, y, (width-4)/2, top+dataHeight-y, n, class,
				float64(bin)/Bins, float64(bin+1)/Bins)
		}
	}
	p.thresholds(r)
	return p.end()
}

// group returns a power of ten in short.
func group(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.0fG", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.0fM", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0fk", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}

// plotShares draws what each threshold makes of the documents.
func plotShares(r *Report) template.HTML {
	most := 0.05
	for _, s := range r.Shares {
		most = max(most, s.High, s.Contested)
	}
	most = min(1, math.Ceil(most*20)/20)
	p := newPlot("What each threshold makes of the documents", "The share of documents that would fold at each threshold, with the "+
		"interval in which it lies, and the share that is contested. The figures stand in the table below.", 0.3, 1, most)
	var at []float64
	var labels []string
	for n := range 6 {
		share := most * float64(n) / 5
		at, labels = append(at, share), append(labels, fmt.Sprintf("%.0f %%", 100*share))
	}
	p.axes(0.1, "threshold", at, labels)
	var folded, contested, around [][2]float64
	for _, s := range r.Shares {
		folded = append(folded, [2]float64{s.Threshold, s.Folded})
		contested = append(contested, [2]float64{s.Threshold, s.Contested})
		around = append(around, [2]float64{s.Threshold, s.High})
	}
	for i := len(r.Shares) - 1; i >= 0; i-- {
		around = append(around, [2]float64{r.Shares[i].Threshold, r.Shares[i].Low})
	}
	p.path("between", around)
	p.path("folded", folded)
	p.path("contested", contested)
	p.thresholds(r)
	return p.end()
}

// plotCurve draws p(r), and what was measured.
func plotCurve(r *Report) template.HTML {
	k := &r.Curve
	p := newPlot(fmt.Sprintf("p(r) at the threshold %.2f", k.Threshold),
		"How probable it is that a pair of the resemblance r folds, with what "+
			"was measured on pairs of this index and its intervals, and how probable it is that its bands bring it together. The "+
			"figures stand in the table below.", 0, 1, 1)
	p.axes(0.1, "resemblance r", []float64{0, 0.25, 0.5, 0.75, 1}, []string{"0", "0.25", "0.5", "0.75", "1"})
	fmt.Fprintf(p, `<rect class="doubt" x="%.1f" y="%d" width="%.1f" height="%.1f"/>`, p.x(k.From), top, max(0,
		p.x(k.To)-p.x(k.From)), dataHeight)
	var folds, candidate [][2]float64
	for _, point := range k.Points {
		folds = append(folds, [2]float64{point.Resemblance, point.Folds})
		if point.Candidate > 0 {
			candidate = append(candidate, [2]float64{point.Resemblance, point.Candidate})
		}
	}
	if len(candidate) > 0 {
		p.path("bands", candidate)
	}
	p.path("folded", folds)
	for _, m := range k.Measured {
		x := p.x(m.Resemblance)
		p.line("measured", x, p.y(m.Low), x, p.y(m.High))
		p.line("measured", x-4, p.y(m.Low), x+4, p.y(m.Low))
		p.line("measured", x-4, p.y(m.High), x+4, p.y(m.High))
		fmt.Fprintf(p, `<circle class="dot" cx="%.1f" cy="%.1f" r="3.5"><title>%.3f of %d pairs</title></circle>`, x, p.y(m.Folds),
			m.Folds, m.Pairs)
	}
	return p.end()
}

// plotErrors draws the error of the agreements beside the one that the sketches tell.
func plotErrors(r *Report) template.HTML {
	most := 0.02
	for _, l := range r.Levels {
		most = max(most, l.Measured, l.Promised)
	}
	most = math.Ceil(most*50) / 50
	p := newPlot("Error of the agreements", "The root of the mean square of the difference between agreement and exact value "+
		"of the pairs of each "+
		"level, beside the standard error that the sketches tell. The figures stand in the table below.", 0, 1.1, most)
	var at []float64
	var labels []string
	for n := range 5 {
		value := most * float64(n) / 4
		at, labels = append(at, value), append(labels, fmt.Sprintf("%.3f", value))
	}
	p.axes(0.1, "level of agreement", at, labels)
	var promised [][2]float64
	for _, l := range r.Levels {
		if l.Compared == 0 {
			continue
		}
		promised = append(promised, [2]float64{l.Level, l.Promised})
		y := p.y(l.Measured)
		fmt.Fprintf(p, `<rect class="candidate" x="%.1f" y="%.1f" width="20" height="%.1f"/>`, p.x(l.Level)-10, y, top+dataHeight-y)
	}
	if len(promised) > 0 {
		p.path("contested", promised)
	}
	return p.end()
}

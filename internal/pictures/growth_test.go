package pictures

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/measured"
)

// scale is an axis of a growth picture: where it ends, what is marked, and whether it is logarithmic.
type scale struct {
	log      bool
	from, to float64
	marks    []float64
}

// at is where a value lies on the axis: its logarithm on a logarithmic one.
func (s scale) at(v float64) float64 {
	if s.log {
		return math.Log10(v)
	}
	return v
}

// tens is how much the values must spread for their axis to be logarithmic.
const tens = 8.0

// scaleOf makes the axis for values. A linear one begins at zero; a logarithmic one is marked at 1, 2 and 5 of each power of ten
// while these are few, else at the powers.
func scaleOf(values []float64) scale {
	least, most := slices.Min(values), slices.Max(values)
	if least <= 0 || most/least < tens {
		return linear(most)
	}
	s := scale{log: true}
	steps := []float64{1, 2, 5}
	if most/least >= 100 {
		steps = []float64{1}
	}
	for power := math.Floor(math.Log10(least)); ; power++ {
		for _, step := range steps {
			v := round(step * math.Pow(10, power))
			if v <= least {
				s.marks = nil
			}
			s.marks = append(s.marks, v)
			if v >= most {
				s.from, s.to = math.Log10(s.marks[0]), math.Log10(v)
				return s
			}
		}
	}
}

// linear is an axis from zero with at most six marks at round values.
func linear(most float64) scale {
	s := scale{}
	for power := math.Floor(math.Log10(most)) - 1; ; power++ {
		for _, factor := range []float64{1, 2, 2.5, 5} {
			step := factor * math.Pow(10, power)
			if count := math.Ceil(most / step); count <= 5 {
				for i := range int(count) + 1 {
					s.marks = append(s.marks, round(float64(i)*step))
				}
				s.to = s.marks[len(s.marks)-1]
				return s
			}
		}
	}
}

// measuredAt is the axis below: it shows where it was measured, and nothing before or after.
func measuredAt(values []float64) scale {
	s, least, most := scaleOf(values), slices.Min(values), slices.Max(values)
	s.marks = slices.DeleteFunc(s.marks, func(v float64) bool { return v < least || v > most })
	s.from, s.to = s.at(least), s.at(most)
	switch only := slices.Compact(slices.Sorted(slices.Values(values))); {
	case !s.log && len(only) <= 6:
		s.marks = only
	case s.log && (len(s.marks) == 0 || s.to-s.at(s.marks[len(s.marks)-1]) > 0.15*(s.to-s.from)):
		s.marks = append(s.marks, most)
	}
	if s.from == s.to {
		s.from, s.to = s.from-1, s.to+1
	}
	return s
}

// round takes away what a power of ten in binary adds.
func round(v float64) float64 {
	near, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64) // is one by its form
	return near
}

// grouped writes a value with commas, and without zeros at its end.
func grouped(v float64) string {
	if v >= 1000 {
		return thousands(int(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// short writes a value for the axis below, where marks are near one another.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return grouped(v/1e6) + " M"
	case v >= 1e4:
		return grouped(v/1e3) + " k"
	}
	return grouped(v)
}

// names of the lines of a curve, each once, in order: the colours go by it.
func lineNames(c measured.Curve) (names []string) {
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}
	return names
}

// colours of the lines in their order; the two last differ in being thin as well.
var colours = []string{"one", "two", "three", "two thin", "three thin"}

// drawGrowth draws a curve: its panels side by side, on the same axes.
func drawGrowth(c measured.Curve) ([]byte, error) {
	names := lineNames(c)
	var across, up []float64
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			for _, at := range l.Points {
				across, up = append(across, at.X), append(up, at.Y)
			}
		}
	}
	if len(across) == 0 || len(names) > len(colours) {
		return nil, fmt.Errorf("%s has %d points, %d lines", c.Name, len(across), len(names))
	}
	below, beside := measuredAt(across), scaleOf(up)
	var d drawing
	d.text(24, 38, "title", c.Title)
	top := d.growthLegend(c, names)
	const left, right, between = 84.0, 776.0, 24.0
	wide := (right - left - between*float64(len(c.Panels)-1)) / float64(len(c.Panels))
	margin := (below.to - below.from) * 0.05
	for i, panel := range c.Panels {
		p := plot{
			left: left + float64(i)*(wide+between), top: top + 44, bottom: top + 264,
			fromX: below.from - margin, toX: below.to + margin, fromY: beside.from, toY: beside.to,
		}
		p.right = p.left + wide
		d.text((p.left+p.right)/2, p.top-12, "step middle", panel.Name)
		d.growthPanel(p, panel, names, below, beside, i == 0)
		if i == len(c.Panels)/2 && len(c.Panels)%2 == 1 {
			p.name(&d, c.Across, "")
		}
		if i == 0 {
			p.beside(&d, c.Up)
		}
	}
	if len(c.Panels)%2 == 0 {
		d.text((left+right)/2, top+308, "middle", c.Across)
	}
	return d.done(top+328, c.Title, growthDesc(c)), nil
}

// beside names the axis on the left.
func (p plot) beside(d *drawing, name string) {
	fmt.Fprintf(&d.b, "<text class=\"middle\" transform=\"translate(%s %s) rotate(-90)\">%s</text>\n",
		num(p.left-58), num((p.top+p.bottom)/2), name)
}

// growthPanel draws the grid and the lines of one panel.
func (d *drawing) growthPanel(p plot, panel measured.Panel, names []string, below, beside scale, first bool) {
	for _, v := range beside.marks {
		y := p.y(beside.at(v))
		d.line(p.left, y, p.right, y, "grid")
		if first {
			d.text(p.left-10, y+4, "end small", grouped(v))
		}
	}
	for _, v := range below.marks {
		x := p.x(below.at(v))
		d.line(x, p.bottom, x, p.bottom+6, "axis")
		d.text(x, p.bottom+21, "middle small", short(v))
	}
	d.line(p.left, p.bottom, p.right, p.bottom, "axis")
	if panel.Absent != "" {
		d.text((p.left+p.right)/2, (p.top+p.bottom)/2, "middle small", cutTo("not measured: "+panel.Absent, 11.5, p.right-p.left))
	}
	for _, l := range panel.Lines {
		colour, dashed := colours[slices.Index(names, l.Name)], aside(l) != ""
		var steps strings.Builder
		for i, at := range l.Points {
			letter := "L"
			if i == 0 {
				letter = "M"
			}
			fmt.Fprintf(&steps, "%s%s %s", letter, num(p.x(below.at(at.X))), num(p.y(beside.at(at.Y))))
		}
		line, dot := "line-"+colour, "dot-"+strings.Fields(colour)[0]
		if dashed {
			line, dot = line+" thin dashed", dot+" hollow"
		}
		d.path(line, steps.String())
		for _, at := range l.Points {
			d.dot(p.x(below.at(at.X)), p.y(beside.at(at.Y)), 3.5, dot)
		}
	}
}

// aside says of a line that is dashed what it is beside another one of its name.
func aside(l measured.Line) string {
	switch {
	case l.Before:
		return "before"
	case l.Tail:
		return "p99"
	}
	return ""
}

// nameOf names a line and what it is beside another one of its name.
func nameOf(l measured.Line) string {
	if word := aside(l); word != "" {
		return l.Name + " (" + word + ")"
	}
	return l.Name
}

// growthLegend names the lines below the title and returns where it ends.
func (d *drawing) growthLegend(c measured.Curve, names []string) float64 {
	x, y := 24.0, 66.0
	entry := func(line, dot, name string) {
		wide := 46 + room(name, 13)
		if x > 24 && x+wide > width-24 {
			x, y = 24, y+22
		}
		d.line(x, y-4, x+28, y-4, line)
		d.dot(x+14, y-4, 3.5, dot)
		d.text(x+36, y, "ink", name)
		x += wide + 10
	}
	for i, name := range names {
		entry("line-"+colours[i], "dot-"+strings.Fields(colours[i])[0], name)
	}
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			if word := aside(l); word != "" {
				entry("line-"+colours[slices.Index(names, l.Name)]+" thin dashed",
					"dot-"+strings.Fields(colours[slices.Index(names, l.Name)])[0]+" hollow", "dashed: "+word)
				return y
			}
		}
	}
	return y
}

// growthDesc says the ends of every line.
func growthDesc(c measured.Curve) string {
	var list []string
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			first, last := l.Points[0], l.Points[len(l.Points)-1]
			list = append(list, fmt.Sprintf("%s, %s: %s at %s, %s at %s", p.Name, nameOf(l),
				figureOf(first.Y), grouped(first.X), figureOf(last.Y), grouped(last.X)))
		}
	}
	return fmt.Sprintf("%s over %s. %s.", c.Up, c.Across, strings.Join(list, "; "))
}

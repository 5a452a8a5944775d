package pictures

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// width is that of every picture, in its own units, which are pixels where a page shows it at its size.
const width = 800

// drawing is a picture in the making. Its texts are escaped where they are put in.
type drawing struct{ b strings.Builder }

// num writes a coordinate with at most one decimal, so that the last bits of a float do not show.
func num(x float64) string {
	s := strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// text puts a line of text; its classes say colour, size and where x is in it.
func (d *drawing) text(x, y float64, class, s string) {
	fmt.Fprintf(&d.b, "<text class=%q x=%q y=%q>%s</text>\n", class, num(x), num(y), html.EscapeString(s))
}

// piece is a part of a line of text with a class of its own.
type piece struct{ class, text string }

// pieces puts a line of text made of several.
func (d *drawing) pieces(x, y float64, class string, list []piece) {
	fmt.Fprintf(&d.b, "<text class=%q x=%q y=%q>", class, num(x), num(y))
	for _, p := range list {
		if p.class == "" {
			d.b.WriteString(html.EscapeString(p.text))
		} else {
			fmt.Fprintf(&d.b, "<tspan class=%q>%s</tspan>", p.class, html.EscapeString(p.text))
		}
	}
	d.b.WriteString("</text>\n")
}

func (d *drawing) box(x, y, w, h, round float64, class string) {
	fmt.Fprintf(&d.b, "<rect class=%q x=%q y=%q width=%q height=%q rx=%q/>\n", class, num(x), num(y), num(w), num(h), num(round))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&d.b, "<path class=%q d=\"M%s %sL%s %s\"/>\n", class, num(x1), num(y1), num(x2), num(y2))
}

func (d *drawing) dot(x, y, r float64, class string) {
	fmt.Fprintf(&d.b, "<circle class=%q cx=%q cy=%q r=%q/>\n", class, num(x), num(y), num(r))
}

func (d *drawing) path(class, steps string) {
	fmt.Fprintf(&d.b, "<path class=%q d=%q/>\n", class, steps)
}

// arrow is a straight line with a head at its second end.
func (d *drawing) arrow(x1, y1, x2, y2 float64, class string) {
	const long, half = 8, 4
	dx, dy := 0.0, 0.0
	switch {
	case x2 > x1:
		dx = 1
	case x2 < x1:
		dx = -1
	case y2 > y1:
		dy = 1
	default:
		dy = -1
	}
	d.line(x1, y1, x2-dx*(long-1), y2-dy*(long-1), class)
	backX, backY := x2-dx*long, y2-dy*long
	d.path(class+" head-of", fmt.Sprintf("M%s %sL%s %sL%s %sz", num(x2), num(y2),
		num(backX+dy*half), num(backY+dx*half), num(backX-dy*half), num(backY-dx*half)))
}

// done returns the whole picture.
func (d *drawing) done(height float64, title, desc string) []byte {
	high := num(height)
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %s" width="%d" height="%s"
  role="img" aria-labelledby="title desc">
<title id="title">%s</title>
<desc id="desc">%s</desc>
<style>%s</style>
<rect class="paper" width="%d" height="%s" rx="8"/>
%s</svg>
`, width, high, width, high, html.EscapeString(title), html.EscapeString(desc), style, width, high, d.b.String())
}

// style is that of all pictures. one is what both have or what is right, two what differs or folds, three a third thing.
const style = `
  svg { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif }
  .paper { fill: #ffffff }
  text { fill: #5b6675 }
  .ink { fill: #1f2937 }
  .title { fill: #1f2937; font-size: 17px; font-weight: 600 }
  .step { fill: #1f2937; font-size: 14px; font-weight: 600 }
  .small { font-size: 11.5px }
  .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace }
  .byte { font-size: 9.5px }
  .strong { font-weight: 600 }
  .end { text-anchor: end }
  .middle { text-anchor: middle }
  text.one, tspan.one { fill: #1d56b0 }
  text.two, tspan.two { fill: #b23a06 }
  text.three, tspan.three { fill: #0f6b5f }
  .panel { fill: #f6f8fa; stroke: #dde3ea }
  .fill-one { fill: #2463c9; fill-opacity: .14 }
  .fill-two { fill: #d9480f; fill-opacity: .14 }
  .bar-one { fill: #2463c9 }
  .bar-two { fill: #d9480f }
  .ring-two { fill: none; stroke: #d9480f }
  .grid { fill: none; stroke: #e5e9ef }
  .axis { fill: none; stroke: #5b6675 }
  .mark { fill: none; stroke: #5b6675; stroke-dasharray: 2 4 }
  .line-one { fill: none; stroke: #2463c9; stroke-width: 2.5; stroke-linejoin: round }
  .line-two { fill: none; stroke: #d9480f; stroke-width: 2.5; stroke-linejoin: round }
  .line-three { fill: none; stroke: #0f766e; stroke-width: 2.5; stroke-linejoin: round }
  .thin { stroke-width: 1.5 }
  .dashed { stroke-dasharray: 5 4 }
  .dot-one { fill: #2463c9; stroke: #ffffff }
  .dot-two { fill: #d9480f; stroke: #ffffff }
  .dot-three { fill: #0f766e; stroke: #ffffff }
  .hollow { fill: #ffffff; stroke-width: 1.5 }
  .hollow.dot-one { stroke: #2463c9 }
  .hollow.dot-two { stroke: #d9480f }
  .hollow.dot-three { stroke: #0f766e }
  .axis.head-of { fill: #5b6675 }
  .line-one.head-of { fill: #2463c9 }
  .line-two.head-of { fill: #d9480f }
  .head-of { stroke-width: 1; stroke-dasharray: none }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #11161d }
    text { fill: #9aa7b6 }
    .ink, .title, .step { fill: #e6eaf0 }
    text.one, tspan.one { fill: #8cbaff }
    text.two, tspan.two { fill: #ffb07d }
    text.three, tspan.three { fill: #5eead4 }
    .panel { fill: #19212b; stroke: #2c3743 }
    .fill-one { fill: #6ea8fe; fill-opacity: .2 }
    .fill-two { fill: #ffa066; fill-opacity: .2 }
    .bar-one { fill: #6ea8fe }
    .bar-two { fill: #ffa066 }
    .ring-two { stroke: #ffa066 }
    .grid { stroke: #28313c }
    .axis, .mark { stroke: #9aa7b6 }
    .line-one { stroke: #6ea8fe }
    .line-two { stroke: #ffa066 }
    .line-three { stroke: #2dd4bf }
    .dot-one { fill: #6ea8fe; stroke: #11161d }
    .dot-two { fill: #ffa066; stroke: #11161d }
    .dot-three { fill: #2dd4bf; stroke: #11161d }
    .hollow { fill: #11161d }
    .hollow.dot-one { stroke: #6ea8fe }
    .hollow.dot-two { stroke: #ffa066 }
    .hollow.dot-three { stroke: #2dd4bf }
    .axis.head-of { fill: #9aa7b6 }
    .line-one.head-of { fill: #6ea8fe }
    .line-two.head-of { fill: #ffa066 }
  }
`

// hundredths are the widths of the characters from blank to tilde in hundredths of the font's size, in the widest font that
// style may come to (DejaVu Sans): a text in any other is narrower.
var hundredths = [95]float64{
	32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, // to /
	64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 53, // to ?
	100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, // to O
	60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, // to _
	50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
}

// room is the width that a text may take at most.
func room(s string, size float64) float64 {
	sum := 0.0
	for _, r := range s {
		if r >= ' ' && r <= '~' {
			sum += hundredths[r-' ']
		} else {
			sum += 80
		}
	}
	return sum * size / 100
}

// cutTo returns the text, or as much of its beginning as there is room for, with an ellipsis.
func cutTo(s string, size, most float64) string {
	if room(s, size) <= most {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && room(string(runes)+"…", size) > most {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), " ,;:") + "…"
}

// wrapped cuts words into lines that find room.
func wrapped(words []string, size, most float64) (lines [][]string) {
	var line []string
	for _, w := range words {
		if len(line) > 0 && room(strings.Join(line, " ")+" "+w, size) > most {
			lines, line = append(lines, line), nil
		}
		line = append(line, w)
	}
	return append(lines, line)
}

// plot is a field of a drawing with an axis of its own on each side.
type plot struct {
	left, right, top, bottom float64
	fromX, toX, fromY, toY   float64
}

func (p plot) x(v float64) float64 { return p.left + (v-p.fromX)/(p.toX-p.fromX)*(p.right-p.left) }
func (p plot) y(v float64) float64 { return p.bottom - (v-p.fromY)/(p.toY-p.fromY)*(p.bottom-p.top) }

// across draws the axis below and its marks.
func (p plot) across(d *drawing, values []float64, label func(float64) string) {
	for _, v := range values {
		d.line(p.x(v), p.bottom, p.x(v), p.bottom+6, "axis")
		d.text(p.x(v), p.bottom+21, "middle small", label(v))
	}
	d.line(p.left, p.bottom, p.right, p.bottom, "axis")
}

// up draws a grid and its marks on the left.
func (p plot) up(d *drawing, values []float64, label func(float64) string) {
	for _, v := range values {
		d.line(p.left, p.y(v), p.right, p.y(v), "grid")
		d.text(p.left-10, p.y(v)+4, "end small", label(v))
	}
}

// curve draws a function of x in so many steps.
func (p plot) curve(d *drawing, class string, from, to float64, steps int, f func(float64) float64) {
	var b strings.Builder
	for i := range steps + 1 {
		v := from + (to-from)*float64(i)/float64(steps)
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&b, "%s%s %s", letter, num(p.x(v)), num(p.y(f(v))))
	}
	d.path(class, b.String())
}

// name writes what an axis shows.
func (p plot) name(d *drawing, below, beside string) {
	d.text((p.left+p.right)/2, p.bottom+44, "middle", below)
	if beside != "" {
		fmt.Fprintf(&d.b, "<text class=\"middle\" transform=\"translate(%s %s) rotate(-90)\">%s</text>\n",
			num(p.left-52), num((p.top+p.bottom)/2), html.EscapeString(beside))
	}
}

package pictures

import (
	"fmt"
	"slices"
	"strings"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// The three texts of the first picture: a report, the same in another paper, and something else.
const (
	report  = "From Monday the late ferry to Saltmere leaves at ten every evening, the council decided."
	reprint = "From Monday the late ferry to Saltmere sails at ten every evening, the council decided. (Agency)"
	unlike  = "The library in Saltmere stays open until midnight for a month, to see who comes."
)

// column is one of the two texts side by side.
type column struct {
	x        float64
	name     string
	text     string
	shingles []string
	sketch   sketch.Sketch
}

// defaults is the scheme of all pictures: the defaults, without a seed.
var defaults = sketch.DefaultScheme()

// sketcher makes the sketches of all pictures: the defaults, without a seed.
func sketcher(change func(*sketch.Scheme)) *sketch.Sketcher {
	scheme := sketch.DefaultScheme()
	if change != nil {
		change(&scheme)
	}
	s, err := sketch.New(scheme)
	if err != nil {
		panic(err) // of a scheme in this file
	}
	return s
}

// shinglesOf returns a text's shingles as words. That they are what the sketcher takes is held by
// TestShinglesAreThoseOfTheSketcher.
func shinglesOf(text string) (list []string) {
	words := sketch.Words(text)
	for i := range len(words) - defaults.Words + 1 {
		list = append(list, strings.Join(words[i:i+defaults.Words], " "))
	}
	return list
}

func columnOf(x float64, name, text string) column {
	k, _ := sketcher(nil).Sketch(text)
	return column{x: x, name: name, text: text, shingles: shinglesOf(text), sketch: k}
}

const columnWidth = 364

// drawShingles shows two texts, their shingles, their sketches, what these agree in, and what that makes of a page.
func drawShingles() ([]byte, error) {
	a, b := columnOf(24, "A", report), columnOf(412, "B", reprint)
	var d drawing
	d.text(24, 38, "title", "From two texts to one hit")
	y := 70.0
	y = both(y, &d, "1  Two texts", a, b, (*drawing).texts)
	words := fmt.Sprintf("2  Shingles: every %d words that stand side by side", defaults.Words)
	y = both(y, &d, words, a, b, (*drawing).chips)
	bytes := fmt.Sprintf("3  Sketch: %d positions of one byte", len(a.sketch.Payload))
	y = both(y, &d, bytes, a, b, (*drawing).positions)
	y = d.agreement(y, &a, &b)
	y = d.page(y, &a, &b)
	desc := "Two short reports that differ in a word and an ending; their shingles, of which both have most; two grids of the " +
		"bytes of their sketches, of which most are equal; a scale from 0 to 1 on which the agreement stands beside the exact " +
		"resemblance; and a list of three hits of which the second report is folded into the first."
	return d.done(y, "From two texts to one hit", desc), nil
}

// both draws a step for either column under its head and returns where the next one begins.
func both(y float64, d *drawing, head string, a, b column, step func(d *drawing, y float64, c, other *column) float64) float64 {
	d.text(24, y, "step", head)
	return max(step(d, y+14, &a, &b), step(d, y+14, &b, &a)) + 34
}

// texts shows a text with the words that the other has not.
func (d *drawing) texts(y float64, c, other *column) float64 {
	theirs := sketch.Words(other.text)
	lines := wrapped(strings.Fields(c.text), 13, columnWidth-58)
	d.box(c.x, y, columnWidth, float64(len(lines))*20+14, 6, "panel")
	d.text(c.x+14, y+22, "step", c.name)
	for i, line := range lines {
		var list []piece
		for _, word := range line {
			class := ""
			if w := sketch.Words(word); len(w) > 0 && !slices.Contains(theirs, w[0]) {
				class = "two strong"
			}
			list = append(list, piece{class, word}, piece{"", " "})
		}
		d.pieces(c.x+40, y+22+float64(i)*20, "ink", list)
	}
	return y + float64(len(lines))*20 + 14
}

// chips shows the shingles: filled those that both have, outlined those that this text has alone.
func (d *drawing) chips(y float64, c, other *column) float64 {
	const size, high = 11.5, 22
	x, common := c.x, 0
	for _, s := range c.shingles {
		w := room(s, size) + 14
		if x+w > c.x+columnWidth {
			x, y = c.x, y+high+6
		}
		box, text := "ring-two", "small middle two"
		if slices.Contains(other.shingles, s) {
			box, text, common = "fill-one", "small middle one", common+1
		}
		d.box(x, y, w, high, 11, box)
		d.text(x+w/2, y+15, text, s)
		x += w + 6
	}
	d.text(c.x, y+high+20, "small", fmt.Sprintf("%d shingles, %d of them in both", len(c.shingles), common))
	return y + high + 20
}

// positions shows every byte of a sketch, filled where the other has the same.
func (d *drawing) positions(y float64, c, other *column) float64 {
	const across, wide, high = 16, columnWidth / 16.0, 17
	for i, value := range c.sketch.Payload {
		x, y := c.x+float64(i%across)*wide, y+float64(i/across)*high
		box, text := "fill-two", "mono byte middle two"
		if value == other.sketch.Payload[i] {
			box, text = "fill-one", "mono byte middle one"
		}
		d.box(x, y, wide-1.5, high-1.5, 2, box)
		d.text(x+wide/2-0.7, y+11.2, text, fmt.Sprintf("%02x", value))
	}
	return y + float64(len(c.sketch.Payload)/across)*high - 4
}

// agreement shows what the two sketches say of the resemblance, beside what it is.
func (d *drawing) agreement(y float64, a, b *column) float64 {
	equal, k := 0, len(a.sketch.Payload)
	for i, value := range a.sketch.Payload {
		if value == b.sketch.Payload[i] {
			equal++
		}
	}
	s := sketcher(nil)
	exact := sketch.Resemblance(s.Shingles(a.text), s.Shingles(b.text))
	agreement, _ := a.sketch.Agreement(&b.sketch)
	deviation := a.sketch.StandardError(&b.sketch)
	common, union := commonOf(a.shingles, b.shingles)
	d.text(24, y, "step", "4  Agreement: the share of equal positions, without those equal by chance")
	d.pieces(24, y+26, "", []piece{
		{"ink", fmt.Sprintf("%d of %d are equal:  (%d/%d − 1/256) / (1 − 1/256) = ", equal, k, equal, k)},
		{"one strong", fmt.Sprintf("%.2f ± %.2f", agreement, deviation)},
	})
	d.pieces(24, y+48, "", []piece{
		{"ink", fmt.Sprintf("The shingles themselves: %d in both of %d in all, ", common, union)},
		{"three strong", fmt.Sprintf("resemblance %.2f", exact)},
	})
	p := plot{left: 40, right: 760, top: y + 70, bottom: y + 112, fromX: 0, toX: 1, fromY: 0, toY: 1}
	p.across(d, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}, func(v float64) string { return fmt.Sprintf("%.1f", v) })
	d.box(p.x(agreement-deviation), p.bottom-16, p.x(agreement+deviation)-p.x(agreement-deviation), 16, 0, "fill-one")
	for _, preset := range []string{"thorough", "default", "safe"} {
		at := rerank.Presets()[preset].Threshold
		d.line(p.x(at), p.top+8, p.x(at), p.bottom, "mark")
		d.text(p.x(at), p.top+2, "middle small", fmt.Sprintf("%s %.2f", preset, at))
	}
	d.dot(p.x(agreement), p.bottom-8, 5, "dot-one")
	d.dot(p.x(exact), p.bottom, 5, "dot-three")
	return y + 170
}

// page shows three hits as an engine ranks them and as they are collapsed.
func (d *drawing) page(y float64, a, b *column) float64 {
	s, profile := sketcher(nil), rerank.Default()
	enough := profile.MinWords
	profile.MinWords = 0 // the reports stand for longer ones
	other, _ := s.Sketch(unlike)
	names, texts := []string{"A", "B", "C"}, []string{a.text, b.text, unlike}
	hits := []rerank.Hit{
		{ID: "A", Sketch: &a.sketch, Profile: &profile},
		{ID: "B", Sketch: &b.sketch, Profile: &profile},
		{ID: "C", Sketch: &other, Profile: &profile},
	}
	c := rerank.Collapse(hits, len(hits))
	d.text(24, y, "step", fmt.Sprintf("5  Page: B agrees with A by %.2f or more, so it folds, as if both had %d words or more", profile.Threshold, enough))
	d.text(24, y+24, "small", "the engine's list")
	d.text(424, y+24, "small", "the page")
	for i := range hits {
		d.hit(24, y+34+float64(i)*30, fmt.Sprint(i+1), names[i], texts[i], slices.Contains(c.Shown, i))
	}
	for i, rank := range c.Shown {
		d.hit(424, y+34+float64(i)*30, fmt.Sprint(i+1), names[rank], texts[rank], true)
	}
	d.arrow(384, y+76, 414, y+76, "axis")
	return y + 140
}

// hit is one hit of a short list.
func (d *drawing) hit(x, y float64, rank, name, text string, shown bool) {
	box, class := "panel", "ink"
	if !shown {
		box, class = "ring-two dashed", "two"
	}
	d.box(x, y, 350, 25, 5, box)
	d.text(x+10, y+17, "small", rank)
	d.text(x+30, y+17, "strong "+class, name)
	d.text(x+52, y+17, class, cutTo(text, 13, 292))
}

func commonOf(a, b []string) (common, union int) {
	for _, s := range a {
		if slices.Contains(b, s) {
			common++
		}
	}
	return common, len(a) + len(b) - common
}

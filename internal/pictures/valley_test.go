package pictures

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/jobs/calibrate"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// shelf is a store that holds the corpus and can only be read.
type shelf struct {
	adapters.Store
	documents []corpus.Document
}

// Scan hands out what is selected in one page.
func (s shelf) Scan(
	_ context.Context, _ string, _ *adapters.Rule, selection adapters.Selection, yield func(adapters.Page) error,
) error {
	var page adapters.Page
	for _, d := range s.documents {
		if selection.IDs != nil && !slices.Contains(selection.IDs, d.ID) {
			continue
		}
		source, err := json.Marshal(d)
		if err != nil {
			return err
		}
		page.Documents = append(page.Documents, adapters.Stored{ID: d.ID, Source: source})
	}
	page.Total = len(page.Documents)
	return yield(page)
}

func textsOf(document []byte) []string {
	var d corpus.Document
	if json.Unmarshal(document, &d) != nil {
		return nil
	}
	return []string{d.Title, d.Body}
}

// calibrated is what calibrate says of the corpus.
func calibrated() (*calibrate.Report, []corpus.Document, error) {
	documents, err := corpus.Load()
	if err != nil {
		return nil, nil, err
	}
	rule := &adapters.Rule{
		Match: "news", Fields: []string{"title", "body"}, Window: 1000, Sketcher: sketcher(nil),
		Profile: rerank.Profile{Threshold: rerank.Default.Threshold, MinShingles: rerank.Default.MinShingles},
	}
	options := calibrate.DefaultOptions
	options.Texts = textsOf
	r, err := calibrate.Run(context.Background(), shelf{documents: documents}, "news", rule, options)
	return r, documents, err
}

// counted are the pairs of the corpus by their agreement: of versions of one article, and of different ones.
type counted struct{ versions, others [calibrate.Bins]int }

func count(documents []corpus.Document) (c counted) {
	s := sketcher(nil)
	sketches := make([]sketch.Sketch, len(documents))
	for i, d := range documents {
		sketches[i], _ = s.Sketch(d.Title, d.Body)
	}
	for i := range sketches {
		for j := range i {
			agreement, _ := sketches[i].Agreement(&sketches[j])
			bin := min(calibrate.Bins-1, int(max(0, agreement)*calibrate.Bins))
			if documents[i].Group == documents[j].Group {
				c.versions[bin]++
			} else {
				c.others[bin]++
			}
		}
	}
	return c
}

// drawValley shows the pairs of the corpus by their agreement, and what each threshold makes of its documents.
func drawValley() ([]byte, error) {
	report, documents, err := calibrated()
	if err != nil {
		return nil, err
	}
	c := count(documents)
	var d drawing
	d.text(24, 38, "title", fmt.Sprintf("Where a threshold can stand: the pairs of %d articles", len(documents)))
	top := plot{left: 84, right: 764, top: 98, bottom: 300, fromX: 0, toX: 1, fromY: 0, toY: 5}
	below := plot{left: 84, right: 764, top: 372, bottom: 512, fromX: 0, toX: 1, fromY: 0, toY: 1}
	top.up(&d, []float64{0, 1, 2, 3, 4, 5}, func(v float64) string { return thousands(int(math.Round(math.Pow(10, v)))) })
	below.up(&d, []float64{0, 0.25, 0.5, 0.75, 1}, func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) })
	tenths := []float64{0, 0.2, 0.4, 0.6, 0.8, 1}
	label := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	d.bars(top, c)
	top.across(&d, tenths, label)
	below.across(&d, tenths, label)
	d.thresholds(top, below, report.Suggestion.Threshold)
	d.shares(below, report)
	d.box(top.left+110, top.top+8, 12, 12, 2, "bar-one")
	d.text(top.left+130, top.top+18.5, "one strong", "versions of one article")
	d.box(top.left+110, top.top+28, 12, 12, 2, "bar-two")
	d.text(top.left+130, top.top+38.5, "two strong", "different articles")
	top.name(&d, "", "pairs")
	below.name(&d, "agreement, or threshold", "documents")
	versions := 0
	for _, n := range c.versions {
		versions += n
	}
	desc := fmt.Sprintf("Above, two hills: nearly all pairs of different articles agree by less than 0.1, and of the %s "+
		"pairs of versions of "+
		"one article all but one by more than 0.6. Between them there are hardly any pairs. Below, the share of documents "+
		"that would fold "+
		"at each threshold, which hardly changes in the valley, and the share of those about which chance decides. "+
		"sidecar calibrate "+
		"suggests %.2f.", thousands(versions), report.Suggestion.Threshold)
	return d.done(574, "Pairs by agreement, and what thresholds make of them", desc), nil
}

// bars draws how many pairs there are of each agreement, on a scale of powers of ten: one pair is a bar too.
func (d *drawing) bars(p plot, c counted) {
	half := (p.x(1.0/calibrate.Bins) - p.x(0)) / 2
	bar := func(x float64, n int, class string) {
		if n > 0 {
			y := p.y(max(0.06, math.Log10(float64(n))))
			d.box(x, y, half-2, p.bottom-y, 1, class)
		}
	}
	for bin := range calibrate.Bins {
		x := p.x(float64(bin) / calibrate.Bins)
		bar(x+1.5, c.versions[bin], "bar-one")
		bar(x+half+0.5, c.others[bin], "bar-two")
	}
}

// thresholds draws those that have a name.
func (d *drawing) thresholds(top, below plot, suggested float64) {
	mark := func(at, y float64, name string) {
		d.line(top.x(at), y+6, top.x(at), below.bottom, "mark")
		d.text(top.x(at), y, "middle small ink", fmt.Sprintf("%s %.2f", name, at))
	}
	mark(suggested, 72, "suggested")
	for _, name := range []string{"thorough", "default", "safe"} {
		mark(rerank.Presets[name].Threshold, 88, name)
	}
}

// shares draws how many documents fold at each threshold, and about how many chance decides.
func (d *drawing) shares(p plot, r *calibrate.Report) {
	lines := []struct {
		class, dot, text, name string
		of                     func(calibrate.Share) float64
	}{
		{"line-three", "dot-three", "three strong", "would fold", func(s calibrate.Share) float64 { return s.Folded }},
		{
			"line-two thin dashed", "dot-two", "two strong", "within one standard error of the threshold",
			func(s calibrate.Share) float64 { return s.Contested },
		},
	}
	for i, l := range lines {
		steps := ""
		for j, s := range r.Shares {
			steps += fmt.Sprintf("%s%s %s", []string{"L", "M"}[b2i(j == 0)], num(p.x(s.Threshold)), num(p.y(l.of(s))))
		}
		d.path(l.class, steps)
		for _, s := range r.Shares {
			d.dot(p.x(s.Threshold), p.y(l.of(s)), 3.5, l.dot)
		}
		y := p.top - 20
		x := p.left + float64(i)*130
		d.box(x+28, y-12, room(l.name, 13)*1.15+8, 17, 0, "paper")
		d.line(x, y-4, x+24, y-4, l.class)
		d.text(x+32, y, l.text, l.name)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestValleyIsCalibrates holds the pairs that are drawn to those that calibrate counts.
func TestValleyIsCalibrates(t *testing.T) {
	r, documents, err := calibrated()
	if err != nil {
		t.Fatal(err)
	}
	if r.Way != calibrate.ByAll || r.Suggestion.Kind != "valley" {
		t.Errorf("compared by %s, suggested: %s", r.Way, r.Suggestion.Kind)
	}
	c := count(documents)
	r.Candidates.Found[calibrate.Bins-1] += r.Candidates.Same // counted apart there
	for bin, n := range r.Candidates.Found {
		if got := float64(c.versions[bin] + c.others[bin]); got != n {
			t.Errorf("%v pairs of bin %d are drawn, calibrate found %v", got, bin, n)
		}
	}
	m := matches(r.Threshold, sketch.DefaultPositions)
	for _, p := range r.Curve.Points {
		if got := sketch.AtLeast(matching(p.Resemblance), m, sketch.DefaultPositions); math.Abs(got-p.Folds) > 1e-12 {
			t.Errorf("p(%v) is drawn at %v, calibrate says %v", p.Resemblance, got, p.Folds)
		}
	}
}

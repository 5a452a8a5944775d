package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// site adds pages of a host, each with a text.
func site(list []Document, host string, texts ...string) []Document {
	for i, text := range texts {
		list = append(list, Document{ID: fmt.Sprintf("%s/%03d", host, i), Host: host, Shingles: []uint64{}})
		s, ok := siteRule.Sketcher.Sketch(text)
		if ok {
			list[len(list)-1].Sketch = &s
		}
	}
	return list
}

var siteRule = func() (o struct{ Sketcher *sketch.Sketcher }) {
	o.Sketcher, _ = sketch.New(sketch.DefaultScheme())
	return o
}()

// page returns a text of its own of about so many words.
func page(topic string, words int) string {
	var b strings.Builder
	for i := range words {
		fmt.Fprintf(&b, "%s%d ", topic, i)
	}
	return b.String()
}

func TestReport(t *testing.T) {
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	var a, b, c []string
	for i := range 10 {
		a = append(a, page(fmt.Sprint("shared", i), 300))
		b = append(b, page(fmt.Sprint("shared", i), 300)+"seen at b")
	}
	b[9] = page("own", 300) // nine of ten
	for range 12 {
		c = append(c, "Sorry, the page that you have been looking for is not here any more, please go on to our start page")
	}
	c = append(c, page("c", 200), "", a[0])
	list := site(site(site(nil, "c.example", c...), "b.example", b...), "a.example", a...)
	seen := 0
	got := expect.Value(joined(t, Options{Rule: rule}, list).report(t.Context(), func(*Member) error { seen++; return nil }))(t)
	expect.Must(t, len(list), seen, "documents that were seen")
	want := Report{
		Algorithm: Bands, Threshold: 0.64, Bands: got.Bands, Rows: got.Rows,
		Documents: 35, Texts: 22, Clusters: 10, Clustered: 12 + 3 + 8*2, Alone: 4,
		Sizes:   []SizeClass{{2, 2, 8, 16}, {3, 4, 1, 3}, {9, 16, 1, 12}},
		Mirrors: []Mirror{{A: "a.example", B: "b.example", PagesA: 10, PagesB: 10, CommonA: 9, CommonB: 9, Share: 0.9}},
		Soft404: []Suspect{{Host: "c.example", Pages: 12, Share: 12.0 / 15, Shingles: got.Soft404[0].Shingles,
			Cluster: got.Soft404[0].Cluster, IDs: []string{"c.example/000", "c.example/001", "c.example/002"}}},
		Farms: []Farm{}, Left: Left{Textless: 1},
	}
	largest := got.Largest
	got.Largest = nil
	expect.Same(t, want, *got, "")
	if len(largest) != 10 || largest[0].Size != 12 || largest[0].Texts != 1 || largest[0].Hosts != 1 || largest[1].Hosts != 3 {
		t.Errorf("largest: %+v", largest)
	}
}

// TestFarms holds that a set of rare elements on several hosts is a suspect, and one of elements that all have is none.
func TestFarms(t *testing.T) {
	rule := ruleOf(t, sketch.Scheme{Features: sketch.Tags}, 0.64, 4)
	var list []Document
	add := func(i int, tags ...string) {
		s, _ := rule.Sketcher.Sketch(tags...)
		list = append(list, Document{ID: fmt.Sprintf("%04d", i), Host: fmt.Sprintf("h%d", i), Sketch: &s, Shingles: rule.Sketcher.Shingles(tags...)})
	}
	for i := range 5 { // five pages link to the same six places that no one else links to
		add(i, "x1", "x2", "x3", "x4", "x5", "x6", fmt.Sprint("own", i))
	}
	for i := range 400 {
		switch i % 4 {
		case 0: // the same four of few that many link to
			add(100+i, "news", "mail", "maps", "shop")
		default:
			all := []string{"news", "mail", "maps", "shop", "chat", "wiki", "help", "jobs"}
			add(100+i, all[i%8], all[i/8%8], all[i/64%8], fmt.Sprint("y", i), fmt.Sprint("z", i))
		}
	}
	got := expect.Value(joined(t, Options{Rule: rule, Algorithm: Broder, Common: 100}, list).Report(t.Context(), ""))(t)
	if len(got.Farms) != 1 || got.Farms[0].Size != 5 || got.Farms[0].Expected > mostExpected {
		t.Errorf("suspects: %+v", got.Farms)
	}
}

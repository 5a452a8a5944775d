package measured

import (
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// sound is a report that nothing is wrong with.
func sound() Report {
	return Report{
		Date: "2026-01-31", Machine: "a machine", Command: "a command", Minutes: 1, Versions: []Version{{"Go", "1.26"}},
		Tables: []Table{{
			Name: "pages", Title: "Pages", Columns: []Column{{"p50", "ms"}},
			Rows: []Row{{
				What: "page 1", Engine: "Typesense",
				Contenders: []Contender{{Name: "direct", Figures: map[string]float64{"p50": 2}}, {Name: "other", Absent: "not installed"}},
				Verdicts:   []Verdict{{Of: "p50", Against: "direct", Value: 1.2, Unit: "×", Target: 1.5}, {Of: "p99", Absent: "not measured"}},
			}},
		}},
		Curves: []Curve{{
			Name: "window", Title: "Window", Across: "ranks", Up: "ms",
			Panels: []Panel{{Name: "Typesense", Lines: []Line{{Name: "ours", Points: []Point{{0, 1}, {10, 2}}}}}, {Name: "other", Absent: "why"}},
		}},
	}
}

func TestCheck(t *testing.T) {
	if err := sound().Check(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		name, want string
		spoil      func(r *Report)
	}{
		{"table without rows", "no name", func(r *Report) { r.Tables[0].Rows = nil }},
		{"figure of zero", "p50 is 0", func(r *Report) { r.Tables[0].Rows[0].Contenders[0].Figures["p50"] = 0 }},
		{"figure that is none", "p50 is NaN", func(r *Report) { r.Tables[0].Rows[0].Contenders[0].Figures["p50"] = math.NaN() }},
		{"no figure", "no reason", func(r *Report) { r.Tables[0].Rows[0].Contenders[0].Figures = nil }},
		{"verdict on nothing", "verdict of p50", func(r *Report) { r.Tables[0].Rows[0].Verdicts[0].Value = 0 }},
		{"verdict on infinity", "verdict of p50", func(r *Report) { r.Tables[0].Rows[0].Verdicts[0].Value = math.Inf(1) }},
		{"curve without panels", "no name", func(r *Report) { r.Curves[0].Panels = nil }},
		{"panel without lines", "no reason", func(r *Report) { r.Curves[0].Panels[0].Lines = nil }},
		{"line without points", "no point", func(r *Report) { r.Curves[0].Panels[0].Lines[0].Points = nil }},
		{"point of zero", "is 0", func(r *Report) { r.Curves[0].Panels[0].Lines[0].Points[0].Y = 0 }},
	} {
		r := sound()
		c.spoil(&r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestReached(t *testing.T) {
	for _, c := range []struct {
		value, target float64
		atLeast, want bool
	}{{1.1, 1.1, false, true}, {1.11, 1.1, false, false}, {0.95, 0.95, true, true}, {0.94, 0.95, true, false}} {
		expect.Same(t, c.want, (Verdict{Value: c.value, Target: c.target, AtLeast: c.atLeast}).Reached(), "%+v", c)
	}
}

func TestReadsWhatItWrites(t *testing.T) {
	path, want := filepath.Join(t.TempDir(), "report.json"), sound()
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

package pictures

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// figures are the tables that are computed, and the page that each is on.
var figures = map[string]struct {
	page  string
	table func() string
}{
	"folds":   {"../../docs/tuning.md", foldsTable},
	"lengths": {"../../docs/internals/calibrate.md", lengthsTable},
}

// TestFigures holds the tables to what they are computed from.
func TestFigures(t *testing.T) {
	for name, f := range figures {
		page := string(expect.Value(os.ReadFile(f.page))(t))
		from, to := fmt.Sprintf("<!-- drawn: %s -->\n", name), fmt.Sprintf("<!-- end of %s -->", name)
		head, rest, found := strings.Cut(page, from)
		got, tail, ended := strings.Cut(rest, to)
		if !found || !ended {
			t.Errorf("%s: there is no table %s between %q and %q", f.page, name, from, to)
			continue
		}
		if want := "\n" + f.table() + "\n"; got != want {
			if !*update {
				t.Errorf("%s: the table %s is not what is computed: go test ./internal/pictures -update", f.page, name)
				continue
			}
			expect.OK(t, os.WriteFile(f.page, []byte(head+from+want+to+tail), 0o644))
		}
	}
}

// often writes a probability as a reader takes it in.
func often(p float64) string {
	switch {
	case p >= 0.9995:
		return "all"
	case p >= 0.1 && p < 0.99:
		return fmt.Sprintf("%.0f %%", 100*p)
	case p >= 0.001:
		return fmt.Sprintf("%.1f %%", 100*p)
	case p >= 1e-6:
		return "1 in " + thousands(int(math.Pow(10, math.Round(-math.Log10(p)))))
	case p >= 1e-18:
		return "1 in 10" + raised(int(math.Round(-math.Log10(p))))
	}
	return "none"
}

// raised writes a number as an exponent.
func raised(n int) string {
	return strings.Map(func(r rune) rune { return []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[r-'0'] }, fmt.Sprint(n))
}

// foldsTable says which pairs fold under each of the presets.
func foldsTable() string {
	var b strings.Builder
	presets := []string{"thorough", "default", "safe"}
	b.WriteString("| resemblance |")
	for _, name := range presets {
		fmt.Fprintf(&b, " `%s`, %.2f |", name, rerank.Presets()[name].Threshold)
	}
	b.WriteString("\n|---|---|---|---|\n")
	for _, r := range []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95} {
		fmt.Fprintf(&b, "| %.2f |", r)
		for _, name := range presets {
			m := matches(rerank.Presets()[name].Threshold, defaults.Positions)
			fmt.Fprintf(&b, " %s |", often(sketch.AtLeast(matching(r), m, defaults.Positions)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// lengthsTable says what a longer sketch is good for.
func lengthsTable() string {
	var b strings.Builder
	threshold := rerank.Default().Threshold
	fmt.Fprintf(&b, "| `positions` | bytes of a sketch | error at %.2f | resemblance at which 5 %% of pairs fold | ", threshold)
	b.WriteString("resemblance at which 95 % fold |\n")
	b.WriteString("|---|---|---|---|---|\n")
	for _, k := range []int{32, 64, 96, 128, 256, 512, 1024} {
		m := matches(threshold, k)
		reaches := func(p float64) float64 { // the resemblance at which the share p folds
			low, high := 0.0, 1.0
			for range 50 {
				if mid := (low + high) / 2; sketch.AtLeast(matching(mid), m, k) < p {
					low = mid
				} else {
					high = mid
				}
			}
			return low
		}
		s, _ := sketcher(func(s *sketch.Scheme) { s.Positions = k }).Sketch(report, reprint, unlike) // long enough for a table of topics
		fmt.Fprintf(&b, "| %s | %s | %.3f | %.2f | %.2f |\n",
			thousands(k), thousands(len(s.String())), theory(threshold, k), reaches(0.05), reaches(0.95))
	}
	return b.String()
}

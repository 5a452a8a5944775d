package pictures

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/measured"
)

const (
	performancePage = "../../docs/internals/performance.md"
	performanceData = "../../docs/internals/performance.json"

	beforeData = "../../docs/internals/before.json"
)

// figureOf writes a measurement with three digits, and more only where they stand before the point.
func figureOf(v float64) string {
	switch {
	case v >= 1000:
		return thousands(int(v + 0.5))
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// inUnit writes a figure with its unit.
func inUnit(v float64, unit string) string { return figureOf(v) + " " + unit }

// row writes a row of a table.
func row(b *strings.Builder, cells ...string) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %s ", strings.ReplaceAll(strings.Join(strings.Fields(c), " "), "|", "/"))
	}
	b.WriteString("|\n")
}

// header writes the head of a table. Its sides say of every column whether it stands left or right, the last for all that follow.
func header(b *strings.Builder, sides string, cells ...string) {
	row(b, cells...)
	for i := range cells {
		if sides[min(i, len(sides)-1)] == 'l' {
			b.WriteString("|---")
		} else {
			b.WriteString("|---:")
		}
	}
	b.WriteString("|\n")
}

// judged says whether a target was reached, and what stood in the way.
func judged(v measured.Verdict) string {
	switch {
	case v.Absent != "":
		return v.Absent
	case v.Reached():
		return "reached"
	}
	off := max(v.Value-v.Target, v.Target-v.Value)
	by := inUnit(off, v.Unit)
	if off < v.Target/100 {
		by = "less than 1 %"
	}
	return strings.TrimSuffix(fmt.Sprintf("**missed** by %s: %s", by, v.Limit), ": ")
}

// seen writes the figure of a verdict, with how far the rounds lay apart.
func seen(v measured.Verdict) string {
	switch {
	case v.Absent != "":
		return "–"
	case v.Low > 0 && v.High > v.Low:
		return fmt.Sprintf("%s (%s–%s)", inUnit(v.Value, v.Unit), figureOf(v.Low), figureOf(v.High))
	}
	return inUnit(v.Value, v.Unit)
}

// wantedTable holds every target of the run beside what was seen.
func wantedTable(r measured.Report) string {
	var b strings.Builder
	header(&b, "lllrrl", "what", "engine", "against", "wanted", "seen", "")
	for _, t := range r.Tables {
		for _, comparison := range t.Rows {
			for _, v := range comparison.Verdicts {
				sign := "≤ "
				if v.AtLeast {
					sign = "≥ "
				}
				if v.Target != 0 {
					row(&b, comparison.What+", "+v.Of, cmp.Or(comparison.Engine, "–"), cmp.Or(v.Against, "–"),
						sign+grouped(v.Target)+" "+v.Unit, seen(v), judged(v))
				}
			}
		}
	}
	return b.String()
}

// toldTable holds the ratios of one part for which there is no target; it is empty where there are none.
func toldTable(t measured.Table) string {
	var b strings.Builder
	for _, comparison := range t.Rows {
		for _, v := range comparison.Verdicts {
			if v.Target != 0 {
				continue
			}
			if b.Len() == 0 {
				header(&b, "lllrl", "what", "engine", "against", "seen", "")
			}
			row(&b, comparison.What+", "+v.Of, cmp.Or(comparison.Engine, "–"), cmp.Or(v.Against, "–"), seen(v), cmp.Or(v.Absent, v.Limit))
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// figuresTable holds what each contender of one part took, without the columns that nobody has a figure for.
func figuresTable(t measured.Table) string {
	var b strings.Builder
	cells := []string{"what", "engine", "contender"}
	columns := slices.DeleteFunc(slices.Clone(t.Columns), func(c measured.Column) bool {
		return !slices.ContainsFunc(t.Rows, func(r measured.Row) bool {
			return slices.ContainsFunc(r.Contenders, func(who measured.Contender) bool { return who.Figures[c.Name] != 0 })
		})
	})
	for _, c := range columns {
		cells = append(cells, strings.TrimSuffix(c.Name+", "+c.Unit, ", "))
	}
	header(&b, "lllr", cells...)
	for _, comparison := range t.Rows {
		for _, who := range comparison.Contenders {
			cells := []string{comparison.What, cmp.Or(comparison.Engine, "–"), who.Name}
			for i, c := range columns {
				v, found := who.Figures[c.Name]
				switch {
				case found:
					cells = append(cells, figureOf(v))
				case i == 0 && who.Absent != "":
					cells = append(cells, who.Absent)
				default:
					cells = append(cells, "–")
				}
			}
			row(&b, cells...)
		}
	}
	return b.String()
}

// curveTable holds the points of a curve.
func curveTable(c measured.Curve) string {
	var at []float64
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			for i, point := range l.Points {
				if i >= len(at) {
					at = append(at, point.X)
				}
			}
		}
	}
	var b strings.Builder
	cells := []string{c.Up}
	for _, x := range at {
		cells = append(cells, grouped(x))
	}
	header(&b, "lr", cells...)
	for _, p := range c.Panels {
		if p.Absent != "" {
			row(&b, append([]string{p.Name + ": " + p.Absent}, make([]string, len(at))...)...)
		}
		for _, l := range p.Lines {
			cells := []string{strings.TrimPrefix(p.Name+", "+nameOf(l), ", ")}
			for i := range at {
				if i < len(l.Points) {
					cells = append(cells, figureOf(l.Points[i].Y))
				} else {
					cells = append(cells, "–")
				}
			}
			row(&b, cells...)
		}
	}
	return b.String()
}

// measuredBy says by what and when something was measured.
func measuredBy(r measured.Report) string {
	var versions []string
	for _, v := range r.Versions {
		versions = append(versions, v.Name+" "+v.Version)
	}
	return fmt.Sprintf("\nMeasured on %s in %.0f minutes by `%s` on %s: %s.\n",
		r.Date, r.Minutes, r.Command, r.Machine, strings.Join(versions, ", "))
}

// performanceSection is the part of docs/internals/performance.md that a run writes.
func performanceSection(r measured.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", measuredBy(r))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	fmt.Fprintf(&b, "\n### What was wanted\n\n%s", wantedTable(r))
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "\n### %s\n\n", t.Title)
		if len(t.Notes) > 0 {
			fmt.Fprintf(&b, "%s\n\n", strings.Join(t.Notes, " "))
		}
		b.WriteString(toldTable(t) + figuresTable(t))
	}
	if len(r.Curves) > 0 {
		b.WriteString("\n### How cost grows\n" + curvesOf(r))
	}
	return b.String() + "\n"
}

// curvesOf are the curves with their pictures and tables.
func curvesOf(r measured.Report) string {
	var b strings.Builder
	for _, c := range r.Curves {
		fmt.Fprintf(&b, "\n![%s: %s over %s, a panel for each engine, the same figures as in the table below](../images/%s)\n\n",
			c.Title, c.Up, c.Across, growthFile(c))
		if len(c.Notes) > 0 {
			fmt.Fprintf(&b, "%s\n\n", strings.Join(c.Notes, " "))
		}
		b.WriteString(curveTable(c))
	}
	return b.String()
}

func growthFile(c measured.Curve) string {
	for _, p := range c.Panels {
		if slices.ContainsFunc(p.Lines, func(l measured.Line) bool { return l.Before }) {
			return "before-" + c.Name + ".svg"
		}
	}
	return "growth-" + c.Name + ".svg"
}

// TestPerformance holds the sections of docs/internals/performance.md to what runs have measured; TestPictures does it with the curves.
func TestPerformance(t *testing.T) {
	r := expect.Value(measured.Read(performanceData))(t)
	for _, part := range []string{"passed", "saturation", "pages", "long", "own", "writes", "pinned", "size", "memory", "sizing"} {
		if !slices.ContainsFunc(r.Tables, func(table measured.Table) bool { return table.Name == part }) {
			t.Errorf("docs/internals/performance.json has no table %s: it is not of a whole run", part)
		}
	}
	expect.Same(t, 8, len(r.Curves), "curves in docs/internals/performance.json")
	drawn(t, performancePage, "end to end", performanceSection(r))
	before := expect.Value(measured.Read(beforeData))(t)
	drawn(t, performancePage, "before and after", measuredBy(before)+curvesOf(before)+"\n")
}

// drawn holds a section of a page to what it should be.
func drawn(t *testing.T, page, section, want string) {
	t.Helper()
	from, to := "<!-- drawn: "+section+" -->\n", "<!-- end of "+section+" -->"
	text := expect.Value(os.ReadFile(page))(t)
	head, rest, found := strings.Cut(string(text), from)
	got, after, ended := strings.Cut(rest, to)
	if !found || !ended {
		t.Fatalf("there is nothing between %q and %q", from, to)
	}
	if got == want {
		return
	}
	if !*update {
		t.Errorf("%s in %s is not what was measured: go test ./internal/pictures -update", section, page)
		return
	}
	expect.OK(t, os.WriteFile(page, []byte(head+from+want+to+after), 0o644))
}

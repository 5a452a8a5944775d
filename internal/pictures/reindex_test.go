package pictures

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/measured"
)

// reindexData are what `make bench-reindex` has measured, a file for each engine.
const reindexData = "../../docs/internals/reindex-*.json"

// reindexReports reads the reports, and joins their tables and curves in one.
func reindexReports(t *testing.T) (list []measured.Report, all measured.Report) {
	t.Helper()
	for _, path := range expect.Value(filepath.Glob(reindexData))(t) {
		r := expect.Value(measured.Read(path))(t)
		if list = append(list, r); len(list) == 1 {
			all = expect.Value(measured.Read(path))(t)
			continue
		}
		all.Tables[0].Rows = append(all.Tables[0].Rows, r.Tables[0].Rows...)
		for i, c := range r.Curves {
			all.Curves[i].Panels = append(all.Curves[i].Panels, c.Panels...)
		}
	}
	return list, all
}

// TestReindexPerformance holds the section on reindexing to what was measured; TestPictures does it with the curves.
func TestReindexPerformance(t *testing.T) {
	list, all := reindexReports(t)
	var b strings.Builder
	for _, r := range list {
		b.WriteString(measuredBy(r))
	}
	table := all.Tables[0]
	b.WriteString("\n" + strings.Join(table.Notes, " ") + "\n\n")
	if slices.ContainsFunc(table.Rows, func(r measured.Row) bool {
		return slices.ContainsFunc(r.Verdicts, func(v measured.Verdict) bool { return v.Target > 0 })
	}) { // Typesense has no target
		b.WriteString(wantedTable(all) + "\n")
	}
	b.WriteString(toldTable(table) + figuresTable(table) + curvesOf(all) + "\n")
	drawn(t, performancePage, "reindexing", b.String())
}

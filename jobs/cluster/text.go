package cluster

import (
	_ "embed"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/template"

	"github.com/neardup/sidecar/internal/terminal"
)

// shown is how many entries of a list are printed; JSON has all.
const shown = 5

//go:embed cluster.txt
var reportText string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"count": terminal.Count,
	"first": func(list any) any {
		all := reflect.ValueOf(list)
		return all.Slice(0, min(shown, all.Len())).Interface()
	},
	"join":       func(ids []string) string { return strings.Join(ids, " ") },
	"words":      func(text string) int { return len(strings.Fields(text)) },
	"brief":      func(text string) string { return terminal.Cut(terminal.Harmless(text), longestPassage) },
	"percent":    func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
	"minus":      func(a, b int) int { return a - b },
	"mostPaired": func() int { return MostPaired },
	"mostHosts":  func() int { return MostHosts },
}).Parse(reportText))

// longestPassage is how many characters of a passage the report shows.
const longestPassage = 90

// Print prints the report for people.
func (r *Report) Print(w io.Writer) error { return reportTemplate.Execute(w, r) }

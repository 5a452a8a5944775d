package cluster

import (
	_ "embed"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/template"
	"time"

	"github.com/neardup/sidecar/internal/terminal"
)

// Result is what a clustering came to, as it is reported in JSON.
type Result struct {
	Algorithm Algorithm `json:"algorithm"`
	Threshold float64   `json:"threshold"`
	Bands     int       `json:"bands,omitempty"`
	Rows      int       `json:"rows,omitempty"`
	*Report
	Written *Written `json:"written,omitempty"` // nil where nothing was to be
	// Took is how long it took.
	Took time.Duration `json:"-"`
}

// Result returns a report on the corpus, and what was written to the engine, with how it was made.
func (c *Corpus) Result(report *Report, written *Written, took time.Duration) *Result {
	r := &Result{Algorithm: c.options.Algorithm, Threshold: c.options.Rule.Profile.Threshold, Report: report, Written: written}
	r.Took = took.Round(10 * time.Millisecond)
	if r.Algorithm == Bands {
		r.Bands, r.Rows = c.Shape()
	}
	return r
}

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
	"percent":    func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
	"minus":      func(a, b int) int { return a - b },
	"mostPaired": func() int { return MostPaired },
	"mostHosts":  func() int { return MostHosts },
}).Parse(reportText))

// Print prints the result for people.
func (r *Result) Print(w io.Writer) error { return reportTemplate.Execute(w, r) }

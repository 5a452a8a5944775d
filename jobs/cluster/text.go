package cluster

import (
	"fmt"
	"io"
	"strconv"
	"strings"
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
	r := &Result{Algorithm: c.options.Algorithm, Threshold: c.options.Rule.Profile.Threshold, Report: report, Written: written, Took: took}
	if r.Algorithm == Bands {
		r.Bands, r.Rows = c.Shape()
	}
	return r
}

// Print prints the result for people.
func (r *Result) Print(w io.Writer) error {
	p := textReport{w: w}
	p.title(r)
	p.sizes(r.Report)
	p.hosts(r.Report)
	p.left(r.Report)
	if s := r.Written; s != nil {
		p.printf("stored in the engine: %d written, %d right already, %d changed meanwhile, %d gone, %d refused\n",
			s.Written, s.Right, s.Changed, s.Gone, s.Refused)
	}
	return p.err
}

// textReport prints a report for people.
type textReport struct {
	w   io.Writer
	err error
}

func (p *textReport) printf(format string, values ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, values...)
	}
}

func (p *textReport) title(r *Result) {
	by := string(r.Algorithm)
	if r.Algorithm == Bands {
		by += fmt.Sprintf(" (%d of %d rows)", r.Bands, r.Rows)
	}
	p.printf("%s, %s: by %s at %v, in %s\n", terminal.Count(r.Documents, "document"), terminal.Count(r.Texts, "different text"), by,
		r.Threshold, r.Took.Round(10*time.Millisecond))
	are := "are near-duplicates"
	if r.Clustered-r.Clusters == 1 {
		are = "is a near-duplicate"
	}
	p.printf("%s of %s, %s alone: %s %s of another one\n", terminal.Count(r.Clusters, "cluster"), terminal.Count(r.Clustered, "document"),
		terminal.Count(r.Alone, "document"), terminal.Count(r.Clustered-r.Clusters, "document"), are)
}

// shown is how many entries of a list are printed; JSON has all.
const shown = 5

func (p *textReport) sizes(r *Report) {
	for _, class := range r.Sizes {
		of := fmt.Sprintf("%d to %d", class.From, class.To)
		if class.From == class.To {
			of = strconv.Itoa(class.To)
		}
		p.printf("  of %s: %s, %s\n", of, terminal.Count(class.Clusters, "cluster"), terminal.Count(class.Documents, "document"))
	}
	for i, s := range r.Largest[:min(shown, len(r.Largest))] {
		if i == 0 {
			p.printf("largest clusters:\n")
		}
		p.printf("  %s: %s, %s%s: %s\n", s.Cluster, terminal.Count(s.Size, "document"), terminal.Count(s.Texts, "text"), onHosts(s.Hosts), someOf(s.IDs, s.Size))
	}
}

func onHosts(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + terminal.Count(n, "host")
}

// someOf returns ids, and that they are not all of so many.
func someOf(ids []string, all int) string {
	text := strings.Join(ids, " ")
	if len(ids) < all {
		text += " …"
	}
	return text
}

func (p *textReport) hosts(r *Report) {
	for i, m := range r.Mirrors[:min(shown, len(r.Mirrors))] {
		if i == 0 {
			p.printf("hosts that mirror each other:\n")
		}
		p.printf("  %s (%d of %d pages) and %s (%d of %d): %.0f %%\n", m.A, m.CommonA, m.PagesA, m.B, m.CommonB, m.PagesB, 100*m.Share)
	}
	for i, s := range r.Soft404[:min(shown, len(r.Soft404))] {
		if i == 0 {
			p.printf("one short text under many ids (\"not found\" that says 200?):\n")
		}
		p.printf("  %s: %s, %.0f %% of the host's, %s: %s\n", s.Host, terminal.Count(s.Pages, "page"), 100*s.Share, terminal.Count(s.Shingles, "shingle"),
			someOf(s.IDs, s.Pages))
	}
	for i, f := range r.Farms[:min(shown, len(r.Farms))] {
		if i == 0 {
			p.printf("sets shared beyond chance (link farms?):\n")
		}
		p.printf("  %s: %s share %s, %.1g expected%s: %s\n", f.Cluster, terminal.Count(f.Size, "document"), terminal.Count(f.Elements, "element"),
			f.Expected, onHosts(f.Hosts), someOf(f.IDs, f.Size))
	}
}

// left prints what was not compared.
func (p *textReport) left(r *Report) {
	l := r.Left
	if l.Textless > 0 {
		p.printf("left out: %s without text, each alone\n", terminal.Count(l.Textless, "document"))
	}
	if l.CommonShingles > 0 {
		p.printf("left out: %d shingles that are in too many texts (up to %d): pairs that share these alone were not found\n",
			l.CommonShingles, l.CommonTexts)
	}
	if l.CutBuckets > 0 {
		p.printf("left out: pairs in %d buckets of more than %d texts (%d in all)\n", l.CutBuckets, MostPaired, l.CutTexts)
	}
	if r.WideClusters > 0 {
		p.printf("left out: %d clusters on more than %d hosts were not counted for mirrors\n", r.WideClusters, MostHosts)
	}
}

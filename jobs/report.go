package jobs

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/terminal"
)

// ReindexReport is what a reindex came to in one index, as it is reported in JSON.
type ReindexReport struct {
	Engine string `json:"engine"`
	Index  string `json:"index"`
	DryRun bool   `json:"dry_run"`
	Report
	Waited    float64 `json:"seconds_waited"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"documents_per_second"`
	Error     string  `json:"error,omitempty"`
	// Unkept says why there is no checkpoint.
	Unkept string `json:"no_checkpoint,omitempty"`
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// In returns the report on one index of an engine, of a run that ended with err.
func (r Report) In(engine, index string, dryRun bool, err error) ReindexReport {
	one := ReindexReport{
		Engine: engine, Index: index, DryRun: dryRun, Report: r,
		Waited: seconds(r.Waited), Seconds: seconds(r.Took), PerSecond: math.Round(r.PerSecond()),
	}
	if err != nil {
		one.Error = err.Error()
	}
	if r.Unkept != nil {
		one.Unkept = r.Unkept.Error()
	}
	return one
}

// Line returns the report as a line for people, which begins with a title.
func (r Report) Line(title string, dryRun bool) string {
	written := "written"
	if dryRun {
		written = "to be written"
	}
	var more strings.Builder
	if r.Resumed {
		more.WriteString(", joined or resumed")
	}
	if r.Taken > 0 {
		fmt.Fprintf(&more, ", %d leases taken over", r.Taken)
	}
	if r.Lost > 0 {
		fmt.Fprintf(&more, ", %d leases lost", r.Lost)
	}
	if r.Retries > 0 {
		fmt.Fprintf(&more, ", %d sent again, %v waited", r.Retries, r.Waited.Round(10*time.Millisecond))
	}
	more.WriteString(")")
	if r.Cut {
		more.WriteString(", stopped at --max-docs")
	}
	return fmt.Sprintf("%s: %d scanned, %d %s, %d right already, %d without text, %d changed meanwhile, %d gone, %d refused, in %s"+
		" (%.0f documents/s, %d of %d parts, %d slices%s", title, r.Scanned, r.Written, written, r.Skipped, r.Textless, r.Changed, r.Gone,
		r.Refused, r.Took.Round(10*time.Millisecond), r.PerSecond(), r.PartsDone, r.Parts, r.Workers, &more)
}

// VerifyReport is what a verification found in one index: of bands and clusters where the rule stores them, of what was mended where
// that was asked.
type VerifyReport struct {
	Engine string `json:"engine"`
	Index  string `json:"index"`
	Findings
	Bands   *FieldFindings `json:"bands,omitempty"`
	Cluster *FieldFindings `json:"cluster,omitempty"`
	Repair  *Repair        `json:"repair,omitempty"`
	// Filled says how the index's mapping fills fields of ours, which no document shows.
	Filled  []string `json:"filled_by_mapping,omitempty"`
	Seconds float64  `json:"seconds"`
	// Whole says that it was read to its end; a sample is none.
	Whole bool `json:"whole"`
}

// In returns the report on one index of an engine.
func (f Findings) In(engine, index string, rule *adapters.Rule, repair bool) VerifyReport {
	f.Examples = append([]string{}, f.Examples...) // a list in JSON, if an empty one
	r := VerifyReport{Engine: engine, Index: index, Findings: f}
	if rule.Bands > 0 {
		r.Bands = &f.Bands
	}
	if rule.Clusters {
		r.Cluster = &f.Cluster
	}
	if repair {
		r.Repair = &f.Repair
	}
	return r
}

// String returns the findings as lines for people.
func (f VerifyReport) String() string {
	var b strings.Builder
	title := f.Engine + ": " + f.Index
	fmt.Fprintf(&b, "%s: %d scanned, %d right, %d absent, %d incomparable, %d stale, %d textless with a sketch, %d without text",
		title, f.Scanned, f.Right, f.Absent, f.Incomparable, f.Stale, f.Emptied, f.Textless)
	fmt.Fprintf(&b, ", in %s\n", time.Duration(f.Seconds*1e9).Round(10*time.Millisecond))
	if bands := f.Bands; bands != nil {
		fmt.Fprintf(&b, "%s: bands: %d absent, %d stale\n", title, bands.Absent, bands.Stale)
	}
	if c := f.Cluster; c != nil {
		fmt.Fprintf(&b, "%s: clusters: %d absent, %d foreign, %d stale\n", title, c.Absent, c.Foreign, c.Stale)
	}
	for _, how := range f.Filled {
		fmt.Fprintf(&b, "%s: %s: searches read what stands there for a sketch: take that out of the mapping, or make the index anew without it\n", title, how)
	}
	if f.Leftover > 0 {
		fmt.Fprintf(&b, "%s: %d with bands or a cluster left over, which the rule does not store\n", title, f.Leftover)
	}
	if r := f.Repair; r != nil {
		fmt.Fprintf(&b, "%s: %d mended, %d changed meanwhile, %d gone, %d refused\n", title, r.Mended, r.Changed, r.Gone, r.Refused)
	}
	if len(f.Examples) > 0 {
		fmt.Fprintf(&b, "%s: stale, for example: %s\n", title, strings.Join(f.Examples, " "))
	}
	return terminal.Harmless(b.String())
}

// RemoveReport is what became of one index.
type RemoveReport struct {
	Engine string `json:"engine"`
	Index  string `json:"index"`
	Removal
	DryRun  bool    `json:"dry_run"`
	Note    string  `json:"note,omitempty"`
	Seconds float64 `json:"seconds"`
}

// String returns what became of an index as lines for people.
func (f RemoveReport) String() string {
	title := f.Engine + ": " + f.Index
	took := time.Duration(f.Seconds * 1e9).Round(10 * time.Millisecond)
	if f.DryRun {
		return fmt.Sprintf("%s: %d scanned, %d hold something of ours, in %s\n", title, f.Scanned, f.Found, took)
	}
	line := fmt.Sprintf("%s: %d scanned, %d held something of ours, %d cleaned, %d gone, %d refused, %d left, in %s\n",
		title, f.Scanned, f.Found, f.Cleaned, f.Gone, f.Refused, f.Left, took)
	if f.Note != "" {
		line += title + ": " + f.Note + "\n"
	}
	return line
}

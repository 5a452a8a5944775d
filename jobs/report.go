package jobs

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
)

// Progress counts documents.
type Progress struct {
	// Scanned were read, and what follows was found or done.
	Scanned int `json:"scanned"`
	// Written got their fields, or would have in a dry run; Skipped had them already; Textless have no word to sketch, or can't be read,
	// and hold what they should.
	Written  int `json:"written"`
	Skipped  int `json:"right"`
	Textless int `json:"textless"`
	// Changed and Gone were changed or deleted after they were read and were left alone; Refused the engine would not take.
	Changed int `json:"changed_meanwhile"`
	Gone    int `json:"gone"`
	Refused int `json:"refused"`
	// Cut says that MaxDocs ended the run.
	Cut bool `json:"cut"`
	// Total is how many there are as far as the engine says, else 0. All is how many of them were read by all workers of the job, as
	// far as is known.
	Total int `json:"documents"`
	All   int `json:"scanned_by_all"`
}

// Sent returns how many documents were sent to be written, or would have been in a dry run.
func (p Progress) Sent() int { return p.Written + p.Changed + p.Gone + p.Refused }

// Add returns the sum of the counts of two runs.
func (p Progress) Add(q Progress) Progress {
	return Progress{
		Total: p.Total + q.Total, All: p.All + q.All, Scanned: p.Scanned + q.Scanned,
		Written: p.Written + q.Written, Skipped: p.Skipped + q.Skipped, Textless: p.Textless + q.Textless,
		Changed: p.Changed + q.Changed, Gone: p.Gone + q.Gone, Refused: p.Refused + q.Refused,
		Cut: p.Cut || q.Cut,
	}
}

// count adds what became of a document, unless it is to be sent again.
func (p *Progress) count(result adapters.Result) {
	switch result {
	case adapters.Busy:
		return
	case adapters.Patched:
		p.Written++
	case adapters.Changed:
		p.Changed++
	case adapters.Gone:
		p.Gone++
	default:
		p.Refused++
	}
	p.Scanned++
}

// Count counts what became of documents that were sent to be written, but for those to be sent again.
func Count(results []adapters.Result) (p Progress) {
	for _, result := range results {
		p.count(result)
	}
	return p
}

// Report is the result of a run, or a watch.
type Report struct {
	Progress
	// Whole says that it came to its end.
	Whole bool `json:"whole"`
	// Parts is how many the index was worked through in, PartsDone how many of them by this worker; Slices is how many it worked on at once.
	Parts     int `json:"parts"`
	PartsDone int `json:"parts_done"`
	Slices    int `json:"slices"`
	// Resumed says that the parts are those of an earlier run, or of one that others are at work on.
	Resumed bool `json:"resumed"`
	// Anew says that the index was created again since the run to go on with, so that a new one was begun.
	Anew bool `json:"index_made_anew"`
	// Taken counts leases that were taken over from workers that had ended, Lost those that others took over from this one.
	Taken int `json:"leases_taken_over"`
	Lost  int `json:"leases_lost"`
	// Retries counts documents and requests that were sent again because the engine had no room; Waited is how long nothing was sent
	// for that. Both are of all that shares the pace.
	Retries int           `json:"retries"`
	Waited  time.Duration `json:"-"`
	// Took is how long it took.
	Took time.Duration `json:"-"`
	// Unkept says why no checkpoint is kept in the engine, if none is.
	Unkept error `json:"-"`
}

// PerSecond returns how many documents were read in a second.
func (r Report) PerSecond() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Scanned) / r.Took.Seconds()
}

// ReindexReport is the result of a reindex in one index, as it is reported in JSON.
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
		r.Refused, r.Took.Round(10*time.Millisecond), r.PerSecond(), r.PartsDone, r.Parts, r.Slices, &more)
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
	// Whole says that all of it was read, not a sample.
	Whole bool `json:"whole"`
}

// In returns the report on one index of an engine.
func (f Findings) In(engine, index string, rule *rule.Rule, repair bool) VerifyReport {
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

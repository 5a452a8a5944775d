package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
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

// Report is the result of a run, or a watch, as it is reported in JSON.
type Report struct {
	Engine string `json:"engine"`
	Index  string `json:"index"`
	DryRun bool   `json:"dry_run"`
	Progress
	// Whole says that it came to its end.
	Whole bool `json:"whole"`
	// Parts is how many the index was worked through in, PartsDone how many of them by this worker; Slices is how many it worked on at once.
	Parts     int `json:"parts"`
	PartsDone int `json:"parts_done"`
	Slices    int `json:"slices"`
	// Resumed says that the parts are those of an earlier plan, or of one that others are at work on.
	Resumed bool `json:"resumed"`
	// Anew says that the index was created again since the plan to go on with was made, so that the job began anew.
	Anew bool `json:"index_made_anew"`
	// Taken counts leases that were taken over from workers that had ended, Lost those that others took over from this one.
	Taken int `json:"leases_taken_over"`
	Lost  int `json:"leases_lost"`
	// Retries counts documents and requests that were sent again because the engine had no room; Waited is how long nothing was sent
	// for that. Both are of all that shares the pace.
	Retries int     `json:"retries"`
	Waited  float64 `json:"seconds_waited"`
	// Seconds is how long it took, PerSecond how many documents were read in one.
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"documents_per_second"`
	// Error is for the caller to fill in.
	Error string `json:"error,omitempty"`
	// Unkept says why no checkpoint is kept in the engine, if none is.
	Unkept string `json:"no_checkpoint,omitempty"`
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// took returns seconds as people read them.
func took(seconds float64) time.Duration {
	return time.Duration(seconds * 1e9).Round(10 * time.Millisecond)
}

// String returns the report as a line for people.
func (r Report) String() string {
	written := "written"
	if r.DryRun {
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
		fmt.Fprintf(&more, ", %d sent again, %v waited", r.Retries, took(r.Waited))
	}
	more.WriteString(")")
	if r.Cut {
		more.WriteString(", stopped at --max-docs")
	}
	return fmt.Sprintf("%s: %s: %d scanned, %d %s, %d right already, %d without text, %d changed meanwhile, %d gone, %d refused, in %s"+
		" (%.0f documents/s, %d of %d parts, %d slices%s\n", r.Engine, r.Index, r.Scanned, r.Written, written, r.Skipped, r.Textless, r.Changed,
		r.Gone, r.Refused, took(r.Seconds), r.PerSecond, r.PartsDone, r.Parts, r.Slices, &more)
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

// In returns the report on one index.
func (f Findings) In(job Job, repair bool) VerifyReport {
	f.Examples = append([]string{}, f.Examples...) // a list in JSON, if an empty one
	r := VerifyReport{Engine: job.Engine, Index: job.Index, Findings: f}
	if job.Rule.Bands > 0 {
		r.Bands = &f.Bands
	}
	if job.Rule.Clusters {
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
	fmt.Fprintf(&b, ", in %s\n", took(f.Seconds))
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

// String returns what became of an index as lines for people.
func (f Removal) String() string {
	title := f.Engine + ": " + f.Index
	if f.DryRun {
		return fmt.Sprintf("%s: %d scanned, %d hold something of ours, in %s\n", title, f.Scanned, f.Found, took(f.Seconds))
	}
	line := fmt.Sprintf("%s: %d scanned, %d held something of ours, %d cleaned, %d gone, %d refused, %d left, in %s\n",
		title, f.Scanned, f.Found, f.Cleaned, f.Gone, f.Refused, f.Left, took(f.Seconds))
	if f.Note != "" {
		line += title + ": " + f.Note + "\n"
	}
	return line
}

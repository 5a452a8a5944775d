package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs"
)

// reindexResult is what is reported in JSON.
type reindexResult struct {
	Indices []reindexed `json:"indices"`
}

// reindexed is what came of one index, as it is reported in JSON.
type reindexed struct {
	Engine   string `json:"engine"`
	Index    string `json:"index"`
	DryRun   bool   `json:"dry_run"`
	Scanned  int    `json:"scanned"`
	Written  int    `json:"written"` // or to be written
	Right    int    `json:"right"`
	Textless int    `json:"textless"`
	Changed  int    `json:"changed_meanwhile"`
	Gone     int    `json:"gone"`
	Refused  int    `json:"refused"`
	// Cut says that it stopped at --max-docs, Whole that it came to its end.
	Cut   bool `json:"cut"`
	Whole bool `json:"whole"`
	// Total and All are of all workers together: how many documents there are, and how many of them were read.
	Total int `json:"documents"`
	All   int `json:"scanned_by_all"`
	// Parts are those of the index, PartsDone those that were done here.
	Parts     int  `json:"parts"`
	PartsDone int  `json:"parts_done"`
	Slices    int  `json:"slices"`
	Resumed   bool `json:"resumed"`
	Anew      bool `json:"index_made_anew"`
	TakenOver int  `json:"leases_taken_over"`
	Lost      int  `json:"leases_lost"`
	// Retries are documents and requests that were sent again; Waited is how long nothing was sent for that.
	Retries   int     `json:"retries"`
	Waited    float64 `json:"seconds_waited"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"documents_per_second"`
	Error     string  `json:"error,omitempty"`
	// Unkept says why there is no checkpoint.
	Unkept string `json:"no_checkpoint,omitempty"`
}

// print prints the line that ends the work on one index, or keeps it for the end.
func (r *reindexRun) print(e *upstream.Engine, index adapters.Index, report jobs.Report, err error) {
	if report.Unkept != nil {
		const so = "others can't join in, and --resume has nothing to go on from"
		_, _ = fmt.Fprintf(r.err, "%s: %s: %s: %v\n", e.Config.Name, index.Name, so, report.Unkept)
	}
	if report.Anew {
		_, _ = fmt.Fprintf(r.err, "%s: %s: the index was made anew since the last run, and so was the job begun\n", e.Config.Name, index.Name)
	}
	if r.flags.output == formText {
		_, _ = fmt.Fprintln(r.out, summary(e.Config.Name+": "+index.Name, report, r.flags.dryRun))
		return
	}
	one := reindexed{
		Engine: e.Config.Name, Index: index.Name, DryRun: r.flags.dryRun, Scanned: report.Scanned, Written: report.Written,
		Right: report.Skipped, Textless: report.Textless, Changed: report.Changed, Gone: report.Gone, Refused: report.Refused,
		Cut: report.Cut, Whole: err == nil && !report.Cut, Total: report.Total, All: report.All, Parts: report.Parts,
		PartsDone: report.PartsDone, Slices: report.Workers, Resumed: report.Resumed, Anew: report.Anew, TakenOver: report.Taken, Lost: report.Lost,
		Retries: report.Retries, Waited: seconds(report.Waited), Seconds: seconds(report.Took), PerSecond: math.Round(report.PerSecond()),
	}
	if err != nil {
		one.Error = err.Error()
	}
	if report.Unkept != nil {
		one.Unkept = report.Unkept.Error()
	}
	r.list = append(r.list, one)
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// close prints what is printed at the end.
func (r *reindexRun) close() error {
	if r.flags.output != formJSON {
		return nil
	}
	return terminal.WriteJSON(r.out, reindexResult{append([]reindexed{}, r.list...)})
}

// summary returns the line that ends the work on one index.
func summary(title string, r jobs.Report, dryRun bool) string {
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

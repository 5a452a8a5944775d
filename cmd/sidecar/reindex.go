package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/jobs"
)

// reindexJob is one run of the command.
type reindexJob struct {
	job
	jobs.Options
	perSecond float64
	every     time.Duration // that it looks again; 0 for once

	total   jobs.Progress
	list    []jobs.Report
	watched []jobs.Job            // to look at again when all are done
	paces   map[string]*jobs.Pace // of each engine, by its name
}

func reindexCommand() *cobra.Command {
	r := reindexJob{list: []jobs.Report{}}
	r.resumeHint = "go on where this run stopped with --resume"
	cmd := &cobra.Command{
		Use:   "reindex",
		Short: "Store sketches in documents that are there already",
		Long: `Reindex reads every document of the indices that a rule matches, and stores a sketch where it is missing or wrong, with bands and
cluster if the rule has them. Nothing else in a document changes. A document that changes meanwhile is left alone.

It works on --slices parts of an index at once. If you start the same command on other machines, they share the work. The progress is
stored in the engine. With --resume an interrupted job goes on, on any machine. Without --resume it starts again, and writes only
what is missing. If the engine is busy, the job slows down.

--watch keeps running, for clients that update parts of texts or write directly to the engine: it fixes the sketches that are then
missing or old.

Exit code 0: done. 1: failed or interrupted. 3: done, but the engine refused some documents.`,
		Example: `  sidecar reindex --dry-run
  sidecar reindex --index news-2024 --slices 4 --requests-per-second 2000
  sidecar reindex --index news-2024 --resume
  sidecar reindex --index news-2024 --query '{"range":{"date":{"gte":"now-1d"}}}' --output json
  sidecar reindex --watch=30s`,
		PreRunE: r.check,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.withEngines(cmd, r.run) },
	}
	r.bind(cmd, indexUsage)
	flags := cmd.Flags()
	flags.StringVar(&r.Query, "query", "", "only documents that match a `query` of the engine: JSON, or a filter")
	flags.IntVar(&r.Slices, "slices", 2, "work on this many parts of an index at once")
	bound(flags, "slices", 1, maxSlices, fmt.Sprintf("1 to %d", maxSlices))
	flags.Float64Var(&r.perSecond, "requests-per-second", 0, "this process writes at most this many documents a second; 0: no limit")
	flags.IntVar(&r.MaxDocs, "max-docs", 0, "stop after this many written documents; 0: no limit")
	boundBelow(flags, "requests-per-second")
	boundBelow(flags, "max-docs")
	flags.BoolVar(&r.DryRun, "dry-run", false, "write nothing: say what would be written")
	flags.BoolVar(&r.Resume, "resume", false, "continue the last run of the same job")
	flags.DurationVar(&r.every, "watch", 0, "keep running, and look again after each `interval`")
	flags.Lookup("watch").NoOptDefVal = "30s"
	r.bindUntested(cmd)
	r.bindMetrics(cmd)
	return cmd
}

func (r *reindexJob) check(*cobra.Command, []string) error {
	switch {
	case r.every < 0 || r.every > 0 && r.every < time.Second:
		return fmt.Errorf("--watch: %v is too short: use at least 1s", r.every)
	case r.every > 0 && (r.DryRun || r.MaxDocs > 0):
		return errors.New("--watch has no end: leave --dry-run and --max-docs away")
	}
	return nil
}

// maxSlices is how many parts are worked on at once at most.
const maxSlices = 64

// run works through the indices of all engines.
func (r *reindexJob) run(ctx context.Context) error {
	r.paces = map[string]*jobs.Pace{}
	matched, err := r.eachIndex(ctx, !r.DryRun, r.reindex) // a dry run declares no fields
	if ctx.Err() == nil && r.every > 0 && len(r.watched) > 0 {
		err = errors.Join(err, r.watch(ctx))
	}
	if err := r.finish(ctx, matched, err, indicesOf[jobs.Report]{r.list}); err != nil {
		return err
	}
	if r.total.Refused > 0 {
		return errRefused
	}
	return nil
}

// reindex works through one index and prints its summary.
func (r *reindexJob) reindex(ctx context.Context, index jobs.Job) error {
	if r.paces[index.Engine] == nil {
		r.paces[index.Engine] = jobs.NewPace(r.perSecond)
	}
	options, meter := r.Options, r.meter(index)
	options.Pace = r.paces[index.Engine]
	if options.MaxDocs > 0 {
		options.MaxDocs -= r.total.Sent()
	}
	report, err := jobs.Reindex(ctx, index, options, func(p jobs.Progress) {
		meter.at(p.All, p.Total, fmt.Sprintf("%d written, %d right already", p.Written, p.Skipped))
		meter.metrics.Reindexed(p)
	})
	meter.clearBar()
	meter.metrics.Slowed(report.Retries, report.Waited)
	meter.metrics.End(err)
	r.total = r.total.Add(report.Progress)
	r.enough = r.MaxDocs > 0 && r.total.Sent() >= r.MaxDocs
	r.print(index, report, err)
	if err == nil && !report.Cut {
		r.watched = append(r.watched, index)
	}
	return err
}

// print prints the line that ends the work on one index, and keeps the report for the JSON at the end.
func (r *reindexJob) print(index jobs.Job, report jobs.Report, err error) {
	if err != nil {
		report.Error = err.Error()
	}
	if report.Unkept != "" {
		_, _ = fmt.Fprintf(r.err, "%s: others can't join in, and --resume has nothing to go on from: %s\n", index.Title(), report.Unkept)
	}
	if report.Anew {
		_, _ = fmt.Fprintf(r.err, "%s: the index was created again since the last run, so the job began again too\n", index.Title())
	}
	r.printf("%s", report)
	r.list = append(r.list, report)
}

// watch keeps looking at all indices until ctx ends.
func (r *reindexJob) watch(ctx context.Context) error {
	_, _ = fmt.Fprintf(r.err, "all is done: watching %d indices, each every %v, until interrupted\n", len(r.watched), r.every)
	reports, errs := make([]jobs.Report, len(r.watched)), make([]error, len(r.watched))
	all, ctx := errgroup.WithContext(ctx) // which ends when one of them fails
	for i, w := range r.watched {
		lines, shown := watchLines(r.err, w.Title()), r.metrics.Index(w.Engine)
		show := func(p jobs.Progress) {
			lines(p)
			shown.Reindexed(p)
		}
		options := r.Options
		options.Pace = r.paces[w.Engine]
		all.Go(func() error {
			if reports[i], errs[i] = jobs.Watch(ctx, w, options, r.every, show); errs[i] != nil {
				errs[i] = r.explain(w, fmt.Errorf("watch: %w", errs[i]))
			}
			return errs[i]
		})
	}
	_ = all.Wait() // all errors are returned below
	for i, w := range r.watched {
		r.total = r.total.Add(reports[i].Progress)
		r.print(w, reports[i], errs[i])
	}
	return errors.Join(errs...)
}

// watchLines returns what writes a line when something was written, every so often.
func watchLines(w io.Writer, title string) func(jobs.Progress) {
	var next time.Time
	last := 0
	return func(p jobs.Progress) {
		if now := time.Now(); p.Sent() > last && now.After(next) {
			last, next = p.Sent(), now.Add(meterEvery)
			_, _ = fmt.Fprintf(w, "%s: watching: %d written, %d refused\n", title, p.Written, p.Refused)
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs"
)

// reindexFlags are what the command line asks of a reindex.
type reindexFlags struct {
	jobFlags
	query           string
	slices, maxDocs int
	perSecond       float64
	dryRun, resume  bool
	watch           time.Duration
	metrics         *server.JobMetrics
}

func reindexCommand() *cobra.Command {
	f := reindexFlags{metrics: new(server.JobMetrics)}
	cmd := &cobra.Command{
		Use:   "reindex",
		Short: "Give documents that are stored already their sketches",
		Long: `Reindex reads every document of the indices that a rule matches, and stores the sketch of each that has none or a
wrong one, with its bands and cluster where the rule has them. Nothing else in a document changes, and a document that changes
meanwhile is left to its writer.

It works on parts of the index, --slices of them at once. How far it is stands in the engine: the same command on other
machines joins in, each part being one worker's at a time, and the parts of a worker that was killed are taken over. With --resume
a job that was broken off goes on where it stopped, on any machine; without, it begins anew, reads what is right already and
writes the rest alone. When the engine has no room it goes slower until it has.

--watch stays when all is done, and keeps filling in what live updates cleared, until it is interrupted.

Exit code 0: done. 1: failed or interrupted. 3: done, and the engine refused some documents.`,
		Example: `  sidecar reindex --dry-run
  sidecar reindex --index news-2024 --slices 4 --requests-per-second 2000
  sidecar reindex --index news-2024 --resume
  sidecar reindex --index news-2024 --query '{"range":{"date":{"gte":"now-1d"}}}' --output json
  sidecar reindex --watch=30s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			engines, err := openFor(cmd, f.engine)
			if err != nil {
				return err
			}
			if err := f.metrics.Start("reindex", cmd.ErrOrStderr()); err != nil {
				return err
			}
			defer f.metrics.Stop()
			r := reindexRun{flags: f, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
			return r.engines(cmd.Context(), engines)
		},
	}
	flags := cmd.Flags()
	f.bind(flags)
	flags.StringVar(&f.query, "query", "", "only the documents found by a `query` in the engine's words: JSON, or a filter")
	flags.IntVar(&f.slices, "slices", 2, "work on so many parts of an index at once")
	flags.Float64Var(&f.perSecond, "requests-per-second", 0, "write at most so many documents in a second; 0 is no bound")
	flags.IntVar(&f.maxDocs, "max-docs", 0, "stop after writing so many documents; 0 is no bound")
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing, not even to a mapping: say what would be written")
	flags.BoolVar(&f.resume, "resume", false, "go on where the last run of the same job stopped")
	flags.DurationVar(&f.watch, "watch", 0, "stay, and look again after each such `interval`")
	flags.Lookup("watch").NoOptDefVal = "30s"
	addUntested(flags, &f.untested)
	addMetrics(flags, f.metrics)
	return cmd
}

// validate returns what is wrong with the flags.
func (f *reindexFlags) validate() error {
	bounds := errors.Join(unbounded("requests-per-second", f.perSecond), unbounded("max-docs", float64(f.maxDocs)))
	switch {
	case bounds != nil:
		return bounds
	case f.slices < 1 || f.slices > maxSlices:
		return fmt.Errorf("--slices: %d is out of range: use 1 to %d", f.slices, maxSlices)
	case f.watch < 0 || f.watch > 0 && f.watch < time.Second:
		return fmt.Errorf("--watch: %v is too short: use at least 1s", f.watch)
	case f.watch > 0 && (f.dryRun || f.maxDocs > 0):
		return errors.New("--watch has no end: leave --dry-run and --max-docs away")
	}
	return nil
}

// maxSlices is how many parts are worked on at once at most.
const maxSlices = 64

// reindexRun is one run of the command.
type reindexRun struct {
	flags    reindexFlags
	out, err io.Writer
	total    jobs.Progress
	list     []jobs.ReindexReport
	watched  []watching
	engine   *upstream.Engine // that pace is of
	pace     *jobs.Pace
}

// watching is a job to be watched when all are done.
type watching struct {
	engine  *upstream.Engine
	job     jobs.Job
	options jobs.Options
}

// engines works through the engines.
func (r *reindexRun) engines(ctx context.Context, engines []*upstream.Engine) error {
	matched, err := r.flags.each(ctx, engines, !r.flags.dryRun, r.index)
	switch {
	case ctx.Err() != nil:
		err = errors.Join(err, errors.New("interrupted: go on where this run stopped with --resume"))
	case r.flags.watch > 0 && len(r.watched) > 0:
		err = errors.Join(err, r.watch(ctx))
	}
	if r.flags.output == formJSON {
		err = errors.Join(err, terminal.WriteJSON(r.out, reindexResult{append([]jobs.ReindexReport{}, r.list...)}))
	}
	switch {
	case err != nil:
		return err
	case !matched:
		return r.flags.nothing(r.out)
	case r.total.Refused > 0:
		return errRefused
	}
	return nil
}

// index works through one index and prints its summary.
func (r *reindexRun) index(ctx context.Context, e *upstream.Engine, index adapters.Index) error {
	if r.total.Cut {
		return nil
	}
	rule := e.Rules.Of(index)
	if rule == nil || !index.Ready && !r.flags.dryRun {
		return fmt.Errorf("engine %s: index %s is not ready: %s", e.Config.Name, index.Name, index.Why)
	}
	if r.engine != e {
		r.engine, r.pace = e, jobs.NewPace(r.flags.perSecond)
	}
	job := jobs.Job{Store: e.Store, Index: index.Name, Rule: rule, Engine: e.Store, Journal: e.Store.Journal()}
	options := jobs.Options{
		Slices: r.flags.slices, Pace: r.pace, MaxDocs: r.flags.maxDocs, Query: r.flags.query, DryRun: r.flags.dryRun, Resume: r.flags.resume,
	}
	if options.MaxDocs > 0 {
		options.MaxDocs -= r.total.Sent()
	}
	meter, shown := newMeter(r.err, e.Config.Name+": "+index.Name), r.flags.metrics.Index(e.Config.Name)
	report, err := jobs.Reindex(ctx, job, options, func(p jobs.Progress) {
		meter.at(p.All, p.Total, fmt.Sprintf("%d written, %d right already", p.Written, p.Skipped))
		shown.Reindexed(p)
	})
	meter.end()
	shown.Slowed(report.Retries, report.Waited)
	shown.End(err)
	r.total = r.total.Add(report.Progress)
	if r.flags.maxDocs > 0 && r.total.Sent() >= r.flags.maxDocs {
		r.total.Cut = true
	}
	r.print(e, job, report, err)
	if err == nil && !report.Cut {
		r.watched = append(r.watched, watching{e, job, options})
	}
	if err != nil && ctx.Err() == nil {
		return e.Explain(err)
	}
	return nil
}

// watch keeps looking at all indices until ctx ends.
func (r *reindexRun) watch(ctx context.Context) error {
	_, _ = fmt.Fprintf(r.err, "all is done: watching %d indices, each every %v, until interrupted\n", len(r.watched), r.flags.watch)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reports, errs := make([]jobs.Report, len(r.watched)), make([]error, len(r.watched))
	var all sync.WaitGroup
	for i, w := range r.watched {
		lines, shown := watchLines(r.err, w.engine.Config.Name+": "+w.job.Index), r.flags.metrics.Index(w.engine.Config.Name)
		show := func(p jobs.Progress) {
			lines(p)
			shown.Reindexed(p)
		}
		all.Go(func() {
			if reports[i], errs[i] = jobs.Watch(ctx, w.job, w.options, r.flags.watch, show); errs[i] != nil {
				errs[i] = w.engine.Explain(fmt.Errorf("watch: %w", errs[i]))
				stop()
			}
		})
	}
	all.Wait()
	for i, w := range r.watched {
		r.total = r.total.Add(reports[i].Progress)
		r.print(w.engine, w.job, reports[i], errs[i])
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

// reindexResult is what is reported in JSON.
type reindexResult struct {
	Indices []jobs.ReindexReport `json:"indices"`
}

// print prints the line that ends the work on one index, or keeps it for the end.
func (r *reindexRun) print(e *upstream.Engine, job jobs.Job, report jobs.Report, err error) {
	title := e.Config.Name + ": " + job.Index
	if report.Unkept != nil {
		const so = "others can't join in, and --resume has nothing to go on from"
		_, _ = fmt.Fprintf(r.err, "%s: %s: %v\n", title, so, report.Unkept)
	}
	if report.Anew {
		_, _ = fmt.Fprintf(r.err, "%s: the index was made anew since the last run, and so was the job begun\n", title)
	}
	if r.flags.output == formText {
		_, _ = fmt.Fprintln(r.out, report.Line(title, r.flags.dryRun))
		return
	}
	r.list = append(r.list, report.In(e.Config.Name, job.Index, r.flags.dryRun, err))
}

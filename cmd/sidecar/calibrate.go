package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs/calibrate"
	"github.com/neardup/sidecar/sketch"
)

// calibrateFlags are what the command line asks of a calibration.
type calibrateFlags struct {
	jobFlags
	html string
	calibrate.Options
}

func calibrateCommand() *cobra.Command {
	f := calibrateFlags{Options: calibrate.DefaultOptions}
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Say which threshold the documents of an index speak for",
		Long: `Calibrate reads documents of the indices that a rule matches and writes nothing. It shows

  - how far pairs of documents agree: random pairs, and candidates, which are found by their bands since near-duplicates are
    rare among pairs drawn at random
  - pairs of every level of agreement, with what they share and what differs, and their exact resemblance beside it
  - how sure the sketches are: the error of the agreements, and p(r), how probable it is that a pair of resemblance r folds
  - what each threshold makes of the documents: how many fold, and how many lie so near to it that chance decides
  - a suggested threshold and the reason, or that the documents do not tell

Up to --documents of an index are read; of a larger one so many chosen at random, or, where its rule has bands and they are
stored, --sample documents are looked up in the whole of it.

--html writes a report with tables and bars as one file that asks for nothing from elsewhere. It quotes your documents: give it to those
who may read them.

Exit code 0: done. 1: failed or interrupted, for one index at least.`,
		Example: `  sidecar calibrate --index news-2024
  sidecar calibrate --index news-2024 --html report.html
  sidecar calibrate --engine archive --sample 5000 --output json > calibration.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	f.bind(flags)
	flags.IntVar(&f.Sample, "sample", f.Sample, "compare so many documents at random")
	flags.IntVar(&f.Documents, "documents", f.Documents, "read so many documents of an index at most")
	flags.IntVar(&f.Pairs, "pairs", f.Pairs, "compare so many pairs of each level by their texts")
	flags.IntVar(&f.Examples, "examples", f.Examples, "show so many pairs of each level")
	flags.Uint64Var(&f.Seed, "seed", f.Seed, "what is chosen: the same seed chooses the same of the same documents")
	flags.StringVar(&f.html, "html", "", "write a report with tables and bars to this `file`")
	return cmd
}

func (f *calibrateFlags) check() error {
	for _, n := range []struct {
		flag         string
		value, least int
	}{{"--sample", f.Sample, 2}, {"--documents", f.Documents, 2}, {"--pairs", f.Pairs, 1}, {"--examples", f.Examples, 0}} {
		if n.value < n.least {
			return fmt.Errorf("%s: %d is too few: use at least %d", n.flag, n.value, n.least)
		}
	}
	return nil
}

func (f *calibrateFlags) run(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	engines, err := openFor(cmd, f.engine)
	if err != nil {
		return err
	}
	r := calibrateRun{flags: *f, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), list: []calibrate.Result{}}
	return r.engines(cmd.Context(), engines)
}

// calibrateResult is what is reported in JSON.
type calibrateResult struct {
	Indices []calibrate.Result `json:"indices"`
}

// calibrateRun is one run of the command.
type calibrateRun struct {
	flags    calibrateFlags
	out, err io.Writer
	list     []calibrate.Result
}

// engines works through the engines.
func (r *calibrateRun) engines(ctx context.Context, engines []*upstream.Engine) error {
	matched, err := r.flags.each(ctx, engines, false, r.index)
	err = r.flags.end(ctx, r.out, matched, err, calibrateResult{r.list})
	if r.flags.html != "" && len(r.list) > 0 && ctx.Err() == nil {
		failed := calibrate.WriteHTML(r.flags.html, r.list)
		if err = errors.Join(err, failed); failed == nil {
			_, _ = fmt.Fprintf(r.err, "report written to %s\n", r.flags.html)
		}
	}
	return err
}

// index looks at one index and prints what it found.
func (r *calibrateRun) index(ctx context.Context, e *upstream.Engine, index adapters.Index) error {
	rule := e.Rules.Of(index)
	if rule == nil {
		return fmt.Errorf("engine %s: index %s: %s", e.Config.Name, index.Name, index.Why)
	}
	if rule.Sketcher.Scheme().Features == sketch.Value64 {
		return fmt.Errorf("engine %s: index %s: its sketches are values made elsewhere, not of texts: there is nothing to calibrate by",
			e.Config.Name, index.Name)
	}
	options := r.flags.Options
	start, meter := time.Now(), newMeter(r.err, e.Config.Name+": "+index.Name)
	options.Progress = func(read, total int) { meter.at(read, total, "comparing them comes next") }
	report, err := calibrate.Run(ctx, e.Store, index.Name, rule, options)
	meter.end()
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return e.Explain(err)
	}
	found := calibrate.Result{Engine: e.Config.Name, Report: report, Seconds: time.Since(start).Round(time.Millisecond).Seconds()}
	r.list = append(r.list, found)
	if r.flags.output == formText {
		_, err = io.WriteString(r.out, found.String())
	}
	return err
}

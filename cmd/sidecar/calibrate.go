package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/calibrate"
)

// calibrateJob is one run of the command.
type calibrateJob struct {
	job
	html string
	calibrate.Options
	asking

	list []*calibrate.Report
}

func calibrateCommand() *cobra.Command {
	r := calibrateJob{Options: calibrate.DefaultOptions, list: []*calibrate.Report{}}
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Suggest a threshold from the documents of an index",
		Long: `Calibrate reads documents of the indices that a rule matches and writes nothing. It shows

  - how much pairs of documents agree: random pairs, and candidates. Candidates are pairs that share a band. They are there
    because hardly any random pair is a near-duplicate
  - some pairs of every level of agreement: what they share, what differs, and their exact resemblance. A level is an agreement
    rounded to tenths
  - how exact the sketches are: the error of the agreements, and p(r), the probability that a pair of resemblance r folds
  - what each threshold does: how many documents fold, and how many are so close to the threshold that chance decides
  - a suggested threshold and the reason for it, or that the documents show no clear one

Which documents it compares:

  - an index of up to --documents documents: all of them
  - a larger index with stored bands: --sample documents, each looked up in the whole index
  - a larger index without bands: --documents documents, chosen at random

--ask shows pairs of one index instead and asks which are the same. It asks first about pairs that help most. After each answer it
prints the threshold that follows, where the best one may lie, and the precision and recall expected on this index. It ends when
more answers would hardly change the threshold, after about 20, and prints what to write into the configuration. Answers are kept
in a file: the next run continues.

--open asks on a page for a browser on this machine instead, and prints its address. The page writes the threshold too, and can remember
pairs as decided (see sidecar decide). Whoever has the address can read the documents until the command ends.

--html writes a report with tables and bars. It quotes your documents: give it only to people who may read them.

Exit code 0: done. 1: failed or interrupted, for one index at least.`,
		Example: `  sidecar calibrate --index news-2024
  sidecar calibrate --index news-2024 --html report.html
  sidecar calibrate --index news-2024 --ask --open
  sidecar calibrate --index news-2024 --ask --write
  sidecar calibrate --engine archive --sample 5000 --output json > calibration.json`,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return r.checkAsk(cmd.Flags()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !r.ask {
				return r.withEngines(cmd, r.run)
			}
			c, err := configOf(cmd)
			if err != nil {
				return err
			}
			r.file, r.sketch = configFile(cmd), c.Sketch
			return r.withEngines(cmd, r.runAsk)
		},
	}
	r.bind(cmd, indexUsage)
	flags := cmd.Flags()
	flags.IntVar(&r.Sample, "sample", r.Sample, "compare this many documents at random")
	flags.IntVar(&r.Documents, "documents", r.Documents, "read at most this many documents of an index")
	flags.IntVar(&r.Pairs, "pairs", r.Pairs, "compare this many pairs of each level by their texts")
	flags.IntVar(&r.Examples, "examples", r.Examples, "show this many pairs of each level")
	flags.Uint64Var(&r.Seed, "seed", r.Seed, "the start of the random choice: the same seed and index give the same choice")
	for name, least := range map[string]float64{"sample": 2, "documents": 2, "pairs": 1, "examples": 0} {
		bound(flags, name, least, math.MaxInt32, fmt.Sprintf("at least %v", least))
	}
	flags.StringVar(&r.html, "html", "", "write a report with tables and bars to this `file`")
	flags.BoolVar(&r.ask, "ask", false, "ask about pairs of one index, and find the threshold by the answers")
	flags.StringVar(&r.answers, "answers", "", "with --ask: keep the answers in this `file` (default answers-ENGINE-INDEX.jsonl)")
	flags.BoolVar(&r.open, "open", false, "with --ask: ask on a page in a browser on this machine, and print its address")
	flags.IntVar(&r.port, "port", 0, "with --open: the page's port at 127.0.0.1 (default any free one)")
	flags.BoolVar(&r.write, "write", false, "with --ask: write the threshold into the configuration")
	return cmd
}

// run works through the engines.
func (r *calibrateJob) run(ctx context.Context) error {
	matched, err := r.eachIndex(ctx, false, r.calibrate)
	err = r.finish(ctx, matched, err, indicesOf[*calibrate.Report]{r.list})
	if r.html != "" && len(r.list) > 0 && ctx.Err() == nil {
		failed := calibrate.WriteHTML(r.html, r.list)
		if err = errors.Join(err, failed); failed == nil {
			_, _ = fmt.Fprintf(r.err, "report written to %s\n", r.html)
		}
	}
	return err
}

// reading shows how far a calibration has read.
type reading struct{ *meter }

// Read implements calibrate.Progress.
func (r reading) Read(documents, of int) { r.at(documents, of, "comparing them comes next") }

// calibrate looks at one index and prints what it found.
func (r *calibrateJob) calibrate(ctx context.Context, index jobs.Job) error {
	if !index.Rule.Sketcher.Scheme().Features.Sets() {
		return valuesOnly(index.Index)
	}
	options, start, meter := r.Options, time.Now(), r.meter(index)
	options.Progress = reading{meter}
	report, err := calibrate.Run(ctx, index.Store, index.Index, index.Rule, options)
	meter.clearBar()
	if err != nil {
		return err
	}
	report.Engine, report.Seconds = index.Engine, time.Since(start).Round(time.Millisecond).Seconds()
	r.list = append(r.list, report)
	r.printf("%s", report)
	return nil
}

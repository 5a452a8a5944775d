package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/jobs"
)

// verifyJob is one run of the command.
type verifyJob struct {
	job
	jobs.VerifyOptions
	sample int

	list []jobs.VerifyReport
	// wrong is how many stale documents were found; left how many of all that was found is as it should not be.
	wrong, left int
}

func verifyCommand() *cobra.Command {
	v := verifyJob{list: []jobs.VerifyReport{}}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that stored sketches belong to their texts, and repair them",
		Long: `Verify reads every document of the indices that a rule matches, computes the sketch of its text, and compares it with the stored
sketch. It writes nothing unless --repair is given. For each index it counts the documents of each kind:

  right                    the stored sketch is that of the text
  absent                   there is no sketch: searches compute it
  incomparable             the sketch was made with another scheme or from other fields: it counts as absent
  stale                    the sketch is that of another text. The text was changed directly in the engine
  textless with a sketch   there is a sketch, but no text any more: also stale
  without text             there is no text and no sketch

If the rule stores bands or clusters, it checks them too. They can be absent, stale (made from another sketch) or left over from an
earlier rule. A cluster can also be foreign (made with another threshold or scheme). On Elasticsearch and OpenSearch it also names mappings that fill our fields (copy_to, an alias, a runtime field).

--repair fixes the documents. If a document changes meanwhile, it rereads it. (sidecar reindex skips it.)

--sample checks a number of random documents of each index instead of all.

Exit code 0: nothing is stale, whatever is absent or incomparable. 1: something is stale, or a mapping fills our fields; with --repair,
some documents could not be fixed. 2: something could not be read or written, or the command line or the configuration is wrong.`,
		Example: `  sidecar verify
  sidecar verify --index news-2024 --sample 1000 --output json
  sidecar verify --index news-2024 --repair --requests-per-second 500`,
		PreRunE: v.check,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.withEngines(cmd, v.run) },
	}
	v.bind(cmd, indexUsage)
	flags := cmd.Flags()
	flags.IntVar(&v.sample, "sample", 0, "check this many random documents of each index; 0: all")
	flags.BoolVar(&v.Repair, "repair", false, "repair what is wrong")
	flags.Float64Var(&v.RequestsPerSecond, "requests-per-second", 0, "repair at most this many documents a second; 0: no limit")
	bound(flags, "sample", 0, math.MaxInt32, "a number above 0, or 0 to look at all documents")
	boundBelow(flags, "requests-per-second")
	v.bindUntested(cmd)
	v.bindMetrics(cmd)
	return cmd
}

func (v *verifyJob) check(*cobra.Command, []string) error {
	if v.RequestsPerSecond > 0 && !v.Repair {
		return errors.New("--requests-per-second bounds what is written: it goes with --repair")
	}
	return nil
}

// verifyResult is what is reported in JSON.
type verifyResult struct {
	Indices []jobs.VerifyReport `json:"indices"`
	// Stale are those of all indices, the emptied ones among them.
	Stale int `json:"stale"`
}

// run works through the engines.
func (v *verifyJob) run(ctx context.Context) error {
	matched, err := v.eachIndex(ctx, v.Repair, v.verify)
	err = v.finish(ctx, matched, err, verifyResult{v.list, v.wrong})
	if err == nil && v.left > 0 {
		return terminal.ErrFound
	}
	return err
}

// verify looks at one index and prints what it found.
func (v *verifyJob) verify(ctx context.Context, index jobs.Job) error {
	selected := adapters.Selection{Random: v.sample > 0, Limit: v.sample}
	start, meter := time.Now(), v.meter(index)
	f, err := jobs.Verify(ctx, index, selected, v.VerifyOptions, func(f jobs.Findings) {
		meter.at(f.Scanned, f.Total, fmt.Sprintf("%d right, %d stale", f.Right, f.Wrong()))
		meter.metrics.Verified(f)
	})
	meter.clearBar()
	meter.metrics.End(err)
	v.wrong += f.Wrong()
	if v.Repair {
		v.left += f.Repair.Changed + f.Repair.Refused
	} else {
		v.left += f.Wrong()
	}
	found := f.In(index, v.Repair)
	found.Seconds, found.Whole = time.Since(start).Round(time.Millisecond).Seconds(), err == nil && v.sample == 0
	if provisioner, has := index.Store.(adapters.Provisioner); has && err == nil {
		found.Filled, err = provisioner.Filled(ctx, index.Index)
		v.left += len(found.Filled)
	}
	v.list = append(v.list, found)
	v.printf("%s", found)
	return err
}

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
		Short: "Say whether the sketches that are stored are those of the documents' texts, and mend them",
		Long: `Verify reads every document of the indices that a rule matches, computes what our fields should hold, and compares it
with what is stored. It writes nothing unless --repair is given. For each index it counts the documents whose sketch
is

  right                right
  absent               not there, or cleared: searches compute it
  incomparable         of another scheme or of other fields, which counts as absent
  stale                of another text: it was changed inside the engine, or past the sidecar
  textless with one    there, though the document has no text any more, which is stale too
  without text         not there, because there is no word to sketch

Where the rule stores bands or clusters, it counts apart those that are absent, those that are stale (they are not of
the right sketch beside them: look-ups miss the document, or searches in native mode fold it wrongly), clusters that
are foreign (made under another threshold or scheme), and what is left over of a rule that stored them. On Elasticsearch
and OpenSearch it names what the mapping of an index fills our fields with (copy_to, an alias, a runtime field).

--repair mends the documents that it looks at. A document that changes meanwhile is not overwritten but looked at again. Without it, what is absent, incomparable or stale is mended by: sidecar reindex

--sample looks at a number of documents of each index, chosen at random, instead of all.

Exit code 0: none is stale. 1: some are, or a mapping fills our fields; with --repair, some could not be mended. 2:
something could not be read or written, or the command line or the configuration is wrong.`,
		Example: `  sidecar verify
  sidecar verify --index news-2024 --sample 1000 --output json
  sidecar verify --index news-2024 --repair --requests-per-second 500`,
		PreRunE: v.check,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.withEngines(cmd, v.run) },
	}
	v.bind(cmd, indexUsage)
	flags := cmd.Flags()
	flags.IntVar(&v.sample, "sample", 0, "look at this many documents of each index; 0 is all of them")
	flags.BoolVar(&v.Repair, "repair", false, "mend what is not as it should be")
	flags.Float64Var(&v.RequestsPerSecond, "requests-per-second", 0, "mend at most this many documents per second; 0 is no limit")
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
	err = v.end(ctx, matched, err, verifyResult{v.list, v.wrong})
	if err == nil && v.left > 0 {
		return terminal.ErrFound
	}
	return err
}

// verify looks at one index and prints what it found.
func (v *verifyJob) verify(ctx context.Context, t target) error {
	selected := adapters.Selection{Random: v.sample > 0, Limit: v.sample}
	start, meter := time.Now(), v.meter(t)
	f, err := jobs.Verify(ctx, t.Job, selected, v.VerifyOptions, func(f jobs.Findings) {
		meter.at(f.Scanned, f.Total, fmt.Sprintf("%d right, %d stale", f.Right, f.Wrong()))
		meter.Verified(f)
	})
	meter.end()
	meter.End(err)
	v.wrong += f.Wrong()
	if v.Repair {
		v.left += f.Repair.Changed + f.Repair.Refused
	} else {
		v.left += f.Wrong()
	}
	found := f.In(t.Config.Name, t.Index, t.Rule, v.Repair)
	found.Seconds, found.Whole = time.Since(start).Round(time.Millisecond).Seconds(), err == nil && v.sample == 0
	if provisioner, has := t.Job.Store.(adapters.Provisioner); has && err == nil {
		found.Filled, err = provisioner.Filled(ctx, t.Index)
		v.left += len(found.Filled)
	}
	v.list = append(v.list, found)
	v.printf("%s", found)
	return err
}

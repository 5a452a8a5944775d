package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs"
)

// removeJob is one run of the command.
type removeJob struct {
	job
	yes, journals bool
	jobs.RemoveOptions

	list          []jobs.Removal
	refused, left int
}

func removeCommand() *cobra.Command {
	r := removeJob{list: []jobs.Removal{}}
	r.resumeHint = "the same command goes on where this one stopped"
	cmd := &cobra.Command{
		Use:   "remove --index NAME",
		Short: "Remove our fields from an index",
		Long: `Remove takes our fields out of every document of an index, or of all indices of an alias or pattern. Then it takes them out of the
schema if the engine can do that, and says what stays. Every other byte of a document stays as it was. A document that changes
meanwhile is read again.

First take the rule out of the configuration of every sidecar that serves the index, or stop these sidecars. Otherwise they write the
fields again. Remove itself needs no rule for the index.

--jobs also removes the progress notes of reindex for these indices, and their decided pairs. If none of other indices are left, it
removes the index or collection that held them.

On a terminal it asks first; elsewhere it needs --yes. You can run it again after an interruption.

Exit code 0: nothing of ours is left. 1: failed, interrupted, or some documents changed again and again. 3: the engine
refused some.`,
		Example: `  sidecar remove --index news-2024 --dry-run
  sidecar remove --index news-2024
  sidecar remove --index 'news-*' --engine archive --yes --jobs`,
		PreRunE: r.check,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.withEngines(cmd, r.run) },
	}
	r.bind(cmd, "the indices of this `name`: an index, an alias or a pattern")
	flags := cmd.Flags()
	flags.BoolVar(&r.DryRun, "dry-run", false, "write nothing: count the documents with our fields")
	flags.BoolVar(&r.yes, "yes", false, "do not ask")
	flags.BoolVar(&r.journals, "jobs", false, "also remove the progress notes of jobs, and decided pairs")
	flags.Float64Var(&r.RequestsPerSecond, "requests-per-second", 0, "write at most this many documents a second; 0: no limit")
	boundBelow(flags, "requests-per-second")
	r.bindUntested(cmd)
	return cmd
}

func (r *removeJob) check(*cobra.Command, []string) error {
	if r.index == "" {
		return errors.New("--index is missing: name the index, alias or pattern to take our fields out of")
	}
	return nil
}

// run works through the indices of all engines. What fails for one index does not keep it from the next.
func (r *removeJob) run(ctx context.Context) error {
	targets, err := r.targets(ctx)
	if err != nil {
		return err
	}
	if len(targets) == 0 && !r.journals {
		return fmt.Errorf("no index behind %s: see the names of your indices", r.index)
	}
	for _, t := range targets {
		if r.DryRun {
			break
		}
		if err := t.CheckVersion(ctx, r.untested); err != nil {
			return err
		}
	}
	if err := r.confirm(ctx, targets); err != nil {
		return err
	}
	var errs []error
	for _, t := range targets {
		if ctx.Err() != nil {
			break
		}
		if err := r.remove(ctx, t); err != nil && ctx.Err() == nil {
			errs = append(errs, t.Explain(err))
		}
	}
	for _, e := range r.engines {
		if r.journals && !r.DryRun && ctx.Err() == nil {
			if err := r.dropJournals(ctx, e, e.Store.Journal()); err != nil {
				errs = append(errs, e.Explain(err))
			}
		}
	}
	if r.left > 0 {
		errs = append(errs, fmt.Errorf("%s changed whenever they were to be written: run it again when less is written",
			terminal.Count(r.left, "document")))
	}
	if err := r.finish(ctx, true, errors.Join(errs...), indicesOf[jobs.Removal]{r.list}); err != nil {
		return err
	}
	if r.refused > 0 {
		return errRefused
	}
	return nil
}

// targets returns the indices of the name, in whatever engine.
func (r *removeJob) targets(ctx context.Context) ([]target, error) {
	var list []target
	for _, e := range r.engines {
		indices, err := e.Store.Resolve(ctx, r.index)
		if err != nil {
			return nil, e.Explain(err)
		}
		for _, index := range indices {
			if !index.Absent {
				list = append(list, targetOf(e, index))
			}
		}
	}
	return list, nil
}

// confirm asks whether the fields are to go, where there is someone to ask.
func (r *removeJob) confirm(ctx context.Context, targets []target) error {
	if r.yes || r.DryRun {
		return nil
	}
	if !terminal.IsTerminal(r.in) {
		return errors.New("--yes is needed where there is no terminal to ask on; see what would go with --dry-run")
	}
	_, _ = fmt.Fprintln(r.err, "This takes our fields out of every document of:")
	for _, t := range targets {
		rule := ""
		if t.Rule != nil {
			rule = " (a rule matches it: a sidecar that serves under it would write them again)"
		}
		_, _ = fmt.Fprintf(r.err, "  %s%s\n", terminal.Harmless(t.Title()), rule)
	}
	_, _ = fmt.Fprint(r.err, "Go on? [y/N] ")
	answer, err := bufio.NewReader(terminal.UntilDone(ctx, r.in)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// remove works through one index and prints its summary.
func (r *removeJob) remove(ctx context.Context, t target) error {
	start, meter := time.Now(), r.meter(t.Job)
	found, err := jobs.Remove(ctx, jobs.Job{Store: t.Job.Store, Index: t.Index}, r.RemoveOptions, func(c jobs.Removal) {
		meter.at(c.Scanned, c.Total, fmt.Sprintf("%d hold something of ours, %d cleaned", c.Found, c.Cleaned))
	})
	meter.clearBar()
	found.Engine, found.Index, found.DryRun = t.Config.Name, t.Index, r.DryRun
	r.refused, r.left = r.refused+found.Refused, r.left+found.Left
	clean := err == nil && found.Left+found.Refused == 0
	if clean && !r.DryRun { // a declaration goes after the last value
		found.Note, err = t.Job.Store.Remove(ctx, t.Index)
	}
	found.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	r.list = append(r.list, found)
	r.printf("%s", found)
	return err
}

// dropJournals drops the journals of jobs on the indices that were worked on, and their decided pairs, and the journal's own index when no other is left.
func (r *removeJob) dropJournals(ctx context.Context, e *upstream.Engine, journal adapters.Journal) error {
	entries, err := journal.Entries(ctx, "")
	if err != nil {
		return fmt.Errorf("read the journals of jobs: %w", err)
	}
	dropped, others := map[string]bool{}, map[string]bool{}
	for _, entry := range entries {
		index := jobs.IndexOf(entry.Job)
		ours := slices.ContainsFunc(r.list, func(f jobs.Removal) bool { return f.Engine == e.Config.Name && f.Index == index })
		switch {
		case entry.Job == decided.JobName: // below
		case !ours:
			others[entry.Job] = true
		case !dropped[entry.Job]:
			dropped[entry.Job] = true
			if err := journal.Drop(ctx, entry.Job, -1, 0); err != nil {
				return fmt.Errorf("drop the journal of %s: %w", entry.Job, err)
			}
		}
	}
	pairs, left, err := decided.Open(journal).Drop(ctx, func(index string) bool {
		return rule.Globbed(r.index, index) || slices.ContainsFunc(r.list, func(f jobs.Removal) bool { return f.Engine == e.Config.Name && f.Index == index })
	})
	if err != nil {
		return fmt.Errorf("drop the decided pairs: %w", err)
	}
	if left {
		others["decided pairs"] = true
	}
	state := "no other was left, and so the journal itself went"
	if len(others) > 0 {
		state = "those of other indices stay: " + strings.Join(slices.Sorted(maps.Keys(others)), ", ")
	} else if _, err := e.Store.Remove(ctx, e.Store.JournalIndex()); err != nil {
		return fmt.Errorf("remove the journal of jobs: %w", err)
	}
	r.printf("%s: %s and %s dropped; %s\n", e.Config.Name, terminal.Count(len(dropped), "job's journal"), terminal.Count(pairs, "decided pair"), state)
	return nil
}

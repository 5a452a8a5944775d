package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/jobs"
)

// reindexFlags are what the command line asks of a reindex.
type reindexFlags struct {
	engine, index string
	jobs.Options
}

func reindexCommand() *cobra.Command {
	var f reindexFlags
	cmd := &cobra.Command{
		Use:   "reindex",
		Short: "Give documents that are stored already their sketches",
		Long: `Reindex reads every document of the indices that a rule matches, and stores the sketch of each that has none or a wrong
one. Nothing else in a document changes, and a document that changes meanwhile is left to its writer.

The sketches stored are the checkpoint: broken off in any way, the same command goes on where it stopped, and run again
it writes nothing.

Exit code 0: done. 1: failed or interrupted. 3: done, and the engine refused some documents.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.DocumentsPerSecond < 0 || f.MaxDocuments < 0 {
				return errors.New("--documents-per-second and --max-documents can't be negative: use 0 for no bound")
			}
			c, err := configOf(cmd)
			if err != nil {
				return err
			}
			engines, err := c.openAll(f.engine)
			if err != nil {
				return err
			}
			r := reindexRun{flags: f, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
			return r.engines(cmd.Context(), engines)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.engine, "engine", "", "only the engine with this `name`")
	flags.StringVar(&f.index, "index", "", "only the indices behind this `name`: an index, an alias or a pattern")
	flags.Float64Var(&f.DocumentsPerSecond, "documents-per-second", 0, "write at most so many documents in a second; 0 is no bound")
	flags.IntVar(&f.MaxDocuments, "max-documents", 0, "stop after writing so many documents; 0 is no bound")
	flags.BoolVar(&f.DryRun, "dry-run", false, "write nothing, not even to a mapping: say what would be written")
	return cmd
}

// reindexRun is one run of the command.
type reindexRun struct {
	flags    reindexFlags
	out, err io.Writer
	total    jobs.Progress
}

// engines works through the engines. What fails for one index does not keep it from the next.
func (r *reindexRun) engines(ctx context.Context, engines []*opened) error {
	var errs []error
	matched := false
	for _, e := range engines {
		indices, err := r.indices(ctx, e)
		if err != nil {
			errs = append(errs, err)
		}
		matched = matched || len(indices) > 0
		for _, index := range indices {
			if ctx.Err() != nil || r.total.Cut {
				break
			}
			errs = append(errs, r.index(ctx, e, index))
		}
	}
	if ctx.Err() != nil {
		return errors.Join(append(errs, errors.New("interrupted: the same command goes on where this one stopped"))...)
	}
	if !matched && errors.Join(errs...) == nil {
		if r.flags.index != "" {
			return fmt.Errorf("no index behind %s: see the names of your indices, and the rules with: sidecar config check", r.flags.index)
		}
		_, _ = fmt.Fprintln(r.out, "nothing to do: no index matches a rule")
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if r.total.Refused > 0 {
		return errRefused
	}
	return nil
}

// indices returns the indices to work on, prepared unless nothing is to be written.
func (r *reindexRun) indices(ctx context.Context, e *opened) ([]adapters.Index, error) {
	names := []string{r.flags.index}
	if r.flags.index == "" {
		names = nil
		for _, rule := range e.rules {
			names = append(names, rule.Match)
		}
	}
	look := e.prepare
	if r.flags.DryRun {
		look = e.matching
	}
	var all []adapters.Index
	seen := map[string]bool{}
	for _, name := range names {
		indices, err := look(ctx, name)
		if err != nil {
			return all, fmt.Errorf("engine %s: prepare %s: %w", e.config.Name, name, err)
		}
		for _, index := range indices {
			if !seen[index.Name] {
				all = append(all, index)
			}
			seen[index.Name] = true
		}
	}
	return all, nil
}

// index works through one index and prints its summary.
func (r *reindexRun) index(ctx context.Context, e *opened, index adapters.Index) error {
	rule := e.rules.Of(index)
	if rule == nil || !index.Ready && !r.flags.DryRun {
		return fmt.Errorf("engine %s: index %s is not ready: %s", e.config.Name, index.Name, index.Why)
	}
	options := r.flags.Options
	if options.MaxDocuments > 0 {
		options.MaxDocuments -= r.total.Sent()
	}
	title := e.config.Name + ": " + index.Name
	start, meter := time.Now(), newMeter(r.err, title)
	progress, err := jobs.Reindex(ctx, e.store, index.Name, rule, options, meter.show)
	meter.end()
	r.total = r.total.Add(progress)
	if r.flags.MaxDocuments > 0 && r.total.Sent() >= r.flags.MaxDocuments {
		r.total.Cut = true
	}
	_, _ = fmt.Fprintln(r.out, summary(title, progress, time.Since(start), r.flags.DryRun))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("engine %s: %w", e.config.Name, err)
	}
	return nil
}

// summary returns the line that ends the work on one index.
func summary(title string, p jobs.Progress, took time.Duration, dryRun bool) string {
	written, note := "written", ""
	if dryRun {
		written = "to be written"
	}
	if p.Cut {
		note = ", stopped at --max-documents"
	}
	return fmt.Sprintf("%s: %d scanned, %d %s, %d right already, %d without text, %d changed meanwhile, %d gone, %d refused, in %s%s",
		title, p.Scanned, p.Written, written, p.Skipped, p.Textless, p.Changed, p.Gone, p.Refused, took.Round(10*time.Millisecond), note)
}

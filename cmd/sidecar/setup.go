package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
)

func setupCommand() *cobra.Command {
	var engine string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Prepare the indices of every rule and the templates they are made from, with the operator's credentials",
		Long: `Setup declares our fields in every index that a rule matches, and in your own index templates if what they are for is matched
as a whole: the sketch, and for rules with bands and clusters (bands, on_duplicate, native) these. It makes no template, leaves alone
the engine's own, changes no document and may be run at any time; what is prepared already stays as it is. Run it again when a rule
gets bands or clusters: until its indices declare them, documents are stored without sketches. It prints one line for each index
and template.`,
		Example: `  sidecar setup --config config.yaml
  sidecar setup --dry-run --engine news`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := configOf(cmd)
			if err != nil {
				return err
			}
			engines, err := c.openAll(engine)
			if err != nil {
				return err
			}
			var errs []error
			for _, e := range engines {
				errs = append(errs, e.setup(cmd.Context(), cmd.OutOrStdout(), dryRun))
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().StringVar(&engine, "engine", "", "only the engine with this `name`")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing, say what lacks")
	return cmd
}

// setup prepares what the rules match and prints a line for each index and template. The error joins what could not be prepared; a
// dry run has none of these.
func (e *opened) setup(ctx context.Context, out io.Writer, dryRun bool) error {
	var errs []error
	seen := map[string]bool{}
	look := e.prepare
	if dryRun {
		look = e.matching
	}
	for _, rule := range e.rules {
		indices, err := look(ctx, rule.Match)
		if err != nil {
			errs = append(errs, fmt.Errorf("engine %s: prepare %s: %w", e.config.Name, rule.Match, err))
			continue
		}
		if len(indices) == 0 {
			_, _ = fmt.Fprintf(out, "%s: %s: no index matches yet\n", e.config.Name, rule.Match)
		}
		for _, index := range indices {
			if seen[index.Name] {
				continue
			}
			seen[index.Name] = true
			if index.Ready {
				_, _ = fmt.Fprintf(out, "%s: %s: ready\n", e.config.Name, index.Name)
				continue
			}
			_, _ = fmt.Fprintf(out, "%s: %s: not ready: %s\n", e.config.Name, index.Name, index.Why)
			if !dryRun {
				errs = append(errs, fmt.Errorf("engine %s: index %s is not ready: %s", e.config.Name, index.Name, index.Why))
			}
		}
	}
	return errors.Join(append(errs, e.templates(ctx, out, dryRun), e.pipelines(ctx, out))...)
}

// pipelines prints a line for each index whose documents the engine changes after they were sketched.
func (e *opened) pipelines(ctx context.Context, out io.Writer) error {
	store, has := e.store.(*elastic.Store)
	if !has {
		return nil
	}
	found, err := store.Pipelines(ctx, e.rules)
	for _, index := range slices.Sorted(maps.Keys(found)) {
		const note = "note: the ingest pipeline %s runs after documents are sketched: if it changes a sketched field, run reindex"
		_, _ = fmt.Fprintf(out, "%s: %s: "+note+"\n", e.config.Name, index, strings.Join(found[index], ", "))
	}
	if err != nil {
		return fmt.Errorf("engine %s: %w", e.config.Name, err)
	}
	return nil
}

// templates prepares the templates of an engine that has such, and prints a line for each.
func (e *opened) templates(ctx context.Context, out io.Writer, dryRun bool) error {
	store, has := e.store.(*elastic.Store)
	if !has {
		return nil
	}
	list, err := store.Templates(ctx, e.rules, dryRun)
	errs := []error{err}
	for _, t := range list {
		state := "left alone: " + t.Why
		switch {
		case t.Err != nil:
			state = "not ready: " + t.Err.Error()
			errs = append(errs, fmt.Errorf("template %s is not ready: %w", t.Name, t.Err))
		case t.Added && t.Ready:
			state = "ready, the field was added"
		case t.Added:
			state = "the field would be added"
		case t.Ready:
			state = "ready"
		}
		_, _ = fmt.Fprintf(out, "%s: template %s: %s\n", e.config.Name, t.Name, state)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("engine %s: %w", e.config.Name, err)
	}
	return nil
}

// prepare prepares the indices behind a name that a rule matches.
func (e *opened) prepare(ctx context.Context, name string) ([]adapters.Index, error) {
	matching, err := e.matching(ctx, name)
	if err != nil {
		return nil, err
	}
	var indices []adapters.Index
	for _, index := range matching {
		if e.rules.Of(index) == nil {
			indices = append(indices, index)
			continue
		}
		prepared, err := e.store.Prepare(ctx, index.Name, false)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", index.Name, err)
		}
		indices = append(indices, prepared...)
	}
	return indices, nil
}

// matching returns the indices behind a name that a rule matches. The others are none of our business; only where the name leads
// to no index but such do they come back, as not ready, so that it can be said why.
func (e *opened) matching(ctx context.Context, name string) ([]adapters.Index, error) {
	behind, err := e.store.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	var indices, strangers []adapters.Index
	for _, index := range behind {
		if e.rules.Of(index) != nil {
			indices = append(indices, index)
			continue
		}
		why := "no rule matches it: a rule's match is compared with the names of indices, not with aliases"
		strangers = append(strangers, adapters.Index{Name: index.Name, Why: why})
	}
	if len(indices) == 0 {
		return strangers, nil
	}
	return indices, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/upstream"
)

func setupCommand() *cobra.Command {
	r := setupJob{setupResult: setupResult{Indices: []setupIndex{}, Templates: []setupTemplate{}}}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Prepare the indices of every rule and the templates they are made from, with the operator's credentials",
		Long: `Setup declares our fields in every index that a rule matches. It also declares them in your own index templates,
composable and legacy ones. Each pattern of such a template must be matched by a rule: a template for news-* and blog-* is left alone
unless there is a rule for both. Component templates stay as they are. The fields are the sketch and, if a rule uses them (bands,
on_duplicate, native), bands and clusters. It makes no template, changes no template of the engine's own and no document. You can run
it at any time. Run it again when a rule gets bands or clusters: until its indices declare
these fields, their documents are stored with none of our fields, not even a sketch. It prints one line for each index and template.

Exit code 0: all is ready, or with --dry-run, all was looked at. 1: failed, or something is not ready.`,
		Example: `  sidecar setup --config config.yaml
  sidecar setup --dry-run --engine news
  sidecar setup --dry-run --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.withEngines(cmd, r.run) },
	}
	r.bind(cmd, "")
	cmd.Flags().BoolVar(&r.dryRun, "dry-run", false, "change nothing: say what is missing")
	return cmd
}

// setupJob is one run of the command.
type setupJob struct {
	job
	dryRun bool
	setupResult
}

// setupResult is what is reported in JSON.
type setupResult struct {
	Indices   []setupIndex    `json:"indices"`
	Templates []setupTemplate `json:"templates"`
}

// setupIndex is what became of an index.
type setupIndex struct {
	Engine string `json:"engine"`
	// Index is empty for a rule that no index matches yet, which Rule then names.
	Index string `json:"index,omitempty"`
	Rule  string `json:"rule,omitempty"`
	Ready bool   `json:"ready"`
	Why   string `json:"why,omitempty"` // it is not ready
	// Pipelines change documents after they were sketched.
	Pipelines []string `json:"pipelines,omitempty"`
}

// setupTemplate is what became of a template. Of one that is left alone, Ready says nothing.
type setupTemplate struct {
	Engine   string `json:"engine"`
	Template string `json:"template"`
	Ready    bool   `json:"ready"`
	State    string `json:"state"`
}

// run works through the engines. What fails for one does not keep it from the next.
func (r *setupJob) run(ctx context.Context) error {
	var errs []error
	for _, e := range r.engines {
		if err := r.prepare(ctx, e); ctx.Err() == nil {
			errs = append(errs, err)
		}
	}
	return r.finish(ctx, true, errors.Join(errs...), r.setupResult)
}

// prepare prepares what the rules match and prints a line for each index and template. The error joins what could not be
// prepared; a dry run has none of these.
func (r *setupJob) prepare(ctx context.Context, e *upstream.Engine) error {
	var errs []error
	seen := map[string]bool{}
	for _, rule := range e.Rules {
		indices, err := e.FindOrPrepare(ctx, rule.Match, !r.dryRun)
		if errs = append(errs, err); upstream.Unreachable(err) || ctx.Err() != nil {
			return errors.Join(errs...)
		}
		if err == nil && len(indices) == 0 {
			r.Indices = append(r.Indices, setupIndex{Engine: e.Config.Name, Rule: rule.Match, Why: "no index matches yet"})
			r.printf("%s: %s: no index matches yet\n", e.Config.Name, rule.Match)
		}
		for _, index := range indices {
			if seen[index.Name] {
				continue
			}
			seen[index.Name] = true
			one, state := setupIndex{Engine: e.Config.Name, Index: index.Name, Ready: index.Ready}, "ready"
			if !index.Ready {
				one.Why, state = index.Why, "not ready: "+index.Why
			}
			r.printf("%s: %s: %s\n", e.Config.Name, index.Name, state)
			r.Indices = append(r.Indices, one)
			if !index.Ready && !r.dryRun {
				errs = append(errs, notReady(e, index))
			}
		}
	}
	if provisioner, has := e.Store.(adapters.Provisioner); has {
		errs = append(errs, r.templates(ctx, e, provisioner), r.pipelines(ctx, e, provisioner))
	}
	return errors.Join(errs...)
}

// pipelines prints a line for each index whose documents the engine changes after they were sketched.
func (r *setupJob) pipelines(ctx context.Context, e *upstream.Engine, provisioner adapters.Provisioner) error {
	found, err := provisioner.Pipelines(ctx, e.Rules)
	for _, index := range slices.Sorted(maps.Keys(found)) {
		const note = "note: the ingest pipeline %s runs after documents are sketched: if it changes a sketched field, run reindex"
		r.printf("%s: %s: "+note+"\n", e.Config.Name, index, strings.Join(found[index], ", "))
		for i := range r.Indices {
			if r.Indices[i].Engine == e.Config.Name && r.Indices[i].Index == index {
				r.Indices[i].Pipelines = found[index]
			}
		}
	}
	if err != nil {
		return e.Explain(err)
	}
	return nil
}

// templates prepares the templates of an engine that has such, and prints a line for each.
func (r *setupJob) templates(ctx context.Context, e *upstream.Engine, provisioner adapters.Provisioner) error {
	list, err := provisioner.Templates(ctx, e.Rules, r.dryRun)
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
		one := setupTemplate{Engine: e.Config.Name, Template: t.Name, Ready: t.Ready && t.Err == nil, State: state}
		r.Templates = append(r.Templates, one)
		r.printf("%s: template %s: %s\n", e.Config.Name, t.Name, state)
	}
	if err := errors.Join(errs...); err != nil {
		return e.Explain(err)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// job is what the commands have in common that work through indices: flags, streams and engines.
type job struct {
	engine, index, output string
	untested              bool
	metrics               server.JobMetrics

	in       io.Reader
	out, err io.Writer
	engines  []*upstream.Engine
	// resumeHint is what to do when it was interrupted.
	resumeHint string
	// done says that no further index is to be worked on.
	done bool
}

// target is an index that a job works on, and its rule.
type target struct {
	*upstream.Engine
	index adapters.Index
	rule  *rule.Rule
}

// title is what the index is called in lines for people.
func (t target) title() string { return t.Config.Name + ": " + t.index.Name }

// indicesOf is what a job reports in JSON.
type indicesOf[Report any] struct {
	Indices []Report `json:"indices"`
}

// indexUsage is the usage of --index where all indices of the rules are worked on without it.
const indexUsage = "only the indices behind this `name`: an index, an alias or a pattern"

// bind adds the flags of every job. Without a usage there is no --index.
func (j *job) bind(cmd *cobra.Command, index string) {
	flags := cmd.Flags()
	flags.StringVar(&j.engine, "engine", "", "only the engine with this `name`")
	if index != "" {
		flags.StringVar(&j.index, "index", "", index)
	}
	addOutput(flags, &j.output)
}

// bindUntested adds the flag of a job that writes to documents that are stored.
func (j *job) bindUntested(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&j.untested, "untested", false, "write even if the engine's version is one that neardup is not tested on")
}

// bindMetrics adds the flag of a job that can be watched.
func (j *job) bindMetrics(cmd *cobra.Command) {
	cmd.Flags().StringVar(&j.metrics.Address, "metrics", "",
		"while it runs, show /metrics for Prometheus at this `address`, such as 127.0.0.1:9601")
}

// do runs a command on the engines that it is for, and shows metrics where they are asked for.
func (j *job) do(cmd *cobra.Command, run func(context.Context) error) error {
	j.in, j.out, j.err = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	c, err := configOf(cmd)
	if err != nil {
		return err
	}
	if j.engines, err = upstream.OpenAll(c, j.engine); err != nil {
		return err
	}
	if err := j.metrics.Start(cmd.Name(), j.err); err != nil {
		return err
	}
	defer j.metrics.Stop()
	return run(cmd.Context())
}

// printf prints for people, where they are asked for.
func (j *job) printf(format string, values ...any) {
	if j.output == formText {
		_, _ = io.WriteString(j.out, terminal.Harmless(fmt.Sprintf(format, values...))) // an error of the output is kept by results, here and elsewhere
	}
}

// meter returns what shows the progress on an index.
func (j *job) meter(t target) *meter {
	return newMeter(j.err, t.title(), j.metrics.Index(t.Config.Name))
}

// each works through the indices; writing, it prepares them first. It reports whether there were any. What fails for one index does not keep it
// from the next.
func (j *job) each(ctx context.Context, writing bool, work func(context.Context, target) error) (matched bool, err error) {
	var errs []error
	for _, e := range j.engines {
		if writing {
			if err := e.CheckVersion(ctx, j.untested); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		indices, err := e.Indices(ctx, j.index, writing)
		errs = append(errs, err)
		matched = matched || len(indices) > 0
		for _, index := range indices {
			t := target{e, index, index.Rule(e.Rules)}
			switch {
			case ctx.Err() != nil || j.done:
			case t.rule == nil:
				errs = append(errs, fmt.Errorf("engine %s: index %s: %s", e.Config.Name, index.Name, index.Why))
			case writing && !index.Ready:
				errs = append(errs, notReady(e, index))
			default:
				if err := work(ctx, t); err != nil && ctx.Err() == nil {
					errs = append(errs, e.Explain(err))
				}
			}
		}
	}
	return matched, errors.Join(errs...)
}

// matching returns the indices behind --index that a rule matches. None is an error.
func (j *job) matching(ctx context.Context) (matching []target, err error) {
	var others []string
	for _, e := range j.engines {
		indices, err := e.Matching(ctx, j.index)
		if err != nil {
			return nil, e.Explain(err)
		}
		for _, index := range indices {
			if t := (target{e, index, index.Rule(e.Rules)}); t.rule != nil && !index.Absent {
				matching = append(matching, t)
			} else {
				others = append(others, fmt.Sprintf("index %s: %s", index.Name, index.Why))
			}
		}
	}
	switch {
	case len(matching) > 0:
		return matching, nil
	case len(others) > 0:
		return nil, errors.New(strings.Join(others, "; "))
	}
	return nil, noIndex(j.index)
}

// end ends a job: with what was found as JSON, where that is asked for.
func (j *job) end(ctx context.Context, matched bool, err error, found any) error {
	if ctx.Err() != nil {
		interrupted := terminal.ErrInterrupted
		if j.resumeHint != "" {
			interrupted = fmt.Errorf("%w: %s", interrupted, j.resumeHint)
		}
		err = errors.Join(err, interrupted)
	}
	switch {
	case matched || err != nil:
	case j.index != "":
		return noIndex(j.index)
	default:
		j.printf("nothing to do: no index matches a rule\n")
	}
	if j.output == formJSON {
		err = errors.Join(err, terminal.WriteJSON(j.out, found))
	}
	return err
}

func notReady(e *upstream.Engine, index adapters.Index) error {
	return fmt.Errorf("engine %s: index %s is not ready: %s", e.Config.Name, index.Name, index.Why)
}

func noIndex(name string) error {
	return fmt.Errorf("no index behind %s: see the names of your indices, and the rules with: sidecar config check", name)
}

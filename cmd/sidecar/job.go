package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs"
)

// job is what the commands that work through indices have in common: flags, streams and engines.
type job struct {
	engine, index, output string
	untested              bool
	undecided             bool // ignore decided pairs
	metrics               server.JobMetrics

	in       io.Reader
	out, err io.Writer
	engines  []*upstream.Engine
	// resumeHint is what to do when it was interrupted.
	resumeHint string
	// enough ends the job before the next index.
	enough bool
}

// indexUsage is the usage of --index in commands that work on all indices of the rules without it.
const indexUsage = "only the indices of this `name`: an index, an alias or a pattern"

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

// metricsUsage is the usage of --metrics in a command that can be watched.
const metricsUsage = "while it runs, show /metrics for Prometheus at this `address`, such as 127.0.0.1:7611"

// bindMetrics adds the flag of a job that can be watched.
func (j *job) bindMetrics(cmd *cobra.Command) {
	cmd.Flags().StringVar(&j.metrics.Address, "metrics", "", metricsUsage)
}

// withEngines opens the engines that the command is for, and does its work. With --metrics it shows these meanwhile.
func (j *job) withEngines(cmd *cobra.Command, work func(context.Context) error) error {
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
	return work(cmd.Context())
}

// eachIndex works through the indices, one after the other. Where the work writes, they get our fields declared first. It reports whether there
// were any. What fails for one index does not keep it from the next.
func (j *job) eachIndex(ctx context.Context, writing bool, work func(context.Context, jobs.Job) error) (matched bool, err error) {
	var errs []error
	for _, e := range j.engines {
		if writing {
			if err := e.CheckVersion(ctx, j.untested); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		indices, err := e.FindOrPrepare(ctx, j.index, writing)
		errs = append(errs, err)
		matched = matched || len(indices) > 0
		for _, index := range indices {
			t := targetOf(e, index)
			switch {
			case ctx.Err() != nil || j.enough:
			case t.Rule == nil:
				errs = append(errs, fmt.Errorf("engine %s: index %s: %s", e.Config.Name, index.Name, index.Why))
			case writing && !index.Ready:
				errs = append(errs, notReady(e, index))
			default:
				if err := work(ctx, t.Job); err != nil && ctx.Err() == nil {
					errs = append(errs, e.Explain(err))
				}
			}
		}
	}
	return matched, errors.Join(errs...)
}

// target is an index as package jobs takes it, with its engine. Without a rule none matches it.
type target struct {
	*upstream.Engine
	jobs.Job
	found adapters.Index
}

func targetOf(e *upstream.Engine, index adapters.Index) target {
	return target{e, jobs.Job{Engine: e.Config.Name, Store: e.Store, Index: index.Name, Rule: index.Rule(e.Rules)}, index}
}

// meter returns what shows the progress on an index.
func (j *job) meter(of jobs.Job) *meter {
	return newMeter(j.err, of.Title(), j.metrics.Index(of.Engine))
}

// explain adds the engine's name and a hint to an error of the work on an index.
func (j *job) explain(of jobs.Job, err error) error {
	at := slices.IndexFunc(j.engines, func(e *upstream.Engine) bool { return e.Config.Name == of.Engine })
	return j.engines[at].Explain(err)
}

// printf prints for people, unless JSON is asked for.
func (j *job) printf(format string, values ...any) {
	if j.output == formText {
		_, _ = io.WriteString(j.out, terminal.Harmless(fmt.Sprintf(format, values...))) // an error of the output is kept by results, here and elsewhere
	}
}

// finish returns how a job ended, and prints what was found where JSON is asked for.
func (j *job) finish(ctx context.Context, matched bool, err error, found any) error {
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

// indicesOf is what a job reports in JSON.
type indicesOf[Report any] struct {
	Indices []Report `json:"indices"`
}

// matching returns the indices that a rule matches, or of these the ones that --index names. It fails if no index is left.
func (j *job) matching(ctx context.Context) (targets []target, err error) {
	var others []string
	for _, e := range j.engines {
		indices, err := e.FindOrPrepare(ctx, j.index, false)
		if err != nil {
			if len(j.engines) > 1 && upstream.Unreachable(err) {
				err = fmt.Errorf("%w\nFor an index of another engine, name that engine with --engine", err)
			}
			return nil, err
		}
		for _, index := range indices {
			if t := targetOf(e, index); t.Rule != nil && !index.Absent {
				targets = append(targets, t)
			} else {
				others = append(others, fmt.Sprintf("index %s: %s", index.Name, index.Why))
			}
		}
	}
	switch {
	case len(targets) > 0:
		return targets, nil
	case len(others) > 0:
		return nil, errors.New(strings.Join(others, "; "))
	}
	return nil, noIndex(j.index)
}

// engineOf returns the indices that --index names, and their engine. It fails if several engines have some.
func (j *job) engineOf(ctx context.Context) (one *upstream.Engine, indices []adapters.Index, err error) {
	targets, err := j.matching(ctx)
	if err != nil {
		return nil, nil, err
	}
	one = targets[0].Engine
	for _, t := range targets {
		if t.Engine != one {
			return nil, nil, fmt.Errorf("--index: the engines %s and %s both have %s: choose one with --engine",
				one.Config.Name, t.Config.Name, cmp.Or(j.index, "such indices"))
		}
		indices = append(indices, t.found)
	}
	return one, indices, nil
}

// userName returns the name of the user who runs the command, or nothing if the system does not know it.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func notReady(e *upstream.Engine, index adapters.Index) error {
	return fmt.Errorf("engine %s: index %s is not ready: %s", e.Config.Name, index.Name, index.Why)
}

func noIndex(name string) error {
	return fmt.Errorf("no index behind %s: see the names of your indices, and the rules with: sidecar config check", name)
}

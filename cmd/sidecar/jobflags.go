package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// jobFlags are the flags of commands that work through the indices that rules match.
type jobFlags struct {
	engine, index, output string
	untested              bool
}

func (f *jobFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.engine, "engine", "", "only the engine with this `name`")
	flags.StringVar(&f.index, "index", "", "only the indices behind this `name`: an index, an alias or a pattern")
	addOutput(flags, &f.output)
}

// each works through the indices of some engines; writing, it prepares them first. It reports whether there were any. What fails for one index
// does not keep it from the next.
func (f *jobFlags) each(
	ctx context.Context, engines []*upstream.Engine, writing bool, work func(context.Context, *upstream.Engine, adapters.Index) error,
) (matched bool, err error) {
	var errs []error
	for _, e := range engines {
		if writing {
			if err := e.CheckVersion(ctx, f.untested); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		indices, err := e.Indices(ctx, f.index, writing)
		errs = append(errs, err)
		matched = matched || len(indices) > 0
		for _, index := range indices {
			if ctx.Err() == nil {
				errs = append(errs, work(ctx, e, index))
			}
		}
	}
	return matched, errors.Join(errs...)
}

// end ends a command that went through indices, if there were any: with what was found as JSON, where that is asked for.
func (f *jobFlags) end(ctx context.Context, out io.Writer, matched bool, err error, found any) error {
	if ctx.Err() != nil {
		err = errors.Join(err, terminal.ErrInterrupted)
	}
	if !matched && err == nil {
		if err := f.nothing(out); err != nil {
			return err
		}
	}
	if f.output == formJSON {
		err = errors.Join(err, terminal.WriteJSON(out, found))
	}
	return err
}

// nothing ends a command that found no index: with an error where --index names some.
func (f *jobFlags) nothing(out io.Writer) error {
	if f.index != "" {
		return noIndex(f.index)
	}
	if f.output != formText {
		return nil
	}
	_, err := fmt.Fprintln(out, "nothing to do: no index matches a rule")
	return err
}

func noIndex(name string) error {
	return fmt.Errorf("no index behind %s: see the names of your indices, and the rules with: sidecar config check", name)
}

// addUntested adds the flag of a job that writes to documents that are stored.
func addUntested(flags *pflag.FlagSet, untested *bool) {
	flags.BoolVar(untested, "untested", false, "write even if the engine's version is one that neardup is not tested on")
}

// addMetrics adds the flag of a job that can be watched.
func addMetrics(flags *pflag.FlagSet, metrics *server.JobMetrics) {
	flags.StringVar(&metrics.Address, "metrics", "", "while it runs, show /metrics for Prometheus at this `address`, such as 127.0.0.1:9601")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/try"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/playground"
)

// tryJob is one run of the command.
type tryJob struct {
	job
	file               string // - for standard input
	threshold, against float64
	againstConfig      string
	limit              int
}

func tryCommand() *cobra.Command {
	var t tryJob
	cmd := &cobra.Command{
		Use:   "try --index NAME FILE | -",
		Short: "Run a set of queries with and without neardup, and show what changes",
		Long: `Try runs the queries of a file, or of standard input (-), with and without collapsing. It sends them to the engine as serve would,
with the credentials of the configuration, one after the other. It writes nothing. It prints a summary in words, and then a table.
The queries that change most come first.

A line of the file is one query:

  - words, which are searched in the fields of the rule
  - a search as your client sends it: the JSON body. For Typesense: the parameters, as JSON or as a query string
  - a line of the slow log of Elasticsearch or OpenSearch, in either of its forms. Searches of other indices are left out. A slow
    log has a line for each shard and phase, so it counts a search several times

A query that appears several times runs once and counts each time. The columns of the table describe page 1:

  FOLDED   copies hidden: hits of the page that are hidden behind another hit of the page
  NEW      new results: those that were not on the page before
  FILLED   slots filled: new results that take the place of a hidden copy
  EMPTY    empty slots: places that stay free because the engine found no more
  GROUPS   results that stand for several documents
  ms       the time of page 1, in milliseconds; ms WITHOUT: without neardup

--against compares two thresholds, --against-config two configurations.

Exit code 0: done, also if the engine refused some queries. 1: failed or interrupted, or every query failed.`,
		Example: `  sidecar try queries.txt --index news-2024
  sidecar try queries.txt --index news-2024 --threshold 0.6 --against 0.8
  sidecar try queries.txt --index news-2024 --config sidecar.yaml --against-config new.yaml
  sidecar try - --index news-2024 --limit 200 --output html < /var/log/elasticsearch/my_index_search_slowlog.json > report.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("try takes a file of queries, or - for standard input, as in: sidecar try queries.txt --index news-2024")
			}
			return nil
		},
		PreRunE: t.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.file = args[0]
			return t.withEngines(cmd, func(ctx context.Context) error { return t.run(ctx, configFile(cmd)) })
		},
	}
	t.bind(cmd, "the `name` of an index or an alias")
	flags := cmd.Flags()
	flags.Lookup("output").Value = choice{&t.output, []string{formText, formJSON, formHTML}}
	flags.Lookup("output").Usage = "print results in this `form`: text, json or html"
	flags.Float64Var(&t.threshold, "threshold", 0, "fold at or above this `agreement`, instead of the rule's")
	flags.Float64Var(&t.against, "against", 0, "compare with this `threshold`")
	boundShare(flags, "threshold")
	boundShare(flags, "against")
	flags.StringVar(&t.againstConfig, "against-config", "", "compare with this configuration `file`")
	flags.IntVar(&t.limit, "limit", 1000, "run at most this many different queries")
	bound(flags, "limit", 1, 100_000, "a number from 1 to 100000")
	cmd.MarkFlagsMutuallyExclusive("against", "against-config")
	return cmd
}

func (t *tryJob) check(*cobra.Command, []string) error {
	if t.index == "" {
		return errors.New("--index is missing: name the index or alias to search")
	}
	return nil
}

func (t *tryJob) run(ctx context.Context, file string) error {
	e, indices, err := t.engineOf(ctx)
	if err != nil {
		return err
	}
	input, err := t.read(ctx, e, indices)
	if err != nil {
		return err
	}
	trial, names, err := t.trial(ctx, e, indices, file)
	if err != nil {
		return err
	}
	var failure error // the last one
	trial.Explain = func(err error) error {
		failure = err
		return err
	}
	rows, err := t.each(ctx, trial, input.Queries)
	if len(rows) == 0 {
		return err
	}
	report := try.NewReport(t.index, names, rows, input)
	if t.output == formHTML {
		err = errors.Join(err, report.HTML(t.out, playground.Files))
	} else {
		err = errors.Join(err, show(t.out, t.output, report, report.Text()))
	}
	if ran := func(r try.Row) bool { return r.Error == "" }; err == nil && !slices.ContainsFunc(rows, ran) {
		err = e.Explain(fmt.Errorf("every query failed: %w", failure))
	}
	return err
}

// read reads the queries.
func (t *tryJob) read(ctx context.Context, e *upstream.Engine, indices []adapters.Index) (*try.Input, error) {
	in, name, err := offline.Open(t.file, t.in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // only read
	reader := try.Reader{
		Name: name, Line: e.Kind.ReadQuery, Most: t.limit,
		Here: func(name string) bool {
			return name == t.index || slices.ContainsFunc(indices, func(i adapters.Index) bool { return i.Name == name || i.As == name })
		},
	}
	input, err := reader.Read(terminal.UntilDone(ctx, in))
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, try.Hint)
	}
	return input, input.Check(name)
}

// trial returns the trial and the names of its sides. file is the configuration.
func (t *tryJob) trial(ctx context.Context, e *upstream.Engine, indices []adapters.Index, file string) (trial *try.Trial, names []string, err error) {
	rule := indices[0].Rule(e.Rules)
	header := e.Config.Header()
	header["User-Agent"] = []string{"neardup-try"}
	trial = &try.Trial{Engine: e.Kind, Look: adapters.Look{Index: t.index, Fields: rule.TextFields(), Header: header}}
	if _, err := trial.Engine.LookFor(trial.Look); err != nil { // such as for a pattern: every query would fail
		return nil, nil, err
	}
	add := func(e *upstream.Engine, threshold float64, name string) error {
		h, err := server.Handler(ctx, e, slog.New(slog.DiscardHandler))
		trial.Sides, names = append(trial.Sides, try.Side{Handler: h, Threshold: threshold}), append(names, name)
		return err
	}
	if t.againstConfig != "" {
		other, err := t.other(e.Config.Name)
		if err == nil {
			err = errors.Join(add(e, t.threshold, file), add(other, t.threshold, t.againstConfig))
		}
		return trial, names, err
	}
	err = add(e, t.threshold, try.Name(t.threshold, rule.Profile.Threshold))
	if err == nil && t.against != 0 {
		err = add(e, t.against, try.Name(t.against, rule.Profile.Threshold))
	}
	return trial, names, err
}

// other opens the engine of the same name in the configuration to compare with.
func (t *tryJob) other(name string) (*upstream.Engine, error) {
	c, err := config.Load(t.againstConfig, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	engines, err := upstream.OpenAll(c, name)
	if err != nil {
		return nil, fmt.Errorf("--against-config: %w", err)
	}
	return engines[0], nil
}

// each runs the queries, and returns the rows of those that were run before an error.
func (t *tryJob) each(ctx context.Context, trial *try.Trial, queries []*try.Query) (rows []try.Row, err error) {
	next := time.Now().Add(meterEvery)
	for i, q := range queries {
		row, err := trial.Run(ctx, q, i)
		if ctx.Err() != nil {
			return rows, fmt.Errorf("%w after %d of %d queries", terminal.ErrInterrupted, i, len(queries))
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
		if now := time.Now(); now.After(next) {
			next = now.Add(meterEvery)
			_, _ = io.WriteString(t.err, terminal.Harmless(fmt.Sprintf("%s: %d of %d queries\n", t.index, len(rows), len(queries)))) // the run goes on if this fails
		}
	}
	return rows, nil
}

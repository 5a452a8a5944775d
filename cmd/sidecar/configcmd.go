package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

func configCommand() *cobra.Command {
	parent := &cobra.Command{
		Use: "config", Short: "Look at the configuration", Args: cobra.NoArgs,
		Long: `Config says what is wrong with a configuration (check), or all that it amounts to (print). Neither asks an engine:
what does is sidecar doctor.`,
		Example: `  sidecar config check
  sidecar config print --config /etc/neardup/config.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	parent.AddCommand(configCheckCommand(), configPrintCommand())
	return parent
}

func configCheckCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Report everything that is wrong with the configuration, or its rules in short",
		Long: `Check reads the configuration and reports everything that is wrong with it, each with its key, its value and what to
do; or, where nothing is, its rules in short: what all of them have, and what differs from the defaults.

With --output json what is wrong is part of the result: the list errors.

Exit code 0: it can be served. 1: it can't.`,
		Example: `  sidecar config check
  sidecar config check --config /etc/neardup/config.yaml
  sidecar config check --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validOutput(output); err != nil {
				return err
			}
			c, err := configOf(cmd)
			if output == formJSON {
				return printChecked(cmd, c, err)
			}
			if err != nil {
				return err
			}
			return c.describe(cmd.OutOrStdout())
		},
	}
	addOutput(cmd.Flags(), &output)
	return cmd
}

func configPrintCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Show all of what the configuration amounts to, as YAML or JSON and without secrets",
		Long: `Print writes every key with its value: variables and files are replaced, presets applied, defaults filled in. In the
place of a secret (credentials, the seed, what a URL may hide) stands … and nothing else, so that the output can be shown to
others. It is YAML, and read again, but for the secrets, it is the same configuration; with --output json it is the same as JSON.

Exit code 0: done. 1: something is wrong with the configuration.`,
		Example: `  sidecar config print
  sidecar config print --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validOutput(output); err != nil {
				return err
			}
			c, err := configOf(cmd)
			if err != nil {
				return err
			}
			if output == formJSON {
				return writeJSON(cmd.OutOrStdout(), c.tree())
			}
			return c.print(cmd.OutOrStdout())
		},
	}
	addOutput(cmd.Flags(), &output)
	return cmd
}

// checkedConfig is what check found, as it is reported in JSON.
type checkedConfig struct {
	File string `json:"file"`
	// OK says that there are no errors, and that the rest is filled in.
	OK      bool            `json:"ok"`
	Errors  []wrongKey      `json:"errors"`
	Sketch  string          `json:"sketch,omitempty"`
	Engines []checkedEngine `json:"engines,omitempty"`
}

// wrongKey is what is wrong with one key; the key is empty for what is wrong with the whole.
type wrongKey struct {
	Key   string `json:"key"`
	Error string `json:"error"`
}

// checkedEngine is one engine in short.
type checkedEngine struct {
	Name      string        `json:"name"`
	Kind      string        `json:"kind"`
	Listen    string        `json:"listen"`
	URLs      []string      `json:"urls"`
	OnFailure string        `json:"on_failure"`
	Rules     []checkedRule `json:"rules"`
}

// checkedRule is one rule in short: what differs from the defaults is text for people.
type checkedRule struct {
	Match     string   `json:"match"`
	Fields    []string `json:"fields"`
	Preset    string   `json:"preset"`
	Threshold float64  `json:"threshold"`
	Window    int      `json:"window"`
	Summary   []string `json:"summary"`
}

// printChecked prints what check found. A file that can't be read is no finding.
func printChecked(cmd *cobra.Command, c *Config, err error) error {
	found := checkedConfig{OK: err == nil, Errors: []wrongKey{}}
	found.File, _ = cmd.Flags().GetString("config")
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
		return err
	}
	for _, e := range flat(err) {
		wrong := wrongKey{Error: strings.TrimPrefix(e.Error(), found.File+": ")}
		if at, ok := errors.AsType[*keyError](e); ok {
			wrong = wrongKey{at.key, at.err.Error()}
		}
		found.Errors = append(found.Errors, wrong)
	}
	if c != nil && err == nil {
		found.Sketch = c.Sketch.describe()
		for _, e := range c.Engines {
			found.Engines = append(found.Engines, e.checked(c.Sketch))
		}
	}
	if failed := writeJSON(cmd.OutOrStdout(), found); failed != nil || err == nil {
		return failed
	}
	return errPrinted
}

// checked returns an engine in short.
func (e *EngineConfig) checked(section SketchConfig) checkedEngine {
	one := checkedEngine{
		Name: e.Name, Kind: e.Kind, Listen: e.Listen, URLs: []string{}, OnFailure: e.OnFailure, Rules: []checkedRule{},
	}
	for _, url := range e.URLs {
		one.URLs = append(one.URLs, redactURL(url))
	}
	for _, i := range e.Indices {
		one.Rules = append(one.Rules, checkedRule{
			Match: i.Match, Fields: i.Fields, Preset: i.Preset, Threshold: i.Threshold, Window: i.Window, Summary: i.describe(section),
		})
	}
	return one
}

// describe writes the configuration in short, without secrets.
func (c *Config) describe(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ok\nsketch: %s\n", c.file, c.Sketch.describe())
	for _, e := range c.Engines {
		where := "at " + strings.Join(e.URLs, ", ")
		if e.Kind == kind.Embedded {
			where = "inside the sidecar"
		}
		fmt.Fprintf(&b, "engine %s: %s%s in front of %s %s, on failure: %s\n", e.Name, e.Listen, e.ListenTLS.describe(), e.Kind, where, e.OnFailure)
		for _, i := range e.Indices {
			fmt.Fprintf(&b, "  %s: %s\n", i.Match, strings.Join(i.describe(c.Sketch), "; "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// describe returns the scheme in short: what counts under its family and features.
func (s SketchConfig) describe() string {
	parts := []string{s.Family, "features " + s.Features}
	add := func(counts bool, format string, args ...any) {
		if counts {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	family, features := sketch.Family(s.Family), sketch.Features(s.Features)
	packed := family == sketch.FastSimilarity || family == sketch.Permutations
	add(features == sketch.Auto || features == sketch.WordShingles, "%d words", s.Words)
	add(features == sketch.Auto || features == sketch.CharacterShingles, "%d characters", s.Characters)
	add(packed, "%d positions of %d bits", s.Positions, s.Bits)
	add(!packed && family != sketch.Hamming, "%d positions", s.Positions)
	add(family == sketch.ZeroModM, "modulus %d, %d repeats", s.Modulus, s.Repeats)
	add(features != sketch.Tags && features != sketch.Value64, "content %s", s.Content)
	add(len(s.Keep) > 0 && features != sketch.Value64, "%s kept", strings.Join(s.Keep, " and "))
	add(s.Seed.set(), "with a seed")
	add(!s.Seed.set(), "without a seed: anyone can craft texts that collide")
	return strings.Join(parts, ", ")
}

// describe returns the entry in short: what every entry has, and what differs from the defaults.
func (i IndexConfig) describe(section SketchConfig) []string {
	parts := []string{
		"fields " + strings.Join(i.Fields, ", "), i.profile(), fmt.Sprintf("window %d", i.Window), "missing: " + i.Missing,
	}
	add := func(counts bool, format string, args ...any) {
		if counts {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	rule := i.rule(nil)
	add(i.Sketch.Scheme().ID() != section.Scheme().ID(), "sketch of its own: %s", i.Sketch.describe())
	add(i.Keep > 1, "%d of a group are shown", i.Keep)
	add(!rule.Choice.Ranked(), "shown first: %s", i.chosen())
	parts = append(parts, i.conditions()...)
	add(i.Transitive, "transitive")
	add(rule.CollapsedTotals, "totals: %s", i.Totals)
	add(i.Expand != expandOff, "folded hits are shown (%s)", i.Expand)
	add(i.DryRun, "dry run: nothing is folded")
	add(rule.Bands > 0, "%d bands of %d rows", rule.Bands, rule.Rows)
	add(i.OnDuplicate != onDuplicateIndex, "on_duplicate: %s", i.OnDuplicate)
	add(i.Native, "native: collapsed by the engine")
	add(!rule.Choice.Ranked() || i.Transitive || rule.CollapsedTotals, "a search reads the whole window")
	return parts
}

// chosen says which member of a group is shown.
func (i IndexConfig) chosen() string {
	switch by := i.Representative.By; adapters.By(by) {
	case adapters.ByNewest, adapters.ByOldest:
		return by + " by " + i.DateField
	}
	return i.Representative.String()
}

// conditions returns what must hold for near-duplicates to fold.
func (i IndexConfig) conditions() (list []string) {
	if i.Within.Span > 0 {
		list = append(list, fmt.Sprintf("only within %v by %s", i.Within.Span, cmp.Or(i.Within.Field, i.DateField)))
	}
	if len(i.Same) > 0 {
		list = append(list, "only with the same "+strings.Join(i.Same, " and "))
	}
	if len(i.Different) > 0 {
		list = append(list, "only with a different "+strings.Join(i.Different, " and "))
	}
	return list
}

// profile returns the preset in short, and what was given in place of its own values.
func (i IndexConfig) profile() string {
	own := presetOf(i.Preset).start(i.Sketch)
	text := fmt.Sprintf("preset %s: ", i.Preset)
	switch {
	case i.Measure != own.Measure:
		text += fmt.Sprintf("%s in place of %s, ", i.Measure, own.Measure)
	case i.Measure != string(rerank.Resemblance):
		text += i.Measure + ", "
	}
	text += fmt.Sprintf("threshold %v", i.Threshold)
	if i.Threshold != own.Threshold {
		text += fmt.Sprintf(" in place of %v", own.Threshold)
	}
	text += fmt.Sprintf(", min_shingles %d", i.MinShingles)
	if i.MinShingles != own.MinShingles {
		text += fmt.Sprintf(" in place of %d", own.MinShingles)
	}
	return text
}

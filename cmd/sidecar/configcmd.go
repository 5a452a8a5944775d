package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

func configCommand() *cobra.Command {
	parent := &cobra.Command{
		Use: "config", Short: "Look at the configuration", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	parent.AddCommand(&cobra.Command{
		Use:   "check",
		Short: "Report everything that is wrong with the configuration, or its rules in short",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := configOf(cmd)
			if err != nil {
				return err
			}
			return c.describe(cmd.OutOrStdout())
		},
	}, &cobra.Command{
		Use:   "print",
		Short: "Show all of what the configuration amounts to, as YAML and without secrets",
		Long: `Print writes every key with its value: variables and files are replaced, presets applied, defaults filled in. In the place of a
secret (credentials, the seed, what a URL may hide) stands … and nothing else, so that the output can be shown to others.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := configOf(cmd)
			if err != nil {
				return err
			}
			return c.print(cmd.OutOrStdout())
		},
	})
	return parent
}

// describe writes the configuration in short, without secrets.
func (c *Config) describe(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ok\nsketch: %s\n", c.file, c.Sketch.describe())
	for _, e := range c.Engines {
		where := "at " + strings.Join(e.URLs, ", ")
		if e.Kind == kindEmbedded {
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
	add(rule.Exports, "exports are collapsed too")
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

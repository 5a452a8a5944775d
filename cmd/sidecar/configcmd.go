package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

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
		fmt.Fprintf(&b, "engine %s: %s in front of %s %s, on failure: %s\n", e.Name, e.Listen, e.Kind, where, e.OnFailure)
		for _, i := range e.Indices {
			fmt.Fprintf(&b, "  %s: fields %s; %s; window %d; missing: %s\n",
				i.Match, strings.Join(i.Fields, ", "), i.profile(), i.Window, i.Missing)
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
	add(s.Seed != "", "with a seed")
	add(s.Seed == "", "without a seed: anyone can craft texts that collide")
	return strings.Join(parts, ", ")
}

// profile returns the preset in short, and what was given in place of its own values.
func (i IndexConfig) profile() string {
	preset := rerank.Presets[i.Preset]
	text := fmt.Sprintf("preset %s: threshold %v", i.Preset, i.Threshold)
	if i.Threshold != preset.Threshold {
		text += fmt.Sprintf(" in place of %v", preset.Threshold)
	}
	text += fmt.Sprintf(", min_shingles %d", i.MinShingles)
	if i.MinShingles != preset.MinShingles {
		text += fmt.Sprintf(" in place of %d", preset.MinShingles)
	}
	return text
}

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
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
	seed := "with a seed"
	if c.Sketch.Seed == "" {
		seed = "without a seed: anyone can craft texts that collide"
	}
	fmt.Fprintf(&b, "%s: ok\nsketch: %s, %d words, %d positions, %s\n", c.file, c.Sketch.Family, c.Sketch.Words, c.Sketch.Positions, seed)
	for _, e := range c.Engines {
		where := "at " + strings.Join(e.URLs, ", ")
		if e.Kind == kindEmbedded {
			where = "inside the sidecar"
		}
		fmt.Fprintf(&b, "engine %s: %s in front of %s %s, on failure: %s\n", e.Name, e.Listen, e.Kind, where, e.OnFailure)
		for _, i := range e.Indices {
			fmt.Fprintf(&b, "  %s: fields %s; threshold %v; window %d; missing: %s; min_shingles %d\n",
				i.Match, strings.Join(i.Fields, ", "), i.Threshold, i.Window, i.Missing, i.MinShingles)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

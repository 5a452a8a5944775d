package main

import (
	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/onboard"
)

func doctorCommand() *cobra.Command {
	var engine, output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that the sidecar needs, and say what to do",
		Long: `Doctor checks the configuration, each node of each engine, the indices of each rule, and the sidecar that runs with this
configuration, if there is one. It looks at versions, credentials and mappings, and counts how many documents have the right sketch.
It also runs the cases of the rules, and sends a search to the engine and to the sidecar. It prints a line for each check: ok, warn or fail, what it found, and what
to do.

It changes nothing. To check that it may write, it sends an update of a document that does not exist. It reads up to 100 random
documents of each index.

Exit code 0: no check failed. 1: at least one failed.`,
		Example: `  sidecar doctor
  sidecar doctor --engine elasticsearch --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := configOf(cmd)
			return onboard.Doctor(cmd.Context(), c, err, engine, output == formJSON, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&engine, "engine", "", "only the engine with this `name`")
	addOutput(flags, &output)
	return cmd
}

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
		Long: `Doctor looks at the configuration, at each node of each engine, at the indices of each rule and at the sidecar that
runs with this configuration, if there is one: whether it is valid, the engine's version, the credentials, the
mapping, how many documents have their sketches, and a search, directly and through the sidecar. It prints a line for
each check: ok, warn or fail, what it found, and what to do about it. It changes nothing: whether the credentials
suffice to write is found out with an update of a document that is not there. It reads up to 100 documents of each
index, chosen at random.

Exit code 0: no check failed. 1: some did.`,
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

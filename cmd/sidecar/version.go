package main

import (
	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/buildinfo"
)

// version and revision, the hash of the commit, are set when a release is built: -ldflags "-X main.version=v1.2.3".
var version, revision string

func init() { buildinfo.Set(version, revision) }

func versionCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Version prints the version, the revision that it was built from if that is known, the Go version and the platform.

Exit code 0.`,
		Example: `  sidecar version
  sidecar version --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd.OutOrStdout(), output, buildinfo.Of(), buildinfo.Of().String()+"\n")
		},
	}
	addOutput(cmd.Flags(), &output)
	return cmd
}

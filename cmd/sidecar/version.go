package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/terminal"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string

// revision is set likewise: the hash of the commit.
var revision string

func versionCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Version prints the version, the revision that it was built from where the build knows it, and what it was built with and for.

Exit code 0.`,
		Example: `  sidecar version
  sidecar version --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validOutput(output); err != nil {
				return err
			}
			if output == formJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), versionOf())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
	addOutput(cmd.Flags(), &output)
	return cmd
}

// versionInfo says what is running.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // empty where the build does not know it
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func versionOf() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	v.Revision = revision[:min(len(revision), 12)]
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 && revision == "" {
				v.Revision = s.Value[:12]
			}
		}
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	return v
}

// versionLine returns version, revision where the build knows it, and what it was built with.
func versionLine() string {
	v := versionOf()
	if v.Revision != "" {
		v.Revision = " " + v.Revision
	}
	return fmt.Sprintf("sidecar %s%s %s %s/%s", v.Version, v.Revision, v.Go, v.OS, v.Arch)
}

package main

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/terminal"
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
			c, err := configOf(cmd)
			_, unreadable := errors.AsType[*fs.PathError](err) // which is no finding
			switch {
			case err == nil:
				return show(cmd.OutOrStdout(), output, c.Checked(), c.Describe())
			case unreadable || output == formText:
				return err
			}
			return cmp.Or(terminal.WriteJSON(cmd.OutOrStdout(), config.Invalid(configFile(cmd), err)), terminal.ErrFound)
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
			c, err := configOf(cmd)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), output, c.Tree(), c.YAML())
		},
	}
	addOutput(cmd.Flags(), &output)
	return cmd
}

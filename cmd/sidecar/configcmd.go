package main

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/onboard"
	"github.com/neardup/sidecar/internal/terminal"
)

func configCommand() *cobra.Command {
	parent := &cobra.Command{
		Use: "config", Short: "Check, test or print the configuration", Args: cobra.NoArgs,
		Long: `Config reports the errors in a configuration (check), runs the tests in it (test), or prints it with all defaults (print). Only test
connects to an engine, and only for stored documents.`,
		Example: `  sidecar config check
  sidecar config test
  sidecar config print --config /etc/neardup/config.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	parent.AddCommand(configCheckCommand(), configTestCommand(), configPrintCommand())
	return parent
}

func configCheckCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Report all errors in the configuration, or a summary of its rules",
		Long: `Check reads the configuration and reports all errors in it, each with its key, its value and what to do. If there are none
it prints a summary of the rules: what every rule has, and what differs from the defaults.

With --output json the errors are part of the result, in the list errors.

Exit code 0: it is valid. 1: it is not.`,
		Example: `  sidecar config check
  sidecar config check --config /etc/neardup/config.yaml
  sidecar config check --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := configOf(cmd)
			_, unreadable := errors.AsType[*fs.PathError](err) // the check itself has failed then
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

func configTestCommand() *cobra.Command {
	output, textsOnly := "", false
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Run the tests in the configuration: pairs that must fold, and pairs that must not",
		Long: `Test runs the cases of all rules (docs/tuning.md). Searches decide by the same code. Stored documents are read with the credentials
in the configuration. A text has no other fields, so the conditions of the rule are not
checked for it. It prints a line for each case.

Exit code 0: all cases are as they must be. 1: at least one is not, or could not be judged.`,
		Example: `  sidecar config test
  sidecar config test --texts --config /etc/neardup/config.yaml
  sidecar config test --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := configOf(cmd)
			if err != nil {
				return err
			}
			return onboard.Test(cmd.Context(), c, textsOnly, output == formJSON, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&textsOnly, "texts", false, "run the cases of texts alone, without an engine")
	addOutput(cmd.Flags(), &output)
	return cmd
}

func configPrintCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the whole configuration with defaults, as YAML or JSON and without secrets",
		Long: `Print writes every key with its value: variables and files are replaced, presets applied, defaults filled in. A secret
(credentials, the seed, parts of URLs) is shown as …, so the output can be shown to others. The YAML is a whole configuration again,
without the secrets.

Exit code 0: done. 1: the configuration is invalid.`,
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

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/neardup/sidecar/internal/config"
)

// completeFlags has a shell complete the values of flags that take a name of the configuration or one of a few words.
func completeFlags(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		completeFlags(child)
	}
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if !completable[flag.Name] {
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, // fails only where a flag has one already
			func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return flagValues(cmd, flag.Name)
			})
	})
}

var completable = map[string]bool{"engine": true, "index": true, "preset": true, "algorithm": true, "output": true, "report": true}

func flagValues(cmd *cobra.Command, flag string) ([]string, cobra.ShellCompDirective) {
	engines, indices := config.Names(configFile(cmd))
	switch flag {
	case "engine":
		if cmd.Name() == "cluster" {
			engines = append(engines, onFlink)
		}
		return engines, cobra.ShellCompDirectiveNoFileComp
	case "index":
		return indices, cobra.ShellCompDirectiveNoFileComp
	case "preset":
		return config.PresetNames(), cobra.ShellCompDirectiveNoFileComp
	case "algorithm":
		return []string{"bands", "broder", "exact"}, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{formText, formJSON}, cobra.ShellCompDirectiveDefault // which may be a file, too
}

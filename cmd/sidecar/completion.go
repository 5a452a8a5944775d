package main

import (
	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
)

// completeFlags has a shell complete the values of flags that take a name of the configuration or one of a few words.
func completeFlags(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		completeFlags(child)
	}
	const words = cobra.ShellCompDirectiveNoFileComp
	forms := cobra.FixedCompletions([]string{formText, formJSON}, cobra.ShellCompDirectiveDefault) // it may be a file, too
	for flag, complete := range map[string]cobra.CompletionFunc{
		"engine": func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			engines, _ := config.Names(configFile(cmd))
			if cmd.Name() == "cluster" {
				engines = append(engines, onFlink)
			}
			return engines, words
		},
		"index": func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			_, indices := config.Names(configFile(cmd))
			return indices, words
		},
		"preset":    cobra.FixedCompletions(config.PresetNames(), words),
		"algorithm": cobra.FixedCompletions([]string{"bands", "broder", "exact"}, words),
		"output":    forms,
		"report":    forms,
	} {
		if cmd.LocalFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, complete) // fails only where a flag has one already
		}
	}
}

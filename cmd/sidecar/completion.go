package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/neardup/sidecar/internal/config"
)

// completeFlags adds shell completion to flags whose value is a name in the configuration or one of a few words.
func completeFlags(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		completeFlags(child)
	}
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		complete := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			engines, indices := config.Names(configFile(cmd))
			if flag.Name == "index" {
				return indices, cobra.ShellCompDirectiveNoFileComp
			}
			if cmd.Name() == "cluster" {
				engines = append(engines, onFlink)
			}
			return engines, cobra.ShellCompDirectiveNoFileComp
		}
		words, few := flag.Value.(choice)
		switch {
		case few:
			complete = cobra.FixedCompletions(words.words, cobra.ShellCompDirectiveNoFileComp)
		case cmd.Name() == "cluster" && flag.Name == "output":
			complete = cobra.FixedCompletions([]string{formText, formJSON}, cobra.ShellCompDirectiveDefault) // a file is possible too
		case flag.Name != "engine" && flag.Name != "index":
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete) // fails only if a flag has one already
	})
}

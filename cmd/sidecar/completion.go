package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completer returns what a flag's value may be, for a shell that completes the command line.
type completer func(cmd *cobra.Command) ([]string, cobra.ShellCompDirective)

// completeFlags tells a command and those below it what the values of their flags may be: names that the configuration holds,
// files where the help says that a flag takes one, and else nothing. So are arguments where a command takes none.
func completeFlags(parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		completeFlags(cmd)
	}
	if parent.Args != nil && parent.ValidArgsFunction == nil && !parent.HasSubCommands() && parent.Args(parent, []string{"x"}) != nil {
		parent.ValidArgsFunction = cobra.NoFileCompletions
	}
	parent.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Value.Type() == "bool" {
			return
		}
		values := completerOf(parent, flag)
		_ = parent.RegisterFlagCompletionFunc(flag.Name, // an error says that the flag has one already
			func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return values(cmd)
			})
	})
}

// completerOf returns what knows the values of a command's flag.
func completerOf(cmd *cobra.Command, flag *pflag.Flag) completer {
	value, _ := pflag.UnquoteUsage(flag)
	switch {
	case flag.Name == "config":
		return words(cobra.ShellCompDirectiveFilterFileExt, "yaml", "yml")
	case flag.Name == "engine" && cmd.Name() == "cluster":
		return func(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) {
			return append(configured(cmd).engines, "flink"), cobra.ShellCompDirectiveNoFileComp
		}
	case flag.Name == "engine":
		return func(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) {
			return configured(cmd).engines, cobra.ShellCompDirectiveNoFileComp
		}
	case flag.Name == "index":
		return func(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) {
			return configured(cmd).indices, cobra.ShellCompDirectiveNoFileComp
		}
	case flag.Name == "preset":
		return words(cobra.ShellCompDirectiveNoFileComp, presetNames()...)
	case flag.Name == "algorithm":
		return words(cobra.ShellCompDirectiveNoFileComp, "bands", "broder", "exact")
	case flag.Name == "output" && cmd.Name() == "cluster": // or a file
		return words(cobra.ShellCompDirectiveDefault, formText, formJSON)
	case flag.Name == "report", flag.Name == "output" && value != "file":
		return words(cobra.ShellCompDirectiveNoFileComp, formText, formJSON)
	case value == "directory":
		return words(cobra.ShellCompDirectiveFilterDirs)
	case value == "file" || strings.HasPrefix(value, "file:"):
		return words(cobra.ShellCompDirectiveDefault)
	}
	return words(cobra.ShellCompDirectiveNoFileComp)
}

func words(directive cobra.ShellCompDirective, list ...string) completer {
	return func(*cobra.Command) ([]string, cobra.ShellCompDirective) { return list, directive }
}

// names are what the configuration calls things.
type names struct{ engines, indices []string }

// configured returns the names in the configuration that the command line names. It need not be valid, nor its variables be
// set: a name that holds one is left out, and without a file there are none.
func configured(cmd *cobra.Command) (n names) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return n
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return n
	}
	v, err := readYAML(text)
	if err != nil {
		return n
	}
	add := func(list *[]string, value any) bool {
		name, ok := value.(string)
		ok = ok && name != "" && !strings.Contains(name, "$")
		if ok && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
		return ok
	}
	for _, engine := range sections(v.AllSettings()["engines"]) {
		if !add(&n.engines, engine["name"]) {
			add(&n.engines, engine["kind"])
		}
		for _, index := range sections(engine["indices"]) {
			add(&n.indices, index["match"])
		}
	}
	return n
}

// sections returns those entries of a list that have keys.
func sections(list any) (all []map[string]any) {
	entries, _ := list.([]any)
	for _, entry := range entries {
		if section, ok := entry.(map[string]any); ok {
			all = append(all, section)
		}
	}
	return all
}

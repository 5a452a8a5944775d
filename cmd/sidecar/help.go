package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// groups are the headings under which the help lists the commands, and the commands below each.
var groups = []struct {
	id, title string
	commands  []string
}{
	{"begin", "To begin with:", []string{"init", "doctor", "demo"}},
	{"live", "In front of an engine:", []string{"setup", "serve", "ready"}},
	{"stored", "Documents that are stored already:", []string{"reindex", "verify", "calibrate", "similar", "cluster", "remove"}},
	{"files", "Texts in files, without an engine:", []string{"sketch", "compare"}},
	{"other", "Other:", []string{"config", "version", "completion", "help"}},
}

// rootLong is what the help begins with.
const rootLong = `sidecar stands in front of a search engine and speaks its API. Documents on their way in get a small sketch of
their text; hits on their way out are left out where a better ranked one says nearly the same.

Results go to standard output, and nothing else does: progress, notes and errors go to standard error. With --output json
results are JSON, and standard error has an object on each line: {"error": "..."}, or {"note": "..."} where it is no terminal.
Colours and progress bars are for terminals alone, elsewhere a job writes a line every few seconds; TERM=dumb keeps both away,
NO_COLOR the colours.

Exit codes:

  0  done
  1  failed or interrupted; or what was asked is not so: of ready, doctor, config check, and of verify where something is wrong
  2  of verify alone: something could not be read or written, or the command line or the configuration is wrong
  3  done, and the engine refused some documents`

// helpCommand is the library's but that a command which does not exist is an error.
func helpCommand(group string) *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Say what a command does and which flags it takes",
		GroupID: group,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return stranger(cmd.Root(), args[0])
			case len(rest) > 0:
				return stranger(about, rest[0])
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := slices.DeleteFunc(commandNames(about), func(name string) bool { return !strings.HasPrefix(name, begun) })
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// widest is how many columns the help texts have as they are written.
const widest = 130

// fitting has the help of all commands fit a terminal that is narrower than it.
func fitting(root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if width := columns(cmd.OutOrStdout()); width >= 40 && width < widest {
			wrapped := fmt.Sprintf(".FlagUsagesWrapped %d ", width)
			cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages ", wrapped))
			cmd.Long = narrowed(cmd.Long, width)
		}
		show(cmd, args)
	})
}

// narrowed returns a text whose paragraphs have lines of so many columns. Indented ones stay as they are.
func narrowed(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, paragraph := range paragraphs {
		if strings.HasPrefix(paragraph, " ") {
			continue
		}
		var b strings.Builder
		used := 0
		for _, word := range strings.Fields(paragraph) {
			long := utf8.RuneCountInString(word)
			switch {
			case used == 0:
			case used+1+long > width:
				b.WriteByte('\n')
				used = 0
			default:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += long
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}

// grouped puts the commands below their headings. The order within one is that of their names, as cobra has it.
func grouped(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range root.Commands() {
			for _, name := range g.commands {
				if cmd.Name() == name {
					cmd.GroupID = g.id
				}
			}
		}
	}
	last := groups[len(groups)-1].id
	for _, cmd := range root.Commands() {
		if cmd.GroupID == "" {
			cmd.GroupID = last
		}
	}
	root.SetHelpCommand(helpCommand(last))
	root.SetCompletionCommandGroupID(last)
}

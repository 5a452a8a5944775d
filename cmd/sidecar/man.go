package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the manual. It is there for those who build packages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write a manual page for each command",
		Long: `Man writes sidecar.1 and, for each command, a page such as sidecar-serve.1 into a directory, which it makes.

Exit code 0: done. 1: failed.`,
		Example: `  sidecar man man1`,
		Hidden:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("man takes the directory to write to, as in: sidecar man man1")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the directory of the manual: %w", err)
			}
			root := cmd.Root()
			root.InitDefaultHelpFlag()
			root.InitDefaultCompletionCmd()
			return writePages(args[0], root)
		},
	}
}

// writePages writes the pages of a command and of those below it.
func writePages(directory string, cmd *cobra.Command) error {
	page := filepath.Join(directory, pageName(cmd)+".1")
	if err := os.WriteFile(page, []byte(manPage(cmd)), 0o644); err != nil {
		return fmt.Errorf("write the manual: %w", err)
	}
	for _, child := range cmd.Commands() {
		if child.Hidden || child.Name() == "help" {
			continue
		}
		if err := writePages(directory, child); err != nil {
			return err
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns a command's page for man, in the man macros of roff. It holds no date: the same program has the same pages.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	cmd.InitDefaultHelpFlag()
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"neardup\"\n", strings.ToUpper(pageName(cmd)), "sidecar "+cmp.Or(version, "(devel)"))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.CommandPath()))
	if _, arguments, found := strings.Cut(cmd.UseLine(), cmd.CommandPath()+" "); found {
		fmt.Fprintf(&b, "%s\n", roff(arguments))
	}
	b.WriteString(".SH DESCRIPTION\n")
	manText(&b, cmp.Or(cmd.Long, cmd.Short+"."))
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n")
		manLines(&b, cmd.Example)
		b.WriteString(".fi\n")
	}
	manFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	manRelated(&b, cmd)
	return b.String()
}

// manText writes paragraphs. An indented one, such as a table or an example, keeps its lines.
func manText(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		kept := strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") || strings.Contains(paragraph, "\n\t")
		if kept {
			b.WriteString(".nf\n")
		}
		manLines(b, paragraph)
		if kept {
			b.WriteString(".fi\n")
		}
	}
}

func manLines(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(roff(strings.TrimRight(line, "\n")) + "\n")
	}
}

// roff returns a line as text: nothing in it is a request of roff.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	var b strings.Builder
	for _, r := range line {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r) // whatever the reader's locale is
		}
	}
	return b.String()
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		short := ""
		if f.Shorthand != "" {
			short = `\fB\-` + f.Shorthand + `\fR, `
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			value = ` \fI` + roff(value) + `\fR`
		}
		fmt.Fprintf(b, ".TP\n%s\\fB\\-\\-%s\\fR%s\n%s\n", short, roff(f.Name), value, roff(usage))
		switch f.DefValue {
		case "", "0", "0s", "false", "[]":
		default:
			fmt.Fprintf(b, "(default %s)\n", roff(f.DefValue))
		}
	})
}

// manRelated writes the files, and the pages above and below.
func manRelated(b *strings.Builder, cmd *cobra.Command) {
	b.WriteString(".SH FILES\n.TP\n.I config.yaml\nthe configuration, where \\fB\\-\\-config\\fR names no other; ")
	b.WriteString("that of the service which packages install is\n.IR /etc/neardup/config.yaml .\n")
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, pageName(cmd.Parent()))
	}
	for _, child := range cmd.Commands() {
		if !child.Hidden && child.Name() != "help" {
			pages = append(pages, pageName(child))
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, page := range pages {
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(page), end)
	}
}

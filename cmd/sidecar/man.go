package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/neardup/sidecar/internal/buildinfo"
)

// manCommand writes the manual pages, for packages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write a manual page for each command",
		Long: `Man writes sidecar.1 and, for each command, a page such as sidecar-serve.1 to a directory, which it creates. The pages
have the date of SOURCE_DATE_EPOCH, or of today.

Exit code 0: done. 1: failed.`,
		Example: `  sidecar man man1`,
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the directory of the manual: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			indentTables(root)
			header := &doc.GenManHeader{Section: "1", Source: "sidecar " + buildinfo.Of().Version, Manual: "neardup"}
			return doc.GenManTree(root, header, args[0])
		},
	}
}

// indentTables indents tables in the help further: the pages are made from Markdown, which joins lines that are indented less.
func indentTables(cmd *cobra.Command) {
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n  ", "\n      ")
	for _, child := range cmd.Commands() {
		indentTables(child)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/neardup/sidecar/internal/expect"
)

// TestManPages: each command has a page with all of its flags, and the same sources give the same bytes.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	folder := filepath.Join(t.TempDir(), "a", "man1")
	got := sidecar(t, "man", folder)
	expect.Must(t, exitDone, got.code, "%+v", got)
	pages := 0
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		pages++
		text, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if !strings.Contains(string(text), `\fB--`+flag.Name+`\fP`) {
				t.Errorf("the page of %s has no --%s", cmd.CommandPath(), flag.Name)
			}
		})
		if !strings.Contains(string(text), `"Nov 2023"`) {
			t.Errorf("the page of %s has another date than SOURCE_DATE_EPOCH", cmd.CommandPath())
		}
	})
	if pages < 15 {
		t.Errorf("only %d commands found", pages)
	}
}

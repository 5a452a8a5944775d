package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manual writes the pages into a new folder.
func manual(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "a", "man1")
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"man", folder}, strings.NewReader(""), &out, &errs); code != exitDone {
		t.Fatalf("man ends with %d: %s", code, errs.String())
	}
	return folder
}

// TestManPages holds the pages to the commands: each has one, with all of its flags.
func TestManPages(t *testing.T) {
	folder, pages := manual(t), 0
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		pages++
		text, err := os.ReadFile(filepath.Join(folder, pageName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		want := []string{".TH ", ".SH NAME\n" + roff(pageName(cmd)) + ` \- `, ".SH DESCRIPTION\n", ".SH SEE ALSO\n"}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { want = append(want, `\fB\-\-`+roff(flag.Name)+`\fR`) })
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s.1 has no %q", pageName(cmd), part)
			}
		}
	})
	if pages < 15 {
		t.Errorf("only %d commands found", pages)
	}
}

func TestRoffText(t *testing.T) {
	for line, want := range map[string]string{
		".TH is no request": `\&.TH is no request`,
		"'tis":              `\(aqtis`,
		`a\b --c`:           `a\eb \-\-c`,
		"≥ 1…":              `\[u2265] 1\[u2026]`,
	} {
		if got := roff(line); got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
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
		want := []string{".TH ", ".SH NAME\n" + roff(pageName(cmd)) + ` \- `, ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH SEE ALSO\n"}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { want = append(want, `\fB\-\-`+roff(flag.Name)+`\fR`) })
		if cmd.HasParent() {
			want = append(want, `\fB\-\-config\fR`)
		}
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

// TestManPagesAreRoff has each page set by groff, which warns of what it does not understand, and looks for the flags and the
// examples
// in what a reader sees.
func TestManPagesAreRoff(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff")
	}
	pages, err := filepath.Glob(filepath.Join(manual(t), "*.1"))
	if err != nil || len(pages) < 15 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-rLL=130n", page)
		cmd.Env = append(os.Environ(), "GROFF_NO_SGR=1")
		var out, warnings bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &warnings
		if err := cmd.Run(); err != nil || warnings.Len() > 0 {
			t.Errorf("%s: %v %s", filepath.Base(page), err, warnings.String())
		}
		if filepath.Base(page) != "sidecar-compare.1" {
			continue
		}
		shown := strings.NewReplacer("\b", "").Replace(out.String())
		if !strings.Contains(shown, "--docs docs.jsonl --fields title,body --pairs - --preset safe < pairs.tsv") {
			t.Errorf("the example of compare is not shown as it is:\n%s", shown)
		}
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

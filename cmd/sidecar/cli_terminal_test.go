package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/terminal"
)

// drawn is a line that is drawn anew; a terminal itself has a carriage return before each line feed.
var drawn = regexp.MustCompile(`\r[^\r\n]`)

// TestTerminal runs commands on a pseudo terminal and off it: colours and progress bars are for terminals that can show them, and never go
// where results go.
func TestTerminal(t *testing.T) {
	ofProcesses(t)
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("there is no script(1), which makes pseudo terminals")
	}
	const work = "sidecar cluster --input pages.jsonl --id url --fields body; sidecar servr || true"
	for _, c := range []struct {
		name, set, script string
		terminal          bool
		colour, bar       bool
	}{
		{"a terminal", "TERM=xterm NO_COLOR=", work, true, true, true},
		{"NO_COLOR", "TERM=xterm NO_COLOR=1", work, true, false, true},
		{"a dumb terminal", "TERM=dumb NO_COLOR=", work, true, false, false},
		{"no terminal", "TERM=xterm NO_COLOR=", work, false, false, false},
		{"results on a terminal alone", "TERM=xterm NO_COLOR=", "{ " + work + "; } 2>err.txt", true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := offlineFolder(t)
			script := "export " + c.set + "; " + c.script
			if c.terminal {
				script = "export SHELL=/bin/bash; script -qec " + quotedForShell(script) + " /dev/null </dev/null"
			}
			out, err := shell(t, folder, script).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			expect.Same(t, c.colour, bytes.Contains(out, []byte("\x1b[31merror:\x1b[0m unknown command")), "colour in %q", out)
			expect.Same(t, c.bar, drawn.Match(out), "a bar in %q", out)
			text, err := os.ReadFile(filepath.Join(folder, "err.txt"))
			if err == nil && (len(text) == 0 || bytes.ContainsAny(text, "\r\x1b")) {
				t.Errorf("%q", text)
			}
		})
	}
}

// broken is a place where nothing can be written to.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// TestResultsThatAreLost: a command whose results could not be written has failed, and says why once.
func TestResultsThatAreLost(t *testing.T) {
	full := errors.New("no space left on device")
	for _, args := range []string{
		"version", "version --output json", "config check -c ../../config.yaml", "config print -c ../../config.yaml --output json", "--help", "sketch --help",
	} {
		var stderr strings.Builder
		code := run(t.Context(), strings.Fields(args), strings.NewReader(""), broken{full}, &stderr)
		if code != exitFailed || strings.Count(stderr.String(), full.Error()) != 1 {
			t.Errorf("%s: %d %s", args, code, stderr.String())
		}
	}
}

// TestUntilDone: what waits for its input ends with the context.
func TestUntilDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "abc")
		cancel()
	}()
	got, err := io.ReadAll(terminal.UntilDone(ctx, r))
	if string(got) != "abc" && string(got) != "" || !errors.Is(err, terminal.ErrInterrupted) {
		t.Errorf("%q, %v", got, err)
	}
	expect.Same(t, "abc", string(expect.Value(io.ReadAll(terminal.UntilDone(t.Context(), strings.NewReader("abc"))))(t)), "")
	_ = w.Close()
}

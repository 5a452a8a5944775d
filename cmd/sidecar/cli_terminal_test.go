package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
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
		{"an unknown terminal", "TERM= NO_COLOR=", work, true, false, true},
		{"no terminal", "TERM=xterm NO_COLOR=", work, false, false, false},
		{"results on a terminal alone", "TERM=xterm NO_COLOR=", "{ " + work + "; } 2>err.txt", true, false, false},
		{"results in a file", "TERM=xterm NO_COLOR=", "{ " + work + "; } >out.txt", true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := offlineFolder(t)
			script := "export " + c.set + "; " + c.script
			if c.terminal {
				script = "export SHELL=/bin/bash; script -qec " + quotedForShell(script) + " /dev/null </dev/null"
			}
			out, err := shell(t, runs, folder, script).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got := bytes.Contains(out, []byte("\x1b[31merror:\x1b[0m unknown command")); got != c.colour {
				t.Errorf("colour: %v in %q", got, out)
			}
			if got := drawn.Match(out); got != c.bar {
				t.Errorf("a bar: %v in %q", got, out)
			}
			for _, name := range []string{"out.txt", "err.txt"} {
				text, err := os.ReadFile(filepath.Join(folder, name))
				if err == nil && (len(text) == 0 || bytes.ContainsAny(text, "\r\x1b")) {
					t.Errorf("%s: %q", name, text)
				}
			}
		})
	}
}

// TestHelpFitsTheTerminal shows the help of each command in 70 columns: no line is longer but those of examples, tables and addresses.
func TestHelpFitsTheTerminal(t *testing.T) {
	ofProcesses(t)
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("there is no script(1), which makes pseudo terminals")
	}
	t.Parallel()
	folder := t.TempDir()
	const show = "stty cols 70; for c in '' reindex cluster 'config check'; do sidecar $c --help; done"
	out, err := shell(t, runs, folder, "export SHELL=/bin/bash; script -qec "+quotedForShell(show)+" /dev/null </dev/null").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	narrow, flags := 0, 0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\r\n")
		if utf8.RuneCountInString(line) > 70 && (!strings.HasPrefix(line, "  ") || strings.HasPrefix(strings.TrimSpace(line), "--")) {
			t.Errorf("%q is too long", line)
		}
		if !strings.HasPrefix(line, " ") {
			narrow++
		}
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			flags++
		}
	}
	if narrow < 40 || flags < 25 {
		t.Errorf("%d lines of text and %d of flags: %s", narrow, flags, out)
	}
	wide, err := shell(t, runs, folder, "sidecar reindex --help").Output()
	if cmd, _, _ := newRoot().Find([]string{"reindex"}); err != nil || !strings.HasPrefix(string(wide), cmd.Long) {
		t.Errorf("off a terminal it is not as it was written: %v %s", err, wide)
	}
}

// TestInterrupted has commands that wait for standard input end at SIGINT: with one line that says so, and nothing else.
func TestInterrupted(t *testing.T) {
	folder := offlineFolder(t)
	for _, line := range []string{
		"sketch", "compare - old.txt", "compare old.txt -", "compare --docs docs.jsonl --pairs -", "compare --docs - --pairs pairs.tsv", "cluster --input -",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			cmd := shell(t, runs, folder, "exec sidecar "+line)
			never, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer never.Close()
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			interrupt(t, cmd.Process, never, ended)
			header := strings.Contains(line, "--pairs -") // of the table
			if !strings.HasPrefix(errs.String(), "error: interrupted") || strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 != header ||
				cmd.ProcessState.ExitCode() != exitFailed {
				t.Errorf("%d %s%s", cmd.ProcessState.ExitCode(), out.String(), errs.String())
			}
		})
	}
}

// interrupt sends SIGINT to a program that reads its input, and waits for its end.
func interrupt(t *testing.T, p *os.Process, stdin io.Writer, ended <-chan error) {
	t.Helper()
	// More than a pipe holds, and no whole line: once it is written the program has begun to read.
	if _, err := io.WriteString(stdin, strings.Repeat("x", 1<<18)); err != nil {
		t.Error(err)
	}
	if err := p.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = p.Kill()
		t.Fatal("it went on after SIGINT")
	}
}

// TestReaderThatGoes has whoever reads results go early: the program ends as others do, by SIGPIPE, and says nothing, also where whoever
// started it ignores that signal.
func TestReaderThatGoes(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	folder := offlineFolder(t)
	var docs strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&docs, `{"id":%d,"text":"number %d of very many"}`+"\n", i, i)
	}
	if err := os.WriteFile(filepath.Join(folder, "many.jsonl"), []byte(docs.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ignored := range []string{"", "trap '' PIPE; "} {
		for _, form := range []string{"text", "json"} {
			script := ignored + "set +e; sidecar sketch many.jsonl --output " + form + " | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}"
			out, err := shell(t, runs, folder, script).CombinedOutput()
			if err != nil || string(out) != "141\n" {
				t.Errorf("%s%s: %v %s", ignored, form, err, out)
			}
		}
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
	got, err := io.ReadAll(untilDone{ctx, r})
	if string(got) != "abc" && string(got) != "" || !errors.Is(err, errInterrupted) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := io.ReadAll(untilDone{t.Context(), strings.NewReader("abc")}); string(got) != "abc" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = w.Close()
}

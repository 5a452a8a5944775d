package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// asSidecar in the environment has the test's own binary be the sidecar.
const asSidecar = "NEARDUP_TEST_AS_SIDECAR"

// keepOften in the environment as well has it keep its work a hundred times a second.
const keepOften = "NEARDUP_TEST_KEEP_OFTEN"

func TestMain(m *testing.M) {
	if os.Getenv(asSidecar) != "" {
		if os.Getenv(keepOften) != "" {
			saveEvery = 10 * time.Millisecond
		}
		main()
	}
	os.Exit(m.Run())
}

// shell returns a shell that runs a script in the folder, where the command sidecar is the test's own binary.
func shell(t testing.TB, folder, script string) *exec.Cmd {
	t.Helper()
	own := expect.Value(os.Executable())(t)
	bin := t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asSidecar, own)
	syscall.ForkLock.RLock() // a process that another test starts must not hold the file open for writing: it could not be run
	err := os.WriteFile(filepath.Join(bin, "sidecar"), []byte(text), 0o700)
	syscall.ForkLock.RUnlock()
	expect.OK(t, err)
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// ofProcesses skips a test of whole processes under the race detector: they start slowly with it, and other tests run the same code.
func ofProcesses(t *testing.T) {
	t.Helper()
	if effort.Race {
		t.Skip("the race detector watches what runs in this process")
	}
}

// ours visits the commands that people see and that do something, less those of the library.
func ours(do func(cmd *cobra.Command)) {
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		if cmd.Runnable() && cmd.Name() != "help" && !strings.Contains(cmd.CommandPath(), "completion") {
			do(cmd)
		}
	})
}

// printsNone are the commands without --output text|json, and why.
var printsNone = map[string]string{
	"sidecar config": "prints its help",
	"sidecar serve":  "writes a log alone, in the form of log.format",
	"sidecar demo":   "is a walk-through for people",
	"sidecar init":   "writes a configuration: its --output is a file",
	"sidecar man":    "writes pages",
	"sidecar unseen": "writes lines of its input: its --output is a file",
}

func quotedForShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// TestErrorsInJSON has every command fail where it is asked for JSON: nothing is on standard output, and each line of standard error is an
// object with the error. Without --output json the same text stands behind the word error.
func TestErrorsInJSON(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "none.yaml")
	tested := 0
	ours(func(cmd *cobra.Command) {
		if _, none := printsNone[cmd.CommandPath()]; none {
			return
		}
		tested++
		name := strings.Fields(cmd.CommandPath())[1:]
		for _, wrong := range [][]string{{"--no-such-flag"}, {"--config", nowhere, "--no-such-flag=x"}, {"--config"}, {"--help=x"}, {"--config", nowhere, "too", "many", "words"}} {
			args := append(slices.Clone(name), append([]string{"--output", "json"}, wrong...)...)
			got := sidecar(t, args...)
			if got.stdout != "" || got.code == exitDone {
				t.Errorf("%q ends with %d: %s", args, got.code, got.stdout)
			}
			texts := errorsIn(t, got.stderr)
			plain := sidecar(t, append(slices.Clone(name), wrong...)...)
			if want := "error: " + strings.Join(texts, "\nerror: ") + "\n"; plain.stderr != want || plain.code != got.code || len(texts) == 0 {
				t.Errorf("%q ends with %d: %sand in JSON with %d: %s", args, plain.code, plain.stderr, got.code, got.stderr)
			}
		}
	})
	if tested < 13 {
		t.Errorf("only %d commands found", tested)
	}
}

// TestUnknownForm: every command says which forms of output there are.
func TestUnknownForm(t *testing.T) {
	ours(func(cmd *cobra.Command) {
		if _, none := printsNone[cmd.CommandPath()]; none {
			return
		}
		forms := "use text or json"
		if cmd.Name() == "try" {
			forms = "use text, json or html"
		}
		args := append(strings.Fields(cmd.CommandPath())[1:], "--output", "yaml")
		if got := sidecar(t, args...); got.code == exitDone || !strings.Contains(got.stderr, `"yaml"`) ||
			!strings.Contains(got.stderr, "--output") || !strings.Contains(got.stderr, forms) {
			t.Errorf("%q ends with %d: %s", args, got.code, got.stderr)
		}
	})
}

// errorsIn returns the errors in standard error as a program reads it.
func errorsIn(t *testing.T, stderr string) (texts []string) {
	t.Helper()
	for line := range strings.Lines(stderr) {
		var object struct{ Error, Note string }
		if err := json.Unmarshal([]byte(line), &object); err != nil || (object.Error == "") == (object.Note == "") {
			t.Errorf("%q is no object with an error or a note: %v", line, err)
		}
		if object.Error != "" {
			texts = append(texts, object.Error)
		}
	}
	return texts
}

// TestNotesInJSON holds that what a command has to say beside its result can be read by programs too.
func TestNotesInJSON(t *testing.T) {
	docs := file(t, `{"id":"a","headline":"some words"}`+"\n")
	const want = "no document has a field title or text: name the fields of your documents with --fields"
	got := sidecar(t, "sketch", "--output", "json", docs)
	if got.code != exitDone || got.stderr != `{"note":"`+docs+": "+want+"\"}\n" {
		t.Errorf("%+v", got)
	}
	expect.Same(t, "note: "+docs+": "+want+"\n", sidecar(t, "sketch", docs).stderr, "as text")
}

// TestConfigCheckInJSON: what is wrong is the result, and a file that can't be read is an error.
func TestConfigCheckInJSON(t *testing.T) {
	bad := write(t, "admin: x\nlog: {level: loud}\nengines: []\n")
	got := sidecar(t, "config", "check", "--output", "json", "-c", bad)
	var found config.CheckedConfig
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil || got.code != exitFailed || got.stderr != "" || found.OK || found.File != bad {
		t.Errorf("%+v, %v", got, err)
	}
	var keys []string
	for _, wrong := range found.Errors {
		keys = append(keys, wrong.Key)
	}
	if !slices.Equal(keys, []string{"admin", "log.level", "engines"}) || found.Errors[1].Line != 2 || found.Errors[1].Error != `"loud" is unknown: use debug, info, warn or error` {
		t.Errorf("%+v", found.Errors)
	}
	broken := sidecar(t, "config", "check", "--output", "json", "-c", write(t, "a: [\n"))
	if err := json.Unmarshal([]byte(broken.stdout), &found); err != nil || len(found.Errors) != 1 || found.Errors[0].Key != "" ||
		!strings.HasPrefix(found.Errors[0].Error, "is not valid YAML: ") {
		t.Errorf("%+v, %v", broken, err)
	}
	good := sidecar(t, "config", "check", "--output", "json", "-c", "../../config.yaml")
	if err := json.Unmarshal([]byte(good.stdout), &found); err != nil || good.code != exitDone || !found.OK || len(found.Errors) > 0 ||
		found.Engines[0].Rules[0].Match != "news-*" || found.Engines[0].URLs[0] != "http://127.0.0.1:9200" {
		t.Errorf("%+v, %v", good, err)
	}
	if gone := sidecar(t, "config", "check", "--output", "json", "-c", bad+".none"); gone.stdout != "" || len(errorsIn(t, gone.stderr)) != 1 {
		t.Errorf("%+v", gone)
	}
}

// TestUnreachableEngine: each command that asks an engine says once which one it could not ask and what to do, and nothing else.
func TestUnreachableEngine(t *testing.T) {
	file := write(t, `engines: [{kind: opensearch, listen: "127.0.0.1:0", urls: ["http://127.0.0.1:1"], indices: [{match: a, fields: [t]}]}]`)
	for _, line := range []string{
		"setup", "setup --dry-run", "reindex", "reindex --dry-run", "verify", "verify --repair", "calibrate", "similar --index a 1", "similar --index a -",
		"cluster --index a", "remove --index a --yes",
	} {
		for _, form := range []string{formText, formJSON} {
			got := sidecar(t, append(strings.Fields(line), "-c", file, "--output", form)...)
			texts := []string{strings.TrimSuffix(strings.TrimPrefix(got.stderr, "error: "), "\n")}
			if form == formJSON {
				texts = errorsIn(t, got.stderr)
			}
			const hint = ": check that it runs and that its urls in the configuration are right, or run sidecar doctor"
			if len(texts) != 1 || !strings.HasPrefix(texts[0], "engine opensearch: ") || !strings.HasSuffix(texts[0], "connection refused"+hint) {
				t.Errorf("%s: %s", line, got.stderr)
			}
			if got.code == exitDone || form == formText && got.stdout != "" || got.stdout != "" && !json.Valid([]byte(got.stdout)) {
				t.Errorf("%s: %d %s", line, got.code, got.stdout)
			}
		}
	}
}

// TestOneOfTwoUnreachable: if one of several engines is not reached, a command that needs one index says how to leave it out.
func TestOneOfTwoUnreachable(t *testing.T) {
	file := write(t, `engines:
- {name: one, kind: opensearch, listen: "127.0.0.1:0", urls: ["http://127.0.0.1:1"], indices: [{match: a, fields: [t]}]}
- {name: two, kind: opensearch, listen: "127.0.0.1:0", urls: ["http://127.0.0.1:1"], indices: [{match: a, fields: [t]}]}`)
	const hint = "For an index of another engine, name that engine with --engine\n"
	for line, hinted := range map[string]bool{"cluster --index a": true, "similar --index a 1": true, "cluster --index a --engine two": false} {
		got := sidecar(t, append(strings.Fields(line), "-c", file)...)
		if got.code == exitDone || strings.HasSuffix(got.stderr, hint) != hinted {
			t.Errorf("%s: %s", line, got.stderr)
		}
	}
}

// TestErrorsAreHarmless: what an engine answers is quoted without what a terminal would obey.
func TestErrorsAreHarmless(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"error":{"reason":"\u001b[2J\u001b]0;title\u0007 and \u009b2J","type":"x"},"status":400}`)
	}))
	defer engine.Close()
	file := write(t, fmt.Sprintf(`engines: [{kind: opensearch, listen: "127.0.0.1:0", urls: [%q], indices: [{match: a, fields: [t]}]}]`, engine.URL))
	got := sidecar(t, "verify", "-c", file)
	if !strings.Contains(got.stderr, "[2J") || strings.ContainsAny(got.stderr, "\x1b\x07\u009b") {
		t.Errorf("%q", got.stderr)
	}
}

// TestConfigHidesWhatURLsHide: a text that is a URL is printed without what it may hide, in either form.
func TestConfigHidesWhatURLsHide(t *testing.T) {
	file := write(t, `engines: [{kind: embedded, listen: "127.0.0.1:0", indices: [{match: a, fields: ["http://user:hunter2@host/x"]}]}]`)
	for _, form := range []string{formText, formJSON} {
		got := sidecar(t, "config", "print", "-c", file, "--output", form)
		if got.code != exitDone || strings.Contains(got.stdout, "hunter2") || !strings.Contains(got.stdout, "http://…@host/x") {
			t.Errorf("%+v", got)
		}
	}
}

// TestVersion: the flag prints the same as the command.
func TestVersion(t *testing.T) {
	flag, command := sidecar(t, "--version"), sidecar(t, "version")
	if flag != command || flag.code != exitDone || !strings.HasPrefix(flag.stdout, "sidecar ") {
		t.Errorf("--version: %+v, version: %+v", flag, command)
	}
}

package engines_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// roleVar, when set, makes TestChild the process that a test below watches from outside.
const roleVar = "NEARDUP_TEST_CHILD"

// TestChild starts an engine of the kind that roleVar names and waits to be killed.
func TestChild(t *testing.T) {
	kind := os.Getenv(roleVar)
	if kind == "" {
		t.Skip("runs only as a child of other tests")
	}
	fmt.Println("starting")
	e := engines.Start(t, kind)
	fmt.Println("pid", e.PID)
	time.Sleep(2 * time.Minute)
}

// child is this test binary, running TestChild with this environment besides.
func child(t *testing.T, kind string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(append(os.Environ(), roleVar+"="+kind, "NEARDUP_OLDER=", engines.Variable(kind, "URL")+"="), env...)
	return cmd
}

// However a test process ends, its engine ends and its directory goes.
func TestEngineEndsWithProcess(t *testing.T) {
	cases := []struct {
		name, kind string
		after      string // the child is ended when it has printed this
		signal     os.Signal
		args       []string
	}{
		{"opensearch killed", engines.OpenSearch, "pid", os.Kill, nil},
		{"typesense killed", engines.Typesense, "pid", os.Kill, nil},
		{"killed while the engine starts", engines.OpenSearch, "starting", os.Kill, nil},
		{"interrupted", engines.Typesense, "pid", os.Interrupt, nil},
		{"terminated", engines.Typesense, "pid", syscall.SIGTERM, nil},
		{"time limit", engines.Typesense, "pid", nil, []string{"-test.timeout=8s"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engines.Shared(t, c.kind) // skips this test where there is no such engine
			dir := openDir(t)
			cmd := child(t, c.kind, "TMPDIR="+dir)
			cmd.Args = append(cmd.Args, c.args...)
			out := expect.Value(cmd.StdoutPipe())(t)
			expect.OK(t, cmd.Start())
			pid := waitFor(t, bufio.NewScanner(out), c.after)
			if pid != 0 && !alive(pid) {
				t.Fatalf("engine %d does not run", pid)
			}
			if c.signal != nil {
				time.Sleep(200 * time.Millisecond) // so that "starting" means under way
				cmd.Process.Signal(c.signal)
			}
			cmd.Wait()
			waitUntilEmpty(t, dir)
			if pid != 0 && alive(pid) {
				t.Errorf("engine %d outlives its test process", pid)
			}
		})
	}
}

// openDir is a temporary directory that other users can enter, as the server may run as one.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		expect.OK(t, os.Chmod(d, 0o755))
	}
	return dir
}

// waitFor reads lines up to one that begins with this word and returns the number beside it, if there is one.
func waitFor(t *testing.T, lines *bufio.Scanner, word string) int {
	t.Helper()
	var all []string
	for lines.Scan() {
		all = append(all, lines.Text())
		if rest, ok := strings.CutPrefix(lines.Text(), word); ok {
			var pid int
			fmt.Sscan(rest, &pid)
			return pid
		}
	}
	t.Fatalf("no line begins with %q in:\n%s", word, strings.Join(all, "\n"))
	return 0
}

// waitUntilEmpty waits for the guard, whose last deed is to remove the engine's directory.
func waitUntilEmpty(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		entries := expect.Value(os.ReadDir(dir))(t)
		if len(entries) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is left after a minute", entries[0].Name())
		}
	}
}

// An engine that cannot be had skips or fails a test, as the environment says.
func TestUnavailable(t *testing.T) {
	const nowhere = "NEARDUP_TYPESENSE_URL=http://127.0.0.1:1"
	cases := []struct {
		name string
		env  []string
		want string
	}{
		{"not reached", []string{"CI=", "NEARDUP_ENGINES=", nowhere}, "--- SKIP"},
		{"not reached, CI", []string{"CI=true", "NEARDUP_ENGINES=", nowhere}, "--- FAIL"},
		{"not reached, required", []string{"CI=", "NEARDUP_ENGINES=required", nowhere}, "--- FAIL"},
		{"off", []string{"CI=", "NEARDUP_ENGINES=off", nowhere}, "switched off"},
		{"off, CI", []string{"CI=true", "NEARDUP_ENGINES=off", nowhere}, "--- FAIL"},
		{"not installed", []string{"CI=", "NEARDUP_ENGINES=", "NEARDUP_CACHE=" + t.TempDir()}, "prepare.sh"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, _ := child(t, engines.Typesense, c.env...).CombinedOutput() // the output tells how it ended
			if !strings.Contains(string(out), c.want) {
				t.Errorf("want %q in:\n%s", c.want, out)
			}
		})
	}
}

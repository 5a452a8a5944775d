package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/expect/jsonshape"
)

// served runs the program with these engines until the test ends, and returns the address of its admin listener.
func served(t *testing.T, engines string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	logs, stderr := io.Pipe()
	ended := make(chan int, 1)
	file := write(t, "log: {format: json}\nadmin: 127.0.0.1:0\nengines:\n"+engines)
	go func() {
		ended <- run(ctx, []string{"serve", "-c", file}, strings.NewReader(""), io.Discard, stderr)
		_ = stderr.Close()
	}()
	t.Cleanup(func() {
		stop()
		expect.Same(t, exitDone, <-ended, "the exit code of serve")
	})
	for lines := bufio.NewScanner(logs); lines.Scan(); {
		var line struct{ Msg, Addr string }
		expect.JSON(t, lines.Bytes(), &line)
		if line.Msg == "admin listening" {
			go func() { _, _ = io.Copy(io.Discard, logs) }()
			return line.Addr
		}
	}
	t.Fatal("the sidecar ended before it listened")
	return ""
}

// TestReadyCommand asks a sidecar that runs, and one that does not.
func TestReadyCommand(t *testing.T) {
	const one = `  - {kind: embedded, name: one, listen: "127.0.0.1:0", indices: [{match: news, fields: [title]}]}` + "\n"
	file := write(t, "admin: "+served(t, one)+"\n")
	if got := sidecar(t, "ready", "-c", file); got.code != exitDone || got.stdout != "engine one: ok\n" || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	got := sidecar(t, "ready", "-c", file, "--output", "json")
	if err := jsonshape.Check(printsJSON["ready"][0].keys, []byte(got.stdout)); err != nil || got.code != exitDone || got.stderr != "" {
		t.Errorf("%+v, %v", got, err)
	}
	file = write(t, "admin: "+served(t, strings.Replace(one, "embedded", `elasticsearch, urls: ["http://127.0.0.1:1"]`, 1))+"\n")
	var found readiness
	got = sidecar(t, "ready", "-c", file, "--output", "json")
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil || got.code != exitFailed || found.Ready || found.Status != 503 || !strings.HasPrefix(found.Lines[0], "engine one: can't be reached: ") {
		t.Errorf("%+v, %v", got, err)
	}
	expect.Same(t, []string{"not ready"}, errorsIn(t, got.stderr), "")
	got = sidecar(t, "ready", "-c", write(t, "admin: 127.0.0.1:1\n"))
	if got.code != exitFailed || got.stdout != "" || !strings.HasSuffix(got.stderr, ": check that sidecar serve runs, with this configuration\n") {
		t.Errorf("%+v", got)
	}
}

// TestReadyReadsAdminAlone has a sidecar that runs asked by a configuration that it has not taken.
func TestReadyReadsAdminAlone(t *testing.T) {
	at := served(t, `  - {kind: embedded, name: one, listen: "127.0.0.1:0", indices: [{match: news, fields: [title]}]}`+"\n")
	for name, c := range map[string]struct{ text, want string }{
		"a wrong value":              {"admin: " + at + "\nengines: [{kind: embedded, threshold: 7}]\n", ""},
		"a variable of another user": {"admin: " + at + "\nsketch: {seed: \"${NEARDUP_NOT_SET}\"}\n", ""},
		"none":                       {"admin: \"\"\n", "admin is empty"},
		"no address":                 {"admin: here\n", `admin: "here" is not an address`},
		"another type":               {"admin: [1]\n", "admin: must be"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := run(t.Context(), []string{"ready", "--config", write(t, c.text)}, nil, &stdout, &stderr)
			if (code == exitDone) != (c.want == "") || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("%d %s%s", code, stdout.String(), stderr.String())
			}
		})
	}
}

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
)

// result is what one run of the program left behind.
type result struct {
	code           int
	stdout, stderr string
}

// sidecar runs the program to its end.
func sidecar(t testing.TB, args ...string) result {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// byAll compares results.
var byAll = expect.By{cmp.AllowUnexported(result{})}

// write puts a configuration into a file of its own and returns its name.
func write(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestConfigCheck(t *testing.T) {
	got := sidecar(t, "config", "check", "--config", "../../config.yaml")
	index := config.DefaultIndex()
	want := result{stdout: `../../config.yaml: ok
sketch: fast_similarity, features auto, 2 words, 6 characters, 96 positions of 8 bits, content all, without a seed: anyone can craft texts that collide
engine elasticsearch: 127.0.0.1:9201 in front of elasticsearch at http://127.0.0.1:9200, on failure: open
  news-*: fields title, body; ` + index.Profile() + `; window 1000; missing: compute
`}
	byAll.Same(t, want, got, "")
}

func TestCommandsRefuseWhatTheyDoNotKnow(t *testing.T) {
	embedded := write(t, `engines: [{kind: embedded, listen: "127.0.0.1:0", indices: [{match: a, fields: [t]}]}]`)
	for _, c := range []struct {
		args string
		want string
	}{
		{"servr", "error: unknown command \"servr\" for \"sidecar\"\n\nDid you mean this?\n\tserve"},
		{"config chek", `error: unknown command "chek" for "sidecar config"`},
		{"reindex --fast", "error: unknown flag: --fast: see sidecar reindex --help"},
		{"reindex --index", "error: flag needs an argument: --index: see sidecar reindex --help"},
		{"reindex --slices many", `error: invalid argument "many" for "--slices" flag: `},
		{"reindex --watch=soon", `error: invalid argument "soon" for "--watch" flag: `},
		{"reindex --max-docs -1", `error: invalid argument "-1" for "--max-docs" flag: use a number above 0, or 0 for no bound: see sidecar reindex --help`},
		{"reindex --requests-per-second NaN", `error: invalid argument "NaN" for "--requests-per-second" flag: use a number above 0, or 0 for no bound`},
		{"reindex --slices 65", `error: invalid argument "65" for "--slices" flag: use 1 to 64`},
		{"calibrate --pairs 0", `error: invalid argument "0" for "--pairs" flag: use at least 1`},
		{"similar --index a --size 0 x", `error: invalid argument "0" for "--size" flag: use at least 1`},
		{"config check more", `error: unknown command "more" for "sidecar config check"`},
		{"serve -c nowhere.yaml", "error: read config: open nowhere.yaml: no such file or directory: name the file with --config, or write one with: sidecar init\n"},
		{"reindex --engine other -c ../../config.yaml", "error: --engine: there is no engine other: the names are elasticsearch"},
		{"setup -c " + embedded, "error: an embedded engine runs inside serve alone"},
		{"reindex --engine embedded -c " + embedded, "error: engine embedded: an embedded engine runs inside serve alone"},
	} {
		got := sidecar(t, strings.Fields(c.args)...)
		if got.code != exitFailed || !strings.HasPrefix(got.stderr, c.want) {
			t.Errorf("sidecar %s: code %d, %s", c.args, got.code, got.stderr)
		}
	}
}

func TestInterruptedBeforeItBegan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr strings.Builder
	code := run(ctx, []string{"reindex", "-c", "../../config.yaml"}, strings.NewReader(""), &stdout, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), "error: interrupted: go on where this run stopped with --resume") {
		t.Errorf("%d %s", code, stderr.String())
	}
}

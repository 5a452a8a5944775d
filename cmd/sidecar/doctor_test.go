package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/onboard"
)

func TestDoctorCommand(t *testing.T) {
	bad := write(t, "admin: x\nengines: []\n")
	got := sidecar(t, "doctor", "-c", bad)
	want := result{code: exitFailed, stdout: strings.ReplaceAll(`
fail  FILE:1: admin: "x" is not an address: write host:port, such as 127.0.0.1:9201
fail  FILE:2: engines: must have at least one engine with listen, kind, urls and indices
0 ok, 0 warnings, 2 failed
`[1:], "FILE", bad)}
	byAll.Same(t, want, got, "")
	embedded := write(t, `engines: [{kind: embedded, listen: "127.0.0.1:0", indices: [{match: a, fields: [t]}]}]`)
	got = sidecar(t, "doctor", "-c", embedded, "--output", "json")
	var report struct {
		Checks         []onboard.Check
		OK, Warn, Fail int
	}
	err := json.Unmarshal([]byte(got.stdout), &report)
	if err != nil || got.code != exitDone || report.OK != 3 || len(report.Checks) != 4 {
		t.Fatalf("%v: %+v", err, got)
	}
	first := onboard.Check{State: "ok", Check: "configuration", Text: embedded + " is valid: 1 engine, 1 rule"}
	expect.Same(t, first, report.Checks[0], "the first check")
	if seed := report.Checks[1]; seed.State != "warn" || !strings.HasPrefix(seed.Text, "sketch.seed is empty: ") {
		t.Errorf("an empty seed: %+v", seed)
	}
	seeded := write(t, `{sketch: {seed: s}, engines: [{kind: embedded, listen: "127.0.0.1:0", indices: [{match: a, fields: [t]}]}]}`)
	if got = sidecar(t, "doctor", "-c", seeded); strings.Contains(got.stdout, "seed") {
		t.Error(got.stdout)
	}
}

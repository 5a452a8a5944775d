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

// TestConfigTest: the tests of a configuration, by themselves and as a part of doctor.
func TestConfigTest(t *testing.T) {
	good := write(t, `engines: [{kind: embedded, listen: "127.0.0.1:0", indices: [{match: a, fields: [t], cases: [{same: [x, X]}]}]}]`)
	byAll.Same(t, result{stdout: "ok    " + good + ":1: rule a, cases[0]: fold: it is the same text, except perhaps for case and white space\n1 ok, 0 failed\n"},
		sidecar(t, "config", "test", "-c", good), "")
	bad := write(t, `engines: [{kind: embedded, listen: "127.0.0.1:0", indices: [{match: a, fields: [t], cases: [
  {same: [x, X]},
  {same: [x, y]}]}]}]`)
	const why = "rule a, cases[1]: must fold, and do not: the agreement 0.0000 is below 0.64"
	got := sidecar(t, "config", "test", "--texts", "-c", bad)
	if got.code != exitFailed || got.stderr != "" || !strings.Contains(got.stdout, "fail  "+bad+":3: "+why+"\n1 ok, 1 failed\n") {
		t.Errorf("%+v", got)
	}
	got = sidecar(t, "doctor", "-c", bad)
	if got.code != exitFailed || !strings.Contains(got.stdout, "fail  embedded: line 3: "+why+": change the rule, or the case\nok    embedded: 1 case of the rules: ") {
		t.Errorf("%+v", got)
	}
	got = sidecar(t, "config", "test", "--output", "json", "-c", bad)
	var tested struct {
		Cases []struct {
			Engine, Want string
			Line         int
			OK           bool
		}
		OK, Failed int
	}
	if err := json.Unmarshal([]byte(got.stdout), &tested); err != nil || tested.Failed != 1 || len(tested.Cases) != 2 || tested.Cases[1].OK || tested.Cases[1].Line != 3 {
		t.Errorf("%v %+v", err, got)
	}
}

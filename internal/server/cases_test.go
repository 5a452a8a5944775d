package server

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestFailingCases: with a failing case a sidecar starts and says so, but it does not reload, unless the file says to.
func TestFailingCases(t *testing.T) {
	broken := embeddedConfig(`dry_run: true, cases: [{same: [a, a]}, {same: ["one", "another"]}]`)
	const says = `:4: rule news, cases[1]: must fold, and do not: the agreement 0.0000 is below 0.64`
	r := started(t, broken)
	if log := r.log.Take(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "serving all the same") || !strings.Contains(log, says) {
		t.Errorf("at the start the log says:\n%s", log)
	}
	r = started(t, embeddedConfig("threshold: 0.7"))
	base := r.base(t, "one")
	fill(t, base)
	for _, c := range []struct {
		text, said string
		hits       int
	}{
		{broken, "configuration not reloaded, the previous one stays", 2},
		{"reload_with_failing_cases: true" + broken, "reloading all the same", 3},
	} {
		r.log.Take()
		r.become(t, c.text)
		log := r.log.Take()
		if n := strings.Count(log, "level=ERROR"); n != 1 || !strings.Contains(log, c.said) || !strings.Contains(log, says) {
			t.Errorf("the log says:\n%s", log)
		}
		expect.Same(t, c.hits, len(strings.Fields(ids(t, base))), "hits, of which 2 are alike")
	}
	unit := r.backends["one"]
	r.become(t, strings.Replace(broken, `, {same: ["one", "another"]}`, "", 1))
	if log := r.log.String(); strings.Contains(log, "ERROR") || r.backends["one"] != unit {
		t.Errorf("a change of the cases alone makes a new backend: %s", log)
	}
}

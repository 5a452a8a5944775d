package server

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/decided"
)

// TestDecidedUnread: a sidecar whose engine does not show the decided pairs serves all the same, says so once, and counts.
func TestDecidedUnread(t *testing.T) {
	const text = `
engines:
  - {name: one, kind: opensearch, listen: "127.0.0.1:0", urls: ["http://127.0.0.1:1"], decided: {refresh: 1s}, indices: [{match: a, fields: [t]}]}
`
	r := started(t, text)
	if log := r.log.Take(); strings.Count(log, "the decided pairs can't be read; until then searches obey none") != 1 || !strings.Contains(log, "engine one: ") {
		t.Errorf("the log says:\n%s", log)
	}
	before := r.backends["one"]
	r.become(t, strings.Replace(text, "refresh: 1s", "refresh: 0", 1))
	if r.backends["one"] == before || r.backends["one"].decided != nil {
		t.Error("it still reads them")
	}
}

// TestReloadKeepsDecided: a reload while the decided pairs can't be read keeps those that were read, from the same engine with the same credentials.
func TestReloadKeepsDecided(t *testing.T) {
	const text = `
engines:
  - {name: one, kind: opensearch, listen: "127.0.0.1:0", urls: ["http://127.0.0.1:1"], decided: {refresh: 1h}, credentials: {api_key: k}, indices: [{match: a, fields: [t]}]}
`
	set := decided.NewSet([]decided.Pair{{Index: "a", A: "1", B: "2", Verdict: decided.Same, TextA: 1, TextB: 2}})
	for change, kept := range map[[2]string]int{{"fields: [t]", "fields: [u]"}: 1, {"api_key: k", "api_key: other"}: 0, {":1\"]", ":2\"]"}: 0} {
		t.Run(change[1], func(t *testing.T) {
			r := started(t, text)
			r.backends["one"].decided = func() *decided.Set { return set }
			r.log.Take()
			r.become(t, strings.Replace(text, change[0], change[1], 1))
			if got := r.backends["one"].decided().Len(); got != kept {
				t.Errorf("%d pairs, want %d", got, kept)
			}
			if log := r.log.Take(); strings.Contains(log, "those that were read before") != (kept > 0) {
				t.Errorf("the log says\n%s", log)
			}
		})
	}
}

// TestReadingsAreNoted: each change is logged once, and that all pairs are gone.
func TestReadingsAreNoted(t *testing.T) {
	var b strings.Builder
	r := readings{log: slog.New(slog.NewTextHandler(&b, nil))}
	failed := errors.New("failed")
	for _, step := range []struct {
		pairs int
		err   error
		want  string
	}{
		{0, failed, "obey none"}, {0, failed, ""}, {3, nil, "can be read again"}, {3, nil, ""}, {3, failed, "read before"}, {0, nil, "no decided pairs are left"}, {0, nil, ""},
	} {
		b.Reset()
		if r.note(step.pairs, step.err); !strings.Contains(b.String(), step.want) || step.want == "" && b.Len() > 0 {
			t.Errorf("%+v: %s", step, b.String())
		}
	}
}

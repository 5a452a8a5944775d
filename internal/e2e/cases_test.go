package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/rerank"
)

// TestCases runs tests of stored documents: they are read with the fields that decide.
func TestCases(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index = "cases-articles"
		list := slices.Clone(documents(t)[:2])
		twin, elsewhere := list[0], list[0]
		twin.ID, elsewhere.ID, elsewhere.Host = "a twin", "elsewhere", "another.example"
		api{e, e.URL}.create(t, index, append(list, twin, elsewhere)...)
		file := config(t, e, setup{match: "cases-*", rule: fmt.Sprintf(`same: [host]
cases:
  - same: [{id: %q}, {id: a twin}]
  - different: [{id: %q}, {id: elsewhere, index: %s}]
  - same: [{id: %q}, {id: gone}]`, list[0].ID, list[0].ID, index, list[0].ID)})
		out, code := sidecar(t, "config", "test", "--config", file)
		said := strings.Split(out, "\n")
		for i, want := range []string{"ok", "ok", "fail"} {
			if len(said) < 4 || !strings.HasPrefix(said[i], want) || code != 1 {
				t.Fatalf("%d %s", code, out)
			}
		}
		if !strings.Contains(said[1], "but hits fold only with the same host") || !strings.Contains(said[2], "document gone is not in cases-*") {
			t.Error(out)
		}
		holds(t, doctor(t, file), "fail", "cases", "document gone is not in cases-")
	})
}

// TestServeTo serves in front of each engine without a file, and searches.
func TestServeTo(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index = "serveto-articles"
		direct := api{e, e.URL}
		direct.create(t, index, documents(t)...)
		serving := asks(t, e)
		serving.Args = []string{serving.Args[0], "serve", "--to", e.URL, "--listen", port(t)}
		at, end := begin(t, serving)
		o := oracleOf(t, direct, documents(t), "", rerank.Default().Threshold)
		through := api{e, "http://" + at}
		same(t, o.list(t, index, "ferry"), slices.Concat(through.whole(t, index, "ferry", 10, "")...), "")
		end()
	})
}

package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// The tests that begin with TestMainJob are what make test runs on real engines; make test-all runs the rest.

// TestMainJobPages has the corpus go in and the collapsed pages come out through the sidecar with each engine's official Python client, and holds
// all pages of all queries against the definition.
func TestMainJobPages(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		list, index := documents(t), "news-py"
		through, direct := api{e, serve(t, e, setup{match: "news-*"})}, api{e, e.URL}
		direct.drop(t, index)
		pyRun(t, through, "load", index, "--corpus", corpusFile(t, list))
		o := newOracle(t, direct, list)
		o.checkPages(t, through, index, "")
		for _, q := range queries[:3] {
			var walked struct{ Pages [][]string }
			check(t, json.Unmarshal(pyRun(t, through, "walk", index, "--query", q, "--size", "10"), &walked))
			want := slices.Collect(slices.Chunk(o.list(t, index, q), 10))
			same(t, want, walked.Pages, "%q", q)
		}
	})
}

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestMainJobSequence goes through all pages of a list by their numbers: through one sidecar, through two in turns, and while documents go. Each page
// is that of the definition as the list is then. Through one sidecar most pages from the third on take one
// request; others follow many copies in a row.
func TestMainJobSequence(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		list, index, size := documents(t), "sequence-1", 5
		of := setup{match: "sequence-*"}
		through, direct := []api{{e, serve(t, e, of)}, {e, serve(t, e, of)}}, api{e, e.URL}
		through[0].create(t, index, list...)
		for _, how := range []string{"one sidecar", "two sidecars", "documents go"} {
			want := slices.Collect(slices.Chunk(newOracle(t, direct, list).list(t, index, "the"), size))
			single, n := 0, 1
			for ; n <= len(want); n++ {
				by := through[0]
				if how == "two sidecars" {
					by = through[n/2%2]
				}
				p := by.search(t, index, "the", (n-1)*size, size, "")

				same(t, want[n-1], p.ids, "%s: page %d: %s", how, n, p.outcome)
				if n > 2 && strings.Contains(p.outcome, "rounds=1;") {
					single++
				}
				if how == "documents go" && n%2 == 0 && n < 12 {
					gone := want[n-2][0]
					call(t, e, "DELETE", direct.base+strings.Replace(direct.words(t).document(index, gone), "_source", "_doc", 1), "").want(t, 200)
					direct.refresh(t, index)
					want = slices.Collect(slices.Chunk(newOracle(t, direct, list).list(t, index, "the"), size))
				}
			}
			if t.Logf("%s: %d of %d pages from the third on took one request", how, single, n-3); how == "one sidecar" && (n < 12 || single*10 < (n-3)*6) {
				t.Errorf("%d of %d pages took one request", single, n-3)
			}
		}
	})
}

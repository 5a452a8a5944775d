package e2e

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// onALine gives articles vectors by which the first is nearest to [0,1] and the last farthest.
func onALine(list []article) []article {
	for i := range list {
		list[i].V = []float64{float64(i), 1}
	}
	return list
}

// neighbours is a search for the k nearest by vector, mixed with one by field that holds some of them.
func neighbours(kind string, k int) string {
	if kind == engines.OpenSearch {
		return fmt.Sprintf(`"query":{"bool":{"should":[{"knn":{"v":{"vector":[0,1],"k":%d}}},{"range":{"n":{"lt":3}}}]}}`, k)
	}
	return fmt.Sprintf(`"query":{"range":{"n":{"lt":3}}},"knn":{"field":"v","query_vector":[0,1],"k":%d,"num_candidates":%d}`, k, k)
}

// TestComplaintC13Neighbours is about searches for neighbours: collapsed, they show fewer groups than asked for, since so many
// neighbours as were asked for are copies of a few, and the second page of groups is empty. The hybrid query of OpenSearch needs a
// plugin that the tests' engine lacks; its mix of a query for neighbours and one for a field has the same trouble.
func TestComplaintC13Neighbours(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, onALine(articles(copies(30, 3)...)))
		const size = 10
		own := d.search(d.direct, fmt.Sprintf(`{"size":%d,%s,"collapse":{"field":"dup"}}`, size, neighbours(e.Kind, size)), "")
		if len(own.ids) != 4 || own.total != size {
			t.Errorf("directly, %d groups of %d neighbours: the complaint is gone", len(own.ids), own.total)
		}
		second := fmt.Sprintf(`{"from":5,"size":5,%s,"collapse":{"field":"dup"}}`, neighbours(e.Kind, size))
		if got := d.search(d.direct, second, ""); len(got.ids) > 0 {
			t.Errorf("directly, the second page has %d groups: the complaint is gone", len(got.ids))
		}
		long := d.search(d.direct, fmt.Sprintf(`{"size":100,%s}`, neighbours(e.Kind, 100)), "").ids
		d.foldsByKey(long)
		for _, cut := range []int{size, 4, 3} {
			for _, keep := range []int{1, 2} {
				var got []string
				for from := 0; from < size; from += cut {
					body := fmt.Sprintf(`{"from":%d,"size":%d,%s}`, from, cut, neighbours(e.Kind, size))
					got = append(got, d.search(d.through, body, fmt.Sprintf("neardup_keep=%d", keep)).ids...)
				}
				if diff := cmp.Diff(keptOf(d.texts(), long, keep)[:size], got); diff != "" {
					t.Errorf("in pages of %d, %d of each: the definition (-), the pages (+):\n%s", cut, keep, diff)
				}
			}
		}
		for _, k := range []int{size, 60} { // fewer than there are texts, and more
			f := d.search(d.through, fmt.Sprintf(`{"size":50,%s}`, neighbours(e.Kind, k)), "neardup_totals=collapsed")
			if raw, folded := f.reports(t, "raw"), f.reports(t, "folded"); raw != len(d.list) || raw-folded != 30 {
				t.Errorf("%d neighbours: of %d hits 30 are different: %s", k, len(d.list), f.outcome)
			}
			if f.total != len(f.ids) || f.total != min(k, 30) {
				t.Errorf("%d neighbours: the total is %d, to be seen are %d: %s", k, f.total, len(f.ids), f.outcome)
			}
		}
	})
}

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestComplaintC01PagingACollapsedList is about how to page a collapsed list: the engine's total and aggregations count what it
// folded, so the pages that it promises end in empty ones, its count takes no collapse, and its scroll neither.
func TestComplaintC01PagingACollapsedList(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(140, 0.6)...))
		const size = 10
		want := d.want()
		promised := d.collapsing(0, size).total / size
		if got := len(d.collapsing((promised-1)*size, size).ids); promised != 14 || got != 0 {
			t.Errorf("directly, the last of %d promised pages holds %d hits: the complaint is gone", promised, got)
		}
		d.refused("a scroll", `{"size":10,"collapse":{"field":"dup"}}`, "scroll context", "scroll=1m")
		call(t, e, "POST", d.direct.base+"/"+d.index+"/_count", `{"collapse":{"field":"dup"}}`).want(t, 400)
		own := d.search(d.direct, `{"size":0,"collapse":{"field":"dup"},"aggs":{"n":{"value_count":{"field":"kind"}}}}`, "")
		if !strings.Contains(string(own.body), fmt.Sprintf(`"value":%d}`, len(d.list))) {
			t.Errorf("directly, aggregations do not count all hits: the complaint is gone: %s", own.body)
		}
		for _, params := range []string{"neardup_totals=collapsed", "neardup_totals=collapsed&rest_total_hits_as_int=true"} {
			pages := d.walk(d.through, size, params)
			if diff := cmp.Diff(pagesOf(want, size), ids(pages)); diff != "" {
				t.Errorf("the definition (-), the pages (+):\n%s", diff)
			}
			for i, p := range pages {
				raw, folded := p.reports(t, "raw"), p.reports(t, "folded")
				if raw-folded != len(want) || raw != len(d.list) || p.total != len(want) || !strings.Contains(p.outcome, "exact=true") {
					t.Errorf("page %d of %d groups: total %d, %s", i+1, len(want), p.total, p.outcome)
				}
			}
		}
	})
}

// TestComplaintC04SearchAfterUnderAnySort is about a cursor through a collapsed list that is not sorted by the key alone: the
// engines refuse it, since a group would come back on a later page, as it does for those who build it from a filter.
func TestComplaintC04SearchAfterUnderAnySort(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(150, 0.6)...))
		d.refused("another sort", `{"sort":[{"at":"asc"}],"search_after":[0],"collapse":{"field":"dup"}}`, "search_after", "")
		d.refused("a tiebreaker", `{"sort":["dup","id"],"search_after":["d0002",4],"collapse":{"field":"dup"}}`, "search_after", "")
		var byFilter []string
		for last := -1; ; {
			f := d.search(d.direct, fmt.Sprintf(`{"size":10,"query":{"range":{"n":{"gt":%d}}},"sort":[{"n":"asc"}],`+
				`"collapse":{"field":"dup"}}`, last), "")
			if len(f.ids) == 0 {
				break
			}
			byFilter = append(byFilter, f.ids...)
			if _, err := fmt.Sscanf(f.sort, "[%d]", &last); err != nil {
				t.Fatal(err)
			}
		}
		if again := repeats(of(d.texts(), byFilter)); len(again) < 5 {
			t.Errorf("directly, with a filter in place of the cursor, %d groups come back: the complaint is gone", len(again))
		}
		sorts := []string{`[{"at":{"order":"desc"}}]`, `[{"kind":"asc"},{"n":"desc"}]`}
		if e.Kind == engines.Elasticsearch { // OpenSearch knows no _shard_doc
			sorts = append(sorts, `["kind","_shard_doc"]`)
		}
		for _, sort := range sorts {
			for _, pit := range []bool{true, false} {
				if strings.Contains(sort, "_shard_doc") && !pit {
					continue
				}
				w := walk{e: e, bases: always(e.URL), index: d.index, query: `{"range":{"n":{"gte":0}}}`, sort: sort, size: 1000, pit: pit}
				want := d.definition().collapsed(w.run(t).ids)
				w.bases, w.size = always(d.through.base), 10
				got := w.run(t)
				if diff := cmp.Diff(want, got.ids); diff != "" || got.lost() > 0 {
					t.Errorf("%s in a point in time: %v: headers %q: the definition (-), the walk (+):\n%s", sort, pit, got.headers, diff)
				}
				got.full(t, w.size)
			}
		}
	})
}

// firstOf leaves the first hit of each text. A hit without a key is one with all that lack it.
func firstOf(texts map[string]string, ids []string) (list []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		if !seen[texts[id]] {
			seen[texts[id]], list = true, append(list, id)
		}
	}
	return list
}

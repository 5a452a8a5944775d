package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestComplaintC06DocumentsWithoutTheKey is about a key that only some documents have: the engine makes one hit of all
// others, so that a backfill has to be complete before the first collapsed page. Here they are compared by their texts.
func TestComplaintC06DocumentsWithoutTheKey(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		d := openDesk(t, e.Kind)
		list := articles(strewn(90, 0.5)...)
		for i := range list[:45] {
			list[i].Dup = "" // a backfill has come half the way
		}
		d.create(1)
		d.add(d.direct, list[:45])
		d.add(d.through, list[45:])
		shown := of(d.texts(), d.collapsing(0, 100).ids)
		if n := len(slices.DeleteFunc(shown, func(key string) bool { return key != "" })); n != 1 {
			t.Errorf("directly, %d articles without a key are shown: the complaint is gone", n)
		}
		want := pagesOf(d.definition().collapsed(d.raw()), 10)
		if diff := cmp.Diff(want, ids(d.walk(d.through, 10, ""))); diff != "" {
			t.Errorf("the definition (-), the pages (+):\n%s", diff)
		}
	})
}

// TestComplaintC07CollapseAndRescore is about lists that are scored anew: Elasticsearch collapses before, so that a group
// shows, and stands by, a member that is not its best, and groups that are spread over shards come twice while others are
// lost; OpenSearch refuses. Here the list is collapsed as it is in the end.
func TestComplaintC07CollapseAndRescore(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := openDesk(t, e.Kind)
		d.create(3)
		list := articles(strewn(80, 0.6)...)
		for i := range list {
			list[i].Best = 1 + (i*37)%83
		}
		d.add(d.through, list)
		const search = `"query":{"function_score":{"field_value_factor":{"field":"n"}}},"rescore":{"window_size":100,` +
			`"query":{"query_weight":0,"rescore_query":{"function_score":{"field_value_factor":{"field":"best"}}}}}`
		raw := d.search(d.direct, `{"size":100,`+search+`}`, "").ids
		want := d.definition().collapsed(raw)
		own := `{"size":100,` + search + `,"collapse":{"field":"dup"}}`
		if e.Kind == engines.OpenSearch {
			d.refused("rescore", own, "rescore", "")
		} else {
			shown := d.search(d.direct, own, "").ids
			if again := repeats(of(d.texts(), shown)); len(again) == 0 || len(firstOf(d.texts(), shown)) >= len(want) {
				t.Errorf("directly, %d groups twice, %d of %d shown: the complaint is gone", len(again), len(shown)-len(again), len(want))
			}
		}
		for from := 0; from < len(want); from += 10 {
			f := d.search(d.through, fmt.Sprintf(`{"from":%d,"size":10,%s}`, from, search), "")
			if diff := cmp.Diff(want[from:min(from+10, len(want))], f.ids); diff != "" {
				t.Errorf("from %d: %s: the definition (-), the page (+):\n%s", from, f.outcome, diff)
			}
		}
	})
}

// queried is how many queries the engine's shards have run on the index.
func (d *desk) queried() int {
	d.t.Helper()
	var stats struct {
		All struct {
			Total struct {
				Search struct {
					Queries int `json:"query_total"`
				}
			}
		} `json:"_all"`
	}
	decode(d.t, call(d.t, d.e, "GET", d.e.URL+"/"+d.index+"/_stats/search", "").want(d.t, 200).body, &stats)
	return stats.All.Total.Search.Queries
}

// TestComplaintC09FoldedHitsCostNoFurtherQuery is about a collapsed search that takes ten times as long when it shows what
// was folded: the engine runs one more query for each group of the page. Here they come out of what was read to collapse.
func TestComplaintC09FoldedHitsCostNoFurtherQuery(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(200, 0.4)...))
		before := d.queried()
		d.search(d.direct, `{"size":10,"sort":[{"n":"asc"}],"collapse":{"field":"dup","inner_hits":{"name":"all","size":50}}}`,
			"request_cache=false")
		if got := d.queried() - before; got != 11 {
			t.Errorf("directly, a page of ten groups with their hits takes %d queries, not 1 and 10: the complaint is gone", got)
		}
		for range 5 { // until the index's share of duplicates is known
			d.page(d.through, 0, 10, "")
		}
		for _, params := range []string{"", "neardup_expand=ids", "neardup_expand=source", "neardup_explain=true"} {
			asked, before := d.asked.Load(), d.queried()
			f := d.page(d.through, 0, 10, params)
			if a, q := d.asked.Load()-asked, d.queried()-before; a != 1 || q != 1 || f.reports(t, "rounds") != 1 {
				t.Errorf("%s: %d requests, %d queries: %s", params, a, q, f.outcome)
			}
			if strings.Contains(string(f.body), `"inner_hits"`) != (params != "") {
				t.Errorf("%s: folded hits are shown or missing: %.300s", params, f.body)
			}
		}
	})
}

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestCursorControls walks lists under every control and beside what a client may ask for with its hits.
func TestCursorControls(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	direct := api{e, e.URL}
	r := rand.New(rand.NewPCG(41, 1))
	list := leaves(r, scale(130, 300), 0.5)
	one := serveFile(t, walking(t, e, walkRule{match: "shown-*", window: 1000}))
	other := serveFile(t, walking(t, e, walkRule{match: "shown-*", window: 1000}))
	plant(t, direct, one, "shown-1", 2, list)
	several := func() string { return []string{one, other}[r.IntN(2)] }
	plain := walk{e: e, bases: always(e.URL), index: "shown-1", query: `{"match_all":{}}`, sort: `[{"place":"asc"},"id"]`, size: 2000}
	raw := plain.run(t).ids
	for _, c := range []struct {
		url, more    string
		window, keep int
		threshold    float64
		dry          bool
	}{
		{more: `,"_source":["id"]`},
		{more: `,"fields":["*"],"_source":false,"docvalue_fields":["place"]`},
		{url: "neardup_keep=3", keep: 3},
		{more: `,"neardup_keep":2`, keep: 2},
		{url: "neardup_window=40", window: 40},
		{url: "neardup_threshold=0.95", threshold: 0.95},
		{url: "neardup=dry_run&neardup_window=20", dry: true},
		{url: "neardup_totals=collapsed"},
		{url: "neardup_totals=collapsed&neardup_window=40", window: 40},
		{url: "neardup_expand=source&neardup_explain=true"},
		{url: "neardup_expand=source&neardup_window=40", more: `,"_source":["id"]`, window: 40},
		{more: `,"aggs":{"n":{"max":{"field":"place"}}},"track_total_hits":true`},
		{more: `,"track_total_hits":false`},
		{url: "filter_path=pit_id,hits.hits._id,hits.hits.sort"},
	} {
		for _, bases := range []func() string{always(one), several} {
			j := newJudge(t, direct, list, cmp.Or(c.window, 1000))
			j.keep, j.threshold = cmp.Or(c.keep, j.keep), cmp.Or(c.threshold, j.threshold)
			want, verb := j.collapsed(raw), "collapsed; "
			if c.dry {
				want, verb = raw, "dry-run; "
			}
			w := plain
			w.bases, w.size, w.more, w.url, w.pit = bases, 13, c.more, c.url, r.IntN(2) == 0
			got := w.run(t)
			if diff := gocmp.Diff(want, got.ids); diff != "" {
				t.Errorf("%s%s: headers %q: %s", c.url, c.more, got.headers[:3], diff)
			}
			for i, h := range got.headers {
				if !strings.HasPrefix(h, verb) || strings.Contains(h, "lost") {
					t.Errorf("%s%s: header %q", c.url, c.more, h)
				}
				if c.url == "neardup_totals=collapsed" && got.totals[i] != len(want) {
					t.Errorf("page %d has the total %d, want %d", i+1, got.totals[i], len(want))
				}
			}
		}
	}
}

// TestPointInTimeTies: every hit that is shown in a client's point in time has the sort values that the engine itself gives it there, also
// where the page stands in one of the indices alone and its hits are read apart. Elasticsearch tells ties apart by the number of the shard;
// OpenSearch adds no such value.
func TestPointInTimeTies(t *testing.T) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct := api{e, e.URL}
			through := serveFile(t, walking(t, e, walkRule{match: "ties-*", window: 1000}))
			var lines strings.Builder
			for i := range 106 {
				index := "ties-a"
				if i >= 100 {
					index = "ties-b"
				}
				text := strings.Repeat("the ferry stays at its pier ", 3)
				if i%3 != 0 {
					text = fmt.Sprintf("a%d b%d c%d d%d e%d f%d g%d h%d i%d j%d", i, i, i, i, i, i, i, i, i, i)
				}
				fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n{\"title\":\"the river\",\"body\":%q,\"n\":%d}\n", index, i, text, i)
			}
			for name, shards := range map[string]int{"ties-a": 1, "ties-b": 2} {
				direct.drop(t, name)
				call(t, e, "PUT", through+"/"+name, fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0}}`, shards)).want(t, 200)
			}
			api{e, through}.loadLines(t, "", lines.String())
			pit := openPIT(t, e, e.URL, "ties-a,ties-b")
			defer closePIT(t, e, pit)
			type listed struct {
				Hits struct {
					Hits []struct {
						ID   string          `json:"_id"`
						Sort json.RawMessage `json:"sort"`
					}
				}
			}
			ask := func(base, body string) (l listed, header string) {
				r := call(t, e, "POST", base+"/_search", body).want(t, 200)
				check(t, json.Unmarshal(r.body, &l))
				return l, r.header.Get("Neardup")
			}
			apart := 0
			for _, more := range []string{``, `,"_source":false,"fields":["title","n"]`, `,"_source":["n"]`, `,"track_total_hits":false,"_source":false,"fields":["n"]`} {
				for _, after := range []int{-1, 60, 97, 99, 101} {
					for _, size := range []int{2, 6, 120} {
						common := fmt.Sprintf(`"query":{"match":{"title":"river"}},"pit":{"id":%q},"sort":[{"n":"asc"}]%s`, pit, more)
						own, cursor := map[string]string{}, ""
						all, _ := ask(e.URL, `{"size":200,`+common+`}`)
						for i, hit := range all.Hits.Hits {
							if own[hit.ID] = string(hit.Sort); i == after {
								cursor = `,"search_after":` + string(hit.Sort)
							}
						}
						shown, header := ask(through, fmt.Sprintf(`{"size":%d,%s%s}`, size, common, cursor))
						if !strings.HasPrefix(header, "collapsed") || len(shown.Hits.Hits) == 0 {
							t.Fatalf("Neardup: %s, %d hits", header, len(shown.Hits.Hits))
						}
						if !strings.Contains(header, "rounds=1;") {
							apart++
						}
						for _, hit := range shown.Hits.Hits {
							if string(hit.Sort) != own[hit.ID] {
								t.Errorf("%s%s, %d hits (%s): %s has %s, the engine gives it %s", more, cursor, size, header, hit.ID, hit.Sort, own[hit.ID])
							}
						}
					}
				}
			}
			if apart == 0 {
				t.Error("no page was read in several rounds")
			}
		})
	}
}

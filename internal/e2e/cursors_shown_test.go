package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestCursorControls walks lists under every control and beside what a client may ask for with its hits.
func TestCursorControls(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct := api{e, e.URL}
			r := rand.New(rand.NewPCG(41, 1))
			list := leaves(r, brief(130, 300), 0.5)
			one := serveFile(t, walking(t, e, walkRule{match: "shown-*", window: 1000}))
			other := serveFile(t, walking(t, e, walkRule{match: "shown-*", window: 1000}))
			plant(t, direct, one, "shown-1", 2, list)
			several := func() string { return []string{one, other}[r.IntN(2)] }
			raw := walk{e: e, bases: always(e.URL), index: "shown-1", query: `{"match_all":{}}`, sort: `[{"place":"asc"},"id"]`, size: 2000}.run(t).ids
			for _, c := range []struct {
				name, url, more   string
				window, keep, dry int
				threshold         float64
			}{
				{name: "source filtered", more: `,"_source":["id"]`}, {name: "no source", more: `,"_source":false,"docvalue_fields":["place"]`},
				{name: "fields", more: `,"fields":["*"],"_source":false`}, {name: "keep", url: "neardup_keep=3", keep: 3}, {name: "window", url: "neardup_window=40", window: 40},
				{name: "keep in the body", more: `,"neardup_keep":2`, keep: 2}, {name: "threshold", url: "neardup_threshold=0.95", threshold: 0.95},
				{name: "dry run", url: "neardup=dry_run", dry: 1}, {name: "dry run of a small window", url: "neardup=dry_run&neardup_window=20", dry: 1},
				{name: "totals of a small window", url: "neardup_totals=collapsed&neardup_window=40", window: 40},
				{name: "expanded in a small window", url: "neardup_expand=source&neardup_window=40", more: `,"_source":["id"]`, window: 40},
				{name: "aggregations", more: `,"aggs":{"n":{"max":{"field":"place"}}},"track_total_hits":true`},
				{name: "no total", more: `,"track_total_hits":false`}, {name: "totals", url: "neardup_totals=collapsed"}, {name: "expanded", url: "neardup_expand=source&neardup_explain=true"},
				{name: "filtered", url: "filter_path=pit_id,hits.hits._id,hits.hits.sort"},
			} {
				for _, bases := range []func() string{always(one), several} {
					j := newJudge(t, direct, list, 1000)
					j.window, j.keep = max(c.window, 1000*(1-min(c.window, 1))), max(c.keep, 1)
					if c.threshold > 0 {
						j.oracle.threshold = c.threshold
					}
					want := j.collapsed(raw)
					if c.dry > 0 {
						want = raw
					}
					w := walk{e: e, bases: bases, index: "shown-1", query: `{"match_all":{}}`, sort: `[{"place":"asc"},"id"]`, size: 13, more: c.more, url: c.url, pit: r.IntN(2) == 0}
					got := w.run(t)
					if diff := cmp.Diff(want, got.ids); diff != "" {
						t.Errorf("%s: headers %q: %s", c.name, got.headers[:3], diff)
					}
					verb := "collapsed; "
					if c.dry > 0 {
						verb = "dry-run; "
					}
					for _, h := range got.headers {
						if !strings.HasPrefix(h, verb) || strings.Contains(h, "lost") {
							t.Errorf("%s: header %q", c.name, h)
						}
					}
				}
			}
		})
	}
}

// TestCursorTotals holds the totals and the folded hits of every page of a walk to the definition.
func TestCursorTotals(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			o := newOrchard(t, kind, "totals", 43, 300, 0.5, 2)
			e, base, j := o.e, o.base, o.judge
			raw := walk{e: e, bases: always(e.URL), index: "totals-1", query: `{"match_all":{}}`, sort: `["id"]`, size: 2000}.run(t).ids
			want := j.collapsed(raw)
			after, seen := "", []string{}
			for len(seen) < len(want) {
				body := fmt.Sprintf(`{"size":17,"sort":["id"]%s}`, after)
				r := call(t, e, "POST", base+"/totals-1/_search?neardup_totals=collapsed&neardup_expand=ids", body).want(t, 200)
				var reply struct {
					Hits struct {
						Total struct{ Value int }
						Hits  []struct {
							ID    string `json:"_id"`
							Inner struct {
								Neardup struct {
									Hits struct {
										Hits []struct {
											ID string `json:"_id"`
										}
									}
								}
							} `json:"inner_hits"`
						}
					}
				}
				if err := json.Unmarshal(r.body, &reply); err != nil || len(reply.Hits.Hits) == 0 {
					t.Fatalf("%v %s", err, r.body)
				}
				if reply.Hits.Total.Value != len(want) || !strings.Contains(r.header.Get("Neardup"), "exact=true") {
					t.Errorf("behind %d hits the total is %d, not %d: %q", len(seen), reply.Hits.Total.Value, len(want), r.header.Get("Neardup"))
				}
				for _, h := range reply.Hits.Hits {
					seen = append(seen, h.ID)
					var folded, expected []string
					for _, f := range h.Inner.Neardup.Hits.Hits {
						folded = append(folded, f.ID)
					}
					for _, id := range raw {
						first := slices.IndexFunc(want, func(w string) bool {
							return j.oracle.near(j.sketches[id], j.sketches[w]) && slices.Index(raw, w) < slices.Index(raw, id)
						})
						if first >= 0 && want[first] == h.ID && !slices.Contains(want, id) {
							expected = append(expected, id)
						}
					}
					if diff := cmp.Diff(expected, folded); diff != "" {
						t.Errorf("%s: folded are %s", h.ID, diff)
					}
				}
				after = fmt.Sprintf(`,"search_after":[%q]`, seen[len(seen)-1])
			}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCursorExports reads an index by its own order, whole and in slices.
func TestCursorExports(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			o := newOrchard(t, kind, "exports", 47, 400, 0.6, 2)
			e, base, j := o.e, o.base, o.judge
			order := map[string]string{engines.Elasticsearch: `["_shard_doc"]`, engines.OpenSearch: `["id"]`}[kind]
			for _, slice := range []string{"", `,"slice":{"id":0,"max":2}`, `,"slice":{"id":1,"max":2}`} {
				w := walk{e: e, bases: always(e.URL), index: "exports-1", query: `{"match_all":{}}`, sort: order, size: 30, pit: true, more: slice}
				raw := w.run(t).ids
				w.bases = always(base)
				plain := w.run(t)
				if slice != "" || kind == engines.Elasticsearch {
					if diff := cmp.Diff(raw, plain.ids); diff != "" || !strings.HasPrefix(plain.headers[0], "bypassed; reason=export") {
						t.Errorf("%s: %q: %s", slice, plain.headers[0], diff)
					}
				}
				w.url = "neardup=on"
				got := w.run(t)
				if diff := cmp.Diff(j.collapsed(raw), got.ids); diff != "" || len(raw) == len(got.ids) {
					t.Errorf("collapsed%s: %q: %s", slice, got.headers[:2], diff)
				}
				got.full(t, 30)
			}
			for _, slice := range []string{`,"slice":{"id":0,"max":2}`, `,"slice":{"id":1,"max":2}`} {
				raw, _ := scroll{e: e, bases: always(e.URL), index: "exports-1", body: `"size":20,"_source":false` + slice}.run(t)
				got, _ := scroll{e: e, bases: always(base), index: "exports-1", body: `"size":20,"_source":false` + slice, url: "&neardup=on"}.run(t)
				if diff := cmp.Diff(j.collapsed(raw.ids), got.ids); diff != "" || len(raw.ids) == len(got.ids) {
					t.Errorf("scrolled%s: %s", slice, diff)
				}
			}
		})
	}
}

// TestCursorScrollLost sends the pages of a collapsed scroll to several sidecars and to one that remembers nothing: nothing is
// missing, and what was folded within the page alone is said to be so.
func TestCursorScrollLost(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct := api{e, e.URL}
			r := rand.New(rand.NewPCG(53, 1))
			list := leaves(r, 300, 0.6)
			rule := walkRule{match: "scrolllost-*", window: 1000}
			one, other := serveFile(t, walking(t, e, rule)), serveFile(t, walking(t, e, rule))
			rule.limits = "{cursor_memory: 1000}"
			tiny := serveFile(t, walking(t, e, rule))
			plant(t, direct, one, "scrolllost-1", 2, list)
			j := newJudge(t, direct, list, 1000)
			for name, bases := range map[string]func() string{"several": func() string { return []string{one, other}[r.IntN(2)] }, "tiny": always(tiny)} {
				for _, head := range [][]string{{"Neardup-Control", "on; keep=1"}} {
					got, _ := scroll{e: e, bases: bases, index: "scrolllost-1", body: `"size":25,"sort":["id"],"_source":["id"]`, head: head}.run(t)
					for _, l := range list {
						if !j.represented(l.ID, got.ids) {
							t.Errorf("%s: %s is neither shown nor near to what is", name, l.ID)
						}
					}
					if got.lost() == 0 || !slices.IsSorted(got.ids) || len(got.ids) == len(list) {
						t.Errorf("%s: %d hits, headers %q", name, len(got.ids), got.headers)
					}
					for i, n := 0, 0; n < len(got.pages); n++ {
						if at := again(j, got.ids[i:i+got.pages[n]]); at > 0 {
							t.Errorf("%s: page %d shows %d again within itself", name, n, at)
						}
						i += got.pages[n]
					}
				}
			}
		})
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestCursorDeepPages asks for the last pages that the engine's limit on from and size allows. They lack nothing, though they
// take ranks beyond it, and show nothing of how they were read.
func TestCursorDeepPages(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct, c := api{e, e.URL}, &contract{t: t, e: e}
			list := leaves(rand.New(rand.NewPCG(31, 2)), 10_900, 0.35)
			for i := range list {
				list[i].Bare = i%10 != 0
			}
			base := serveFile(t, walking(t, e, walkRule{match: "deep-*", window: 600}))
			plant(t, direct, base, "deep-1", 3, list)
			call(t, e, "PUT", e.URL+"/deep-1/_settings", `{"index.max_result_window":20000}`).want(t, 200)
			j := newJudge(t, direct, list, 600)
			window := func(n int) {
				call(t, e, "PUT", e.URL+"/deep-1/_settings", fmt.Sprintf(`{"index.max_result_window":%d}`, n)).want(t, 200)
			}
			for _, search := range []string{
				`"query":{"match_all":{}},"sort":[{"place":"asc"},{"day":"desc"}],"track_total_hits":true`,
				`"query":{"match_all":{}},"sort":["id"],"_source":["id"],"aggs":{"n":{"max":{"field":"place"}}}`,
			} {
				window(20_000)
				whole := call(t, e, "POST", e.URL+"/deep-1/_search", `{"size":11000,`+search+`}`).want(t, 200).body
				window(10_000)
				hits, raw := map[string]string{}, []string{}
				var list []json.RawMessage
				decode(t, rawHits(c, whole), &list)
				for _, hit := range list {
					var h struct {
						ID string `json:"_id"`
					}
					decode(t, hit, &h)
					hits[h.ID], raw = string(oursAnywhere.ReplaceAll(hit, nil)), append(raw, h.ID)
				}
				want := j.collapsed(raw)
				if len(want) == len(raw) {
					t.Fatal("nothing folds")
				}
				for _, at := range [][2]int{{9990, 10}, {9000, 1000}, {0, 10}} {
					body := fmt.Sprintf(`{"from":%d,"size":%d,%s}`, at[0], at[1], search)
					plain := call(t, e, "POST", e.URL+"/deep-1/_search", body).want(t, 200)
					got := call(t, e, "POST", base+"/deep-1/_search", body).want(t, 200)
					var shown []string
					for _, id := range want[min(at[0], len(want)):min(at[0]+at[1], len(want))] {
						shown = append(shown, hits[id])
					}
					if page, own := framed(c, string(untimed(plain.body)), shown), string(untimed(got.body)); page != own {
						t.Errorf("%v %s: the definition (-), the page (+):\n%s", at, search, difference(c, page, own))
					}
					outcome := got.header.Get("Neardup")
					if strings.Contains(outcome, "engine_limit") || !strings.HasPrefix(outcome, "collapsed") {
						t.Errorf("%v %s: outcome %q", at, search, outcome)
					}
				}
			}
			for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if openContexts(t, e, "deep-1") == 0 { // they are closed behind the answer
					return
				}
			}
			t.Errorf("%d searches are left open", openContexts(t, e, "deep-1"))
		})
	}
}

// openContexts returns how many searches the engine keeps open on an index.
func openContexts(t *testing.T, e *engines.Engine, index string) int {
	t.Helper()
	var stats struct {
		All struct {
			Total struct {
				Search struct {
					Open int `json:"open_contexts"`
					PIT  int `json:"point_in_time_current"`
				}
			}
		} `json:"_all"`
	}
	check(t, json.Unmarshal(call(t, e, "GET", e.URL+"/"+index+"/_stats/search", "").want(t, 200).body, &stats))
	return stats.All.Total.Search.Open + stats.All.Total.Search.PIT
}

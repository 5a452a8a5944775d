package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// sorts of a walk. All but the last lead to each document by itself.
var sorts = []string{
	`["id"]`, `[{"place":"desc"},{"id":"asc"}]`, `[{"day":{"order":"desc"}},{"id":{"order":"desc"}}]`, `[{"word":"asc"},"id"]`,
	`[{"share":"asc"},"id"]`, `["_score",{"id":"asc"}]`, `[{"word":{"order":"desc","missing":"_first"}},{"place":"asc"},"id"]`,
}

// TestCursorWalks walks lists by search_after, page sizes and windows at random, and holds them against the definition over the
// list that the engine itself gives. The long form has every sort under every window.
func TestCursorWalks(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		direct := api{e, e.URL}
		r := rand.New(rand.NewPCG(7, uint64(len(e.Kind))))
		pages, once := 0, 0
		for round, window := range []int{10, 60, 1000, 10_000} {
			if round > 2 && !soaking() {
				break
			}
			match := fmt.Sprintf("walk%d-*", round)
			index := fmt.Sprintf("walk%d-1", round)
			n := scale([]int{100, 200, 300, 0}[round], []int{120, 300, 500, 1500}[round])
			list := leaves(r, n, 0.4)
			keep := 1 + round%2
			base := serve(t, e, setup{match: match, window: window, limits: "{max_window: 10000}", rule: fmt.Sprintf("keep: %d", keep)})
			plant(t, direct, base, index, 1+round%3, list)
			j := newJudge(t, direct, list, window)
			j.keep = keep
			for i, sort := range sorts {
				if n > 1000 && i != round || !soaking() && i%3 != round {
					continue
				}
				query := `{"match_all":{}}`
				if strings.Contains(sort, "_score") {
					query = fmt.Sprintf(`{"match":{"body":%q}}`, list[3].Body)
				}
				raw := walk{e: e, bases: always(e.URL), index: index, query: query, sort: sort, size: 2000}.run(t)
				want := j.collapsed(raw.ids)
				for _, size := range []int{1 + r.IntN(5), 10, 1 + r.IntN(250)} {
					if size < 7 && n > 200 {
						size = 7
					}
					w := walk{e: e, bases: always(base), index: index, query: query, sort: sort, size: size, pit: r.IntN(2) == 0}
					got := w.run(t)
					same(t, want, got.ids, "window %d, keep %d, sort %s, size %d, pit %v, headers %v", window, keep, sort, size, w.pit, got.headers[:min(3, len(got.headers))])
					got.full(t, size)
					for _, h := range got.headers {
						if pages++; strings.Contains(h, "; rounds=1; ") {
							once++
						}
					}
					if got.lost() > 0 {
						t.Errorf("sort %s, size %d: %d pages lost their cursor", sort, size, got.lost())
					}
				}
			}
		}
		if once*10 < pages*9 {
			t.Errorf("only %d pages of %d took one request", once, pages)
		}
		t.Logf("%d pages of %d took one request", once, pages)
	})
}

// TestCursorDeepPages asks for the last pages that the engine's limit on from and size allows. They lack nothing, though they
// take ranks beyond it, and show nothing of how they were read.
func TestCursorDeepPages(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		direct, c := api{e, e.URL}, &contract{t: t, e: e}
		list := leaves(rand.New(rand.NewPCG(31, 2)), 10_900, 0.35)
		for i := range list {
			list[i].Bare = i%10 != 0
		}
		base := serve(t, e, setup{match: "deep-*", window: 600})
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
		if !until(func() bool { return openContexts(t, e, "deep-1") == 0 }) { // they are closed behind the answer
			t.Errorf("%d searches are left open", openContexts(t, e, "deep-1"))
		}
		deepest := `{"from":9990,"size":10,"query":{"match_all":{}},"sort":["id"]}`
		breakOffWhileOpening(t, e, "deep-1", deepest)
		if e.Kind == engines.OpenSearch {
			searchNearTheLimit(t, e, base, "deep-1", deepest)
		}
	})
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
	decode(t, call(t, e, "GET", e.URL+"/"+index+"/_stats/search", "").want(t, 200).body, &stats)
	return stats.All.Total.Search.Open + stats.All.Total.Search.PIT
}

// walkScroll scrolls an index to its end. The form says how the id is sent: in the body, the path or the query.
func walkScroll(t *testing.T, e *engines.Engine, base, index, body, params string, form int) (out walked) {
	t.Helper()
	r := call(t, e, "POST", base+"/"+index+"/_search?scroll=2m"+params, "{"+body+"}").want(t, 200)
	for range 3000 {
		var reply struct {
			ID   string `json:"_scroll_id"`
			Hits struct {
				Hits []struct {
					ID string `json:"_id"`
				}
			}
		}
		decode(t, r.body, &reply)
		if base != e.URL && bytes.Contains(r.body, []byte("neardup_")) {
			t.Fatalf("something of ours is shown: %.600s", r.body)
		}
		out.headers = append(out.headers, r.header.Get("Neardup"))
		if len(reply.Hits.Hits) == 0 {
			call(t, e, "DELETE", base+"/_search/scroll", fmt.Sprintf(`{"scroll_id":[%q]}`, reply.ID)).want(t, 200)
			return out
		}
		for _, h := range reply.Hits.Hits {
			out.ids = append(out.ids, h.ID)
		}
		switch form {
		case 0:
			r = call(t, e, "POST", base+"/_search/scroll", fmt.Sprintf(`{"scroll_id":%q,"scroll":"2m"}`, reply.ID))
		case 1:
			r = call(t, e, "GET", base+"/_search/scroll/"+url.PathEscape(reply.ID)+"?scroll=2m", "", "Content-Type", "")
		default:
			params := "scroll=2m&rest_total_hits_as_int=true&scroll_id=" + url.QueryEscape(reply.ID)
			r = call(t, e, "POST", base+"/_search/scroll?"+params, "", "Content-Type", "")
		}
		r.want(t, 200)
	}
	t.Fatal("the scroll does not end")
	return out
}

// TestExportsAreTheEngines scrolls an index, and reads it in index order: each hit comes as from the engine, less our fields, even where
// near-duplicates are to be collapsed; and no scroll stays open but the client's own.
func TestExportsAreTheEngines(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		direct := api{e, e.URL}
		list := leaves(rand.New(rand.NewPCG(11, 3)), scale(180, 500), 0.6)
		through := serve(t, e, setup{match: "export-*"})
		plant(t, direct, through, "export-1", 3, list)
		for form, body := range []string{
			`"size":100,"sort":["_doc"],"track_total_hits":true`, `"size":20,"sort":["id"],"_source":false`,
			`"size":33,"sort":["id"],"_source":["id"],"post_filter":{"range":{"place":{"gt":10}}}`,
		} {
			raw := walkScroll(t, e, e.URL, "export-1", body, "", form).ids
			for _, params := range []string{"", "&neardup=on"} {
				got := walkScroll(t, e, through, "export-1", body, params, form)
				same(t, raw, got.ids, "%s%s", body, params)
				for _, header := range got.headers {
					same(t, "bypassed; reason=export", header, "%s%s", body, params)
				}
			}
		}
		for _, body := range []string{`{"sort":["_doc"],"size":50}`, `{"sort":[{"_doc":"desc"}],"search_after":[20]}`} {
			raw, _ := idsOf(t, call(t, e, "POST", e.URL+"/export-1/_search?preference=x", body).want(t, 200))
			r := call(t, e, "POST", through+"/export-1/_search?preference=x&neardup=on", body).want(t, 200)
			got, _ := idsOf(t, r)
			if diff := cmp.Diff(raw, got); diff != "" || r.header.Get("Neardup") != "bypassed; reason=export" || bytes.Contains(r.body, []byte("neardup_")) {
				t.Errorf("%s: %s: %s", body, r.header.Get("Neardup"), diff)
			}
		}
		var stats struct {
			All struct {
				Total struct {
					Search struct {
						Current int `json:"scroll_current"`
						Total   int `json:"scroll_total"`
					}
				}
			} `json:"_all"`
		}
		decode(t, call(t, e, "GET", e.URL+"/export-1/_stats/search", "").want(t, 200).body, &stats)
		if s := stats.All.Total.Search; s.Current != 0 || s.Total == 0 {
			t.Errorf("%d of %d scrolls are open", s.Current, s.Total)
		}
	})
}

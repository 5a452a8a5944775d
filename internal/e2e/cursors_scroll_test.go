package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

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
	for _, kind := range elasticKinds {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct := api{e, e.URL}
			list := leaves(rand.New(rand.NewPCG(11, 3)), scale(180, 500), 0.6)
			through := serveFile(t, walking(t, e, walkRule{match: "export-*", window: 1000}))
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
						if header != "bypassed; reason=export" {
							t.Errorf("%s%s: %s", body, params, header)
						}
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
}

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
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

// TestCursorScrolls scrolls an index: as it is by default, collapsed where the rule or the request asks for that.
func TestCursorScrolls(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	direct := api{e, e.URL}
	list := leaves(rand.New(rand.NewPCG(11, 3)), scale(180, 500), 0.6)
	asked := serveFile(t, walking(t, e, walkRule{match: "scroll-*", window: 1000}))
	ruled := serveFile(t, walking(t, e, walkRule{match: "scroll-*", window: 100, more: "collapse_exports: true"}))
	plant(t, direct, asked, "scroll-1", 3, list)
	for form, body := range []string{
		`"size":100,"sort":["_doc"],"track_total_hits":true`, `"size":20,"sort":["id"],"_source":false`,
		`"size":33,"sort":["id"],"_source":["id"],"post_filter":{"range":{"place":{"gt":10}}}`,
	} {
		raw := walkScroll(t, e, e.URL, "scroll-1", body, "", form).ids
		plain := walkScroll(t, e, asked, "scroll-1", body, "", form)
		if diff := cmp.Diff(raw, plain.ids); diff != "" || !strings.HasPrefix(plain.headers[0], "bypassed; reason=export") {
			t.Errorf("%s by default: %q: %s", body, plain.headers, diff)
		}
		for _, c := range []struct {
			base, params string
			window       int
		}{{asked, "&neardup=on", 1000}, {ruled, "", 100}} {
			got := walkScroll(t, e, c.base, "scroll-1", body, c.params, form)
			diff := cmp.Diff(newJudge(t, direct, list, c.window).collapsed(raw), got.ids)
			if diff != "" || got.lost() > 0 || !strings.HasPrefix(got.headers[0], "collapsed; ") {
				t.Errorf("%s%s, collapsed: headers %q: %s", body, c.params, got.headers, diff)
			}
		}
	}
}

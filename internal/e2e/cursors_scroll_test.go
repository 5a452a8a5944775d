package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// scroll is how an index is scrolled.
type scroll struct {
	e     *engines.Engine
	bases func() string
	index string
	body  string // members of the first page's body, without braces
	url   string // further parameters of the first page
	form  int    // how the id is sent: in the body, the path, the query
	each  func(page int)
	head  []string // headers of every request
}

// run scrolls to the end. Every page but the last holds something.
func (s scroll) run(t *testing.T) (out walked, replies [][]byte) {
	t.Helper()
	r := call(t, s.e, "POST", s.bases()+"/"+s.index+"/_search?scroll=2m"+s.url, "{"+s.body+"}", s.head...).want(t, 200)
	for page := range 3000 {
		var reply struct {
			ID   string `json:"_scroll_id"`
			Hits struct {
				Hits []struct {
					ID string `json:"_id"`
				}
			}
		}
		if err := json.Unmarshal(r.body, &reply); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(r.body, []byte("neardup_")) {
			t.Fatalf("something of ours is shown: %.600s", r.body)
		}
		out.headers, replies = append(out.headers, r.header.Get("Neardup")), append(replies, r.body)
		if len(reply.Hits.Hits) == 0 {
			call(t, s.e, "DELETE", s.bases()+"/_search/scroll", fmt.Sprintf(`{"scroll_id":[%q]}`, reply.ID)).want(t, 200)
			return out, replies
		}
		for _, h := range reply.Hits.Hits {
			out.ids = append(out.ids, h.ID)
		}
		out.pages = append(out.pages, len(reply.Hits.Hits))
		if s.each != nil {
			s.each(page)
		}
		switch s.form {
		case 0:
			r = call(t, s.e, "POST", s.bases()+"/_search/scroll", fmt.Sprintf(`{"scroll_id":%q,"scroll":"2m"}`, reply.ID), s.head...)
		case 1:
			r = call(t, s.e, "GET", s.bases()+"/_search/scroll/"+url.PathEscape(reply.ID)+"?scroll=2m", "", append([]string{"Content-Type", ""}, s.head...)...)
		default:
			r = call(t, s.e, "POST", s.bases()+"/_search/scroll?scroll=2m&rest_total_hits_as_int=true&scroll_id="+url.QueryEscape(reply.ID), "", append([]string{"Content-Type", ""}, s.head...)...)
		}
		r.want(t, 200)
	}
	t.Fatal("the scroll does not end")
	return out, nil
}

// TestCursorScrolls scrolls an index: as it stands by default, collapsed where that is asked for by the rule or by the request.
func TestCursorScrolls(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct := api{e, e.URL}
			r := rand.New(rand.NewPCG(11, 3))
			list := leaves(r, brief(180, 500), 0.6)
			asked := serveFile(t, walking(t, e, walkRule{match: "scroll-*", window: 1000}))
			ruled := serveFile(t, walking(t, e, walkRule{match: "scroll-*", window: 100, more: "collapse_exports: true"}))
			plant(t, direct, asked, "scroll-1", 3, list)
			for form, body := range []string{
				`"size":7`, `"size":100,"sort":["_doc"],"track_total_hits":true`, `"size":1,"sort":["id"],"_source":false`, `"size":33,"sort":["id"],"_source":["id"],"post_filter":{"range":{"place":{"gt":10}}}`,
				`"size":50,"sort":["_doc"],"query":{"bool":{"should":[{"match_all":{"_name":"mine"}}]}},"docvalue_fields":["place"]`,
			} {
				t.Run(fmt.Sprint(form), func(t *testing.T) {
					raw, _ := scroll{e: e, bases: always(e.URL), index: "scroll-1", body: body + `,"_source":{"excludes":["neardup_sketch"]}`, form: form}.run2(t, body)
					plain, _ := scroll{e: e, bases: always(asked), index: "scroll-1", body: body, form: form}.run(t)
					if diff := cmp.Diff(raw, plain.ids); diff != "" {
						t.Errorf("by default: %s", diff)
					}
					for _, h := range plain.headers {
						if !strings.HasPrefix(h, "bypassed; reason=export") {
							t.Errorf("by default: %q", h)
						}
					}
					for _, c := range []struct {
						name, base, url string
						window          int
					}{{"asked", asked, "&neardup=on", 1000}, {"ruled", ruled, "", 100}, {"ruled", ruled, "&neardup_window=50", 50}} {
						j := newJudge(t, direct, list, c.window)
						got, _ := scroll{e: e, bases: always(c.base), index: "scroll-1", body: body, url: c.url, form: form}.run(t)
						if diff := cmp.Diff(j.collapsed(raw), got.ids); diff != "" {
							t.Errorf("%s: headers %q: %s", c.name+c.url, got.headers[:2], diff)
						}
						if len(got.ids) == len(raw) || got.lost() > 0 || !strings.HasPrefix(got.headers[0], "collapsed; ") {
							t.Errorf("%s: %d hits of %d, headers %q", c.name+c.url, len(got.ids), len(raw), got.headers)
						}
					}
					off, _ := scroll{e: e, bases: always(ruled), index: "scroll-1", body: body, url: "&neardup=off", form: form}.run(t)
					if diff := cmp.Diff(raw, off.ids); diff != "" {
						t.Errorf("off: %s", diff)
					}
				})
			}
		})
	}
}

// run2 scrolls past the sidecar, where our field is not hidden.
func (s scroll) run2(t *testing.T, body string) (ids []string, replies [][]byte) {
	t.Helper()
	if strings.Contains(body, `"_source"`) {
		s.body = body
	}
	out, replies := s.run(t)
	return out.ids, replies
}

// TestCursorScrollKeepsBytes compares the pages of a scroll that is not collapsed, and of one in which nothing folds, with the
// engine's own, byte for byte but for ids and times, plain and compressed.
func TestCursorScrollKeepsBytes(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct := api{e, e.URL}
			list := leaves(rand.New(rand.NewPCG(5, 5)), 60, 0)
			base := serveFile(t, walking(t, e, walkRule{match: "scrollown-*", window: 1000, more: "collapse_exports: true"}))
			direct.drop(t, "scrollown-1")
			direct.create(t, "scrollown-1")
			for i := range list {
				list[i].Bare = true
			}
			plant(t, direct, base, "scrollown-2", 1, list)
			for _, body := range []string{
				`"size":25,"sort":["id"]`, `"size":25,"query":{"match_all":{"_name":"mine"}},"sort":["id"],"version":true`,
				`"size":25,"sort":["id"],"fields":["id"],"docvalue_fields":["place"],"explain":true`, `"size":25,"sort":["id"],"_source":["id"]`,
				`"size":25,"sort":["id"],"aggs":{"best":{"top_hits":{"size":2,"_source":["id"],"sort":["id"]}}}`,
			} {
				for _, query := range []string{"", "&pretty", "&neardup=off", "&rest_total_hits_as_int=true"} {
					for _, coding := range []string{"identity", "gzip"} {
						head := []string{"Accept-Encoding", coding}
						plain := strings.TrimPrefix(query, "&neardup=off")
						if len(plain) == len(query) {
							plain = query
						}
						want := scrollPages(t, e, e.URL, "scrollown-2", body, plain, head)
						got := scrollPages(t, e, base, "scrollown-2", body, query, head)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("%s %s %s: %s", body, query, coding, diff)
						}
					}
				}
			}
		})
	}
}

// scrollPages returns the pages of a scroll less what differs from one scroll to the next.
func scrollPages(t *testing.T, e *engines.Engine, base, index, body, query string, head []string) (pages []string) {
	t.Helper()
	r := call(t, e, "POST", base+"/"+index+"/_search?scroll=1m"+query, "{"+body+"}", head...).want(t, 200)
	for range 4 {
		text := r.body
		if r.header.Get("Content-Encoding") == "gzip" {
			text = gunzip(t, text)
		}
		var reply struct {
			ID string `json:"_scroll_id"`
		}
		if err := json.Unmarshal(text, &reply); err != nil {
			t.Fatalf("%v: %.300s", err, text)
		}
		line := fmt.Sprintf("%d %s %s\n", r.status, r.header.Get("Content-Type"), r.header.Get("Content-Encoding"))
		pages = append(pages, line+took.ReplaceAllString(strings.ReplaceAll(strings.ReplaceAll(string(text), `"took" : `, `"took":`), reply.ID, "ID"), "${1}0"))
		rest := ""
		if strings.Contains(query, "rest_total") || strings.Contains(query, "pretty") {
			rest = "?" + strings.TrimPrefix(query, "&")
		}
		r = call(t, e, "POST", base+"/_search/scroll"+rest, fmt.Sprintf(`{"scroll_id":%q,"scroll":"1m"}`, reply.ID), head...).want(t, 200)
	}
	if strings.Contains(strings.Join(pages, ""), "neardup_") {
		t.Errorf("something of ours is shown: %s", pages)
	}
	return pages
}

// TestCursorScrollErrors asks for pages of scrolls that are not there.
func TestCursorScrollErrors(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			base := serveFile(t, walking(t, e, walkRule{match: "scrollerr-*", window: 1000}))
			for _, c := range []struct{ method, path, body string }{
				{"POST", "/_search/scroll", `{"scroll_id":"bm90aGluZw==","scroll":"1m"}`}, {"GET", "/_search/scroll?scroll_id=abc", ""}, {"POST", "/_search/scroll", `{"scroll":1}`},
				{"POST", "/_search/scroll", `{"a`}, {"POST", "/_search/scroll", ""}, {"GET", "/_search/scroll/abc", ""},
			} {
				want := call(t, e, c.method, e.URL+c.path, c.body)
				got := call(t, e, c.method, base+c.path, c.body)
				if want.status != got.status || !bytes.Equal(want.body, got.body) {
					t.Errorf("%s %s %s: %d %s\nnot %d %s", c.method, c.path, c.body, got.status, got.body, want.status, want.body)
				}
				if got.status == http.StatusOK {
					t.Errorf("%s is granted", c.path)
				}
			}
		})
	}
}

package e2e

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestRepliesAreCodedAlike asks for replies in all kinds of content codings, and gets the one that the engine itself chooses: of what passes,
// what is read, written, collapsed and left alone.
func TestRepliesAreCodedAlike(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index = "coded-1"
		direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "coded-*"})}
		through.create(t, index)
		through.load(t, index, documents(t)[:40])
		id := documents(t)[0].ID
		cases := []struct{ method, path, body, reason string }{
			{"GET", "/_nodes", "", ""},
			{"GET", "/" + index + "/_doc/" + id, "", ""},
			{"GET", "/" + index + "/_mapping", "", ""},
			{"POST", "/" + index + "/_search?sort=id:asc", `{}`, "collapsed"},
			{"POST", "/" + index + "/_search?sort=id:asc", `{"size":20,"from":5}`, "collapsed"},
			{"POST", "/" + index + "/_search?sort=id:asc&filter_path=hits.hits", `{}`, "collapsed"},
			{"POST", "/" + index + "/_search?neardup=off&sort=id:asc", `{}`, "bypassed; reason=off"},
			{"POST", "/" + index + "/_msearch", "{}\n{\"sort\":[\"id\"]}\n", "collapsed"},
			{"POST", "/" + index + "/_search", `{"query":{"nope":{}}}`, "bypassed; reason=engine_status"},
			{"POST", "/_bulk", `{"index":{"_index":"` + index + `","_id":"new"}}` + "\n{}\n", ""},
		}
		if direct.typesense() {
			search := "/collections/" + index + "/documents/search?q=*&query_by=title"
			cases = []struct{ method, path, body, reason string }{
				{"GET", "/operations/schema_changes", "", ""},
				{"GET", "/collections/" + index + "/documents/" + id, "", ""},
				{"GET", "/collections/" + index, "", ""},
				{"GET", search, "", "collapsed"},
				{"GET", search + "&neardup=off", "", "bypassed; reason=off"},
				{"POST", "/multi_search", `{"searches":[{"collection":"` + index + `","q":"*","query_by":"title"}]}`, "collapsed"},
			}
		}
		for _, accepted := range []string{
			"", "gzip", "GZIP", "x-gzip", "Gzip, deflate", "deflate", "DEFLATE", "deflate, gzip", "gzip;q=0.5, deflate;q=0.6", "gzip;q=0",
			"*", "*;q=0.5", "gzip;q=0, *", "snappy", "snappy, gzip", "snappy;q=0,*", "identity, *;q=0", "identity", "br", "br, gzip", "gzip, br, zstd",
			"gzip; q=x", "nogzip", "gzip,,",
		} {
			for _, c := range cases {
				path := strings.Replace(c.path, "neardup=off&", "", 1)
				want := call(t, e, c.method, direct.base+strings.TrimSuffix(path, "&neardup=off"), c.body, "Accept-Encoding", accepted)
				got := call(t, e, c.method, through.base+c.path, c.body, "Accept-Encoding", accepted)
				if got, want := got.header["Content-Encoding"], want.header["Content-Encoding"]; strings.Join(got, ",") != strings.Join(want, ",") {
					t.Errorf("%s %s accepting %q: Content-Encoding is %q, the engine's %q", c.method, c.path, accepted, got, want)
				}
				if reason := got.header.Get(adapters.OutcomeHeader); !strings.HasPrefix(reason, c.reason) || (reason == "") != (c.reason == "") {
					t.Errorf("%s %s accepting %q: %s", c.method, c.path, accepted, reason)
				}
				if plain := decoded(t, got); plain[0] != '{' && plain[0] != '[' || strings.Contains(string(plain), adapters.SketchField) {
					t.Errorf("%s %s accepting %q: %.300s", c.method, c.path, accepted, plain)
				}
			}
		}
	})
}

package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestAcceptOfSearches has searches without a body say what they accept in every way that clients do: what the engine answers with JSON
// comes collapsed, in one request and in the type that the engine answers.
func TestAcceptOfSearches(t *testing.T) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} { // which take other types
		e := engines.Shared(t, kind)
		const index = "accept-1"
		direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "accept-*"})}
		through.create(t, index, documents(t)[:60]...)
		collapsed := 0
		major := map[string]string{engines.Elasticsearch: "9", engines.Elasticsearch8: "8"}[e.Name]
		vendor := "application/vnd.elasticsearch+json; compatible-with=" + major
		for _, accept := range []string{
			"", "*/*", "application/json; charset=UTF-8", "Application/JSON", "text/html, */*", vendor,
			vendor + ",text/plain", // the JavaScript client's
			"text/plain", "application/vnd.opensearch+json", "application/yaml", "application/cbor", "application/yaml, application/json", "nonsense",
		} {
			// The JavaScript client of Elasticsearch 9 says of what type the body is where it sends none.
			for _, sent := range []string{"application/json", vendor, "application/vnd.elasticsearch+json"} {
				path, header := "/_search?q=body:ferry&neardup_window=50&size=40", []string{"Accept", accept, "Content-Type", sent}
				got := call(t, e, "GET", through.base+"/"+index+path, "", header...)
				want := call(t, e, "GET", direct.base+"/"+index+strings.ReplaceAll(path, "neardup_window=50&", ""), "", header...)
				kind := want.header.Get("Content-Type")
				if got.status != want.status || got.header.Get("Content-Type") != kind {
					t.Errorf("%s, sent %q, accepting %q: %d %s, directly %d %s", path, sent, accept, got.status, got.header.Get("Content-Type"), want.status, kind)
				}
				outcome := got.header.Get("Neardup")
				if want.status == 200 && strings.Contains(kind, "json") {
					if collapsed++; !strings.HasPrefix(outcome, "collapsed; raw=") {
						t.Errorf("%s, sent %q, accepting %q, is answered as %s: %s", path, sent, accept, kind, outcome)
					}
				}
			}
		}
		if collapsed < 15 {
			t.Errorf("%s answered %d with JSON", kind, collapsed)
		}
	}
}

// TestRepliesAreCodedAlike asks for replies in all kinds of content codings, and gets the one that the engine itself chooses: of what passes,
// what is read, written, collapsed and left alone.
func TestRepliesAreCodedAlike(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index = "coded-1"
		direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "coded-*"})}
		through.create(t, index, documents(t)[:40]...)
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
				for _, name := range []string{"Content-Encoding", "Vary"} {
					if got, want := got.header[name], want.header[name]; strings.Join(got, ",") != strings.Join(want, ",") && accepted != "br" { // which we take out
						t.Errorf("%s %s accepting %q: %s is %q, the engine's %q", c.method, c.path, accepted, name, got, want)
					}
				}
				if reason := got.header.Get(adapters.OutcomeHeader); !strings.HasPrefix(reason, c.reason) || (reason == "") != (c.reason == "") {
					t.Errorf("%s %s accepting %q: %s", c.method, c.path, accepted, reason)
				}
				if plain := decoded(t, got); plain[0] != '{' && plain[0] != '[' || strings.Contains(string(plain), rule.SketchField) {
					t.Errorf("%s %s accepting %q: %.300s", c.method, c.path, accepted, plain)
				}
			}
		}
	})
}

// TestTypedPaths speaks version 7 of the API, in which a type stands behind the index. Elasticsearch 8 is the last that understands it.
func TestTypedPaths(t *testing.T) {
	e, index := engines.Shared(t, engines.Elasticsearch), "typed-1"
	if e.Name != engines.Elasticsearch8 {
		t.Skip("for NEARDUP_OLDER=1")
	}
	through, direct := api{e, serve(t, e, setup{match: "typed-*"})}, api{e, e.URL}
	through.create(t, index)
	const kind = "application/vnd.elasticsearch+json;compatible-with=7"
	seven := func(base, method, path, body string) reply {
		t.Helper()
		return call(t, e, method, base+"/"+index+path, body, "Content-Type", kind, "Accept", kind)
	}
	seven(through.base, "PUT", "/article/1", someText).want(t, 201)
	seven(through.base, "POST", "/article/2/_create", someText).want(t, 201)
	seven(through.base, "PUT", "/article/3", someText).want(t, 201)
	seven(through.base, "POST", "/article/_bulk?refresh=true", fmt.Sprintf("{\"index\":{\"_id\":\"4\"}}\n%s\n", someText)).want(t, 200)
	seven(through.base, "POST", "/article/3/_update?refresh=true", `{"doc":{"title":"another one"}}`).want(t, 200)
	for id, want := range map[string]bool{"1": true, "2": true, "3": false, "4": true} {
		same(t, want, rule.HasSketch(direct.get(t, index, id)), "that document %s has a sketch", id)
	}
	for _, path := range []string{"/article/1", "/_doc/1", "/article/1/_source", "/_doc/1/_source", "/article/_mapping", "/_mapping/article?include_type_name=true", "/article/_search", "/_mapping"} {
		own, ours := seven(e.URL, "GET", path, ""), seven(through.base, "GET", path, "")
		if own.status != ours.status || own.header.Get("Content-Type") != ours.header.Get("Content-Type") {
			t.Errorf("%s: %d %s, directly %d %s", path, ours.status, ours.header.Get("Content-Type"), own.status, own.header.Get("Content-Type"))
		}
		if strings.Contains(string(ours.body), "neardup_sketch") {
			t.Errorf("%s shows our field: %s", path, ours.body)
		}
	}
	if outcome := seven(through.base, "GET", "/article/_search", "").want(t, 200).header.Get("Neardup"); !strings.HasPrefix(outcome, "collapsed; raw=4; folded=2;") { // document 3 has other words in its title, and the texts are short
		t.Error(outcome)
	}
}

// TestSniffingRewritesAddressesAlone compares what the engine says of its nodes with what comes through the sidecar, byte by byte.
func TestSniffingRewritesAddressesAlone(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		plain := serve(t, e, setup{match: "sniff-*"})
		rewriting := serve(t, e, setup{match: "sniff-*", engine: "rewrite_sniffing: true"})
		advertising := serve(t, e, setup{match: "sniff-*", engine: "rewrite_sniffing: true\nadvertise: search.example:443"})
		for _, path := range []string{
			"/_nodes/http", "/_nodes/_all/http", "/_nodes/_local/http?pretty", "/_nodes", "/_nodes/*/http,settings",
			"/_nodes/http?filter_path=nodes.*.http", "/_nodes/nobody/http", "/_nodes/_local/http?format=yaml",
		} {
			for _, encoding := range []string{"", "gzip", "deflate"} {
				direct := call(t, e, "GET", e.URL+path, "", "Accept-Encoding", encoding)
				same := call(t, e, "GET", plain+path, "", "Accept-Encoding", encoding)
				if !bytes.Equal(direct.body, same.body) || !maps.EqualFunc(direct.header, same.header, slices.Equal) {
					t.Errorf("%s in %q differs by default: %v %s", path, encoding, same.header, same.body)
				}
				for us, told := range map[string]string{rewriting: strings.TrimPrefix(rewriting, "http://"), advertising: "search.example:443"} {
					through := call(t, e, "GET", us+path, "", "Accept-Encoding", encoding)
					want := string(decoded(t, direct))
					if !strings.Contains(path, "yaml") {
						want = strings.ReplaceAll(want, `"`+strings.TrimPrefix(e.URL, "http://")+`"`, `"`+told+`"`)
					}
					if diff := cmp.Diff(want, string(decoded(t, through))); diff != "" || through.status != direct.status {
						t.Errorf("%s in %q to %s: %s", path, encoding, told, diff)
					}
					for _, header := range []string{"X-Elastic-Product", "Content-Type"} {
						expect.Same(t, direct.header.Get(header), through.header.Get(header), "%s: %s", path, header)
					}
				}
			}
		}
	})
}

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestBodiesThatNameOtherIndices asks an index that no rule matches, by its path, for documents of one that a rule does match.
func TestBodiesThatNameOtherIndices(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	index, other := "named-1", "other-named-1"
	through := api{e, serve(t, e, setup{match: "named-*"})}
	through.create(t, index)
	through.create(t, other)
	through.loadLines(t, index, fmt.Sprintf("{\"index\":{\"_index\":%q,\"_id\":\"1\"}}\n%s\n{\"index\":{\"_index\":%q,\"_id\":\"2\"}}\n%s\n", index, strings.Replace(someText, `{`, `{"n":51/* a, b */,`, 1), index, someText))
	call(t, e, "POST", e.URL+"/_aliases", fmt.Sprintf(`{"actions":[{"add":{"index":%q,"alias":"alias-of-named"}}]}`, index)).want(t, 200)
	for _, c := range [][3]string{
		{"POST", "/_mget", `{"docs":[{"_index":"` + index + `","_id":"1"},{"_index":"` + index + `","_id":"2"}]}`},
		{"POST", "/_msearch", `{"index":"` + index + `"}` + "\n" + `{"collapse":{"field":"id"}}` + "\n"},
		{"POST", "/_msearch", `{"index":"` + index + `"}` + "\n" + `{}` + "\n"},
		{"POST", "/_bulk", `{"update":{"_index":"` + index + `","_id":"2","_source":true}}` + "\n" + `{"doc":{"n":3}}` + "\n"},
		{"POST", "/_mtermvectors", `{"docs":[{"_index":"` + index + `","_id":"1"}]}`},
	} {
		r := call(t, e, c[0], through.base+"/"+other+c[1], c[2]).want(t, 200)
		if strings.Contains(string(r.body), "neardup") {
			t.Errorf("%s %s: %s", c[1], c[2], r.body)
		}
	}
	for _, path := range []string{"/" + index + "/_doc/1", "/alias-of-named/_doc/2", "/alias-of-named/_search", "/alias-of-named/_search?scroll=1m", "/" + index + "/_search?neardup=off"} {
		if r := call(t, e, "GET", through.base+path, "").want(t, 200); strings.Contains(string(r.body), "neardup") {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}

// TestBandsAndClustersAreOurs reads documents that carry all fields of ours, in ways that name none of them and in ways that name one.
func TestBandsAndClustersAreOurs(t *testing.T) {
	const lines = `{"id":"1","title":"a report of some length","body":"the river rose again last night and the ferry stays at its pier"}` + "\n" +
		`{"id":"2","title":"?","body":"!"}` + "\n"
	elastic := map[string]string{ // METHOD path | body, to the field that is named
		"GET /INDEX/_doc/1": "", "GET /INDEX/_doc/2": "", "GET /INDEX/_source/2": "", "GET /INDEX/_mget?_source=n* | {\"ids\":[\"1\",\"2\"]}": "",
		"GET /INDEX/_search?q=river": "", "GET /INDEX/_search?q=river&neardup=off": "", "GET /INDEX/_search?_source=near*": "",
		`POST /INDEX/_search | {"fields":["*"],"docvalue_fields":["n*"],"stored_fields":["*"]}`: "", "GET /INDEX/_mapping": "", "GET /INDEX": "",
		`POST /INDEX/_search?scroll=1m | {"size":1}`: "", `POST /INDEX/_update/2?_source=true | {"doc":{"x":1}}`: "", "GET /INDEX/_field_caps?fields=*": "",
		"GET /INDEX/_doc/1?format=yaml": "", "GET /INDEX/_search?format=yaml": "", "GET /INDEX/_termvectors/1?fields=*": "",
		"GET /INDEX/_mapping/field/*": "", "GET /INDEX/_search?_source=" + adapters.ClusterField: adapters.ClusterField,
		"GET /INDEX/_doc/1?_source=" + adapters.BandsField:                                                                              adapters.BandsField,
		`POST /INDEX/_search | {"_source":false,"fields":["` + adapters.ClusterField + `"]}`:                                            adapters.ClusterField,
		`POST /INDEX/_search?scroll=1m | {"_source":false,"fields":["` + adapters.ClusterField + `"]}`:                                  adapters.ClusterField,
		`POST /INDEX/_search | {"size":0,"aggs":{"` + adapters.ClusterField + `":{"terms":{"field":"` + adapters.ClusterField + `"}}}}`: adapters.ClusterField,
		"GET /INDEX/_mapping/field/" + adapters.BandsField:                                                                              adapters.BandsField,
	}
	const ts = "/collections/INDEX"
	typesense := map[string]string{
		"GET " + ts + "/documents/1": "", "GET " + ts + "/documents/2": "", "GET " + ts + "/documents/export": "", "GET " + ts: "",
		"GET " + ts + "/documents/search?q=river&query_by=body": "", "GET " + ts + "/documents/search?q=*&neardup=off": "",
		`POST ` + ts + `/documents?action=upsert | {"id":"2","title":"?","body":"!"}`: "", `PATCH ` + ts + `/documents/2 | {"x":1}`: "",
		"GET " + ts + "/documents/search?q=river&query_by=body&include_fields=" + adapters.ClusterField: adapters.ClusterField,
		"GET " + ts + "/documents/export?include_fields=" + adapters.BandsField:                         adapters.BandsField,
	}
	for _, kind := range []string{engines.OpenSearch, engines.Typesense} {
		t.Run(kind, func(t *testing.T) {
			e, index := engines.Shared(t, kind), "ours-1"
			through := api{e, serveFile(t, ruleFile(t, e, "ours-*", "bands: auto", "on_duplicate: tag"))}
			through.create(t, index)
			stored, requests := "/"+index+"/_source/1", elastic
			if through.typesense() {
				stored, requests = "/collections/"+index+"/documents/1", typesense
				through.loadLines(t, index, lines)
			} else {
				one, two, _ := strings.Cut(lines, "\n")
				through.loadLines(t, index, fmt.Sprintf("{\"index\":{\"_index\":%q,\"_id\":\"1\"}}\n%s\n{\"index\":{\"_index\":%q,\"_id\":\"2\"}}\n%s", index, one, index, two))
			}
			if o := adapters.OursOf(call(t, e, "GET", e.URL+stored, "").want(t, 200).body); o.Sketch == "" || len(o.Bands) == 0 || o.Cluster == "" {
				t.Fatalf("stored is %+v", o)
			}
			for request, named := range requests {
				method, rest, _ := strings.Cut(strings.ReplaceAll(request, "INDEX", index), " ")
				path, body, _ := strings.Cut(rest, " | ")
				r := call(t, e, method, through.base+path, body)
				text := string(decoded(t, r))
				if r.status > 299 || strings.Contains(text, adapters.FieldPrefix) != (named != "") || !strings.Contains(text, named) {
					t.Errorf("%s: %d %.600s", request, r.status, text)
				}
				if named != "" && named != adapters.SketchField && strings.Contains(text, adapters.SketchField) {
					t.Errorf("%s shows the sketch as well: %.600s", request, text)
				}
			}
		})
	}
}

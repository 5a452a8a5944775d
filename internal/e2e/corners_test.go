package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
)

const someText = `{"title":"a report of some length","body":"the river rose again last night and the ferry stays at its pier until further notice"}`

// TestRolloverIntoAStrictIndex has an alias lead to a new index that knows no field of ours, in between two writes.
func TestRolloverIntoAStrictIndex(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		through, direct := api{e, serve(t, e, setup{match: "roll-*"})}, api{e, e.URL}
		direct.drop(t, "roll-000001")
		direct.drop(t, "roll-000002")
		call(t, e, "PUT", e.URL+"/_index_template/roll", `{"index_patterns":["roll-*"],"template":{"mappings":{"dynamic":"strict","properties":{"title":{"type":"text"},"body":{"type":"text"}}}}}`).want(t, 200)
		defer call(t, e, "DELETE", e.URL+"/_index_template/roll", "")
		call(t, e, "PUT", through.base+"/roll-000001", `{"aliases":{"roll":{"is_write_index":true}}}`).want(t, 200)
		call(t, e, "PUT", through.base+"/roll/_doc/1", someText).want(t, 201)
		call(t, e, "POST", through.base+"/roll/_rollover", "").want(t, 200)
		call(t, e, "PUT", through.base+"/roll/_doc/2", someText).want(t, 201)
		for index, id := range map[string]string{"roll-000001": "1", "roll-000002": "2"} {
			if !rule.HasSketch(direct.get(t, index, id)) {
				t.Errorf("the document in %s has no sketch", index)
			}
		}
	})
}

// TestUnmappedTextIsComputedAlike pages through documents whose text is stored and not mapped.
func TestUnmappedTextIsComputedAlike(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	index := "unmapped-1"
	through, direct := api{e, serve(t, e, setup{match: "unmapped-*"})}, api{e, e.URL}
	direct.drop(t, index)
	call(t, e, "PUT", e.URL+"/"+index, `{"mappings":{"dynamic":false,"properties":{"n":{"type":"integer"}}}}`).want(t, 200)
	var lines strings.Builder
	for i := range 120 {
		fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q}}\n{\"n\":%d,\"title\":\"text number %d\",\"body\":\"%smany other things\"}\n", index, i, i/2, fmt.Sprintf("this%[1]d and%[1]d that%[1]d with%[1]d more%[1]d words%[1]d of%[1]d its%[1]d own%[1]d than%[1]d ", i/2))
	}
	direct.loadLines(t, index, lines.String())
	for _, extra := range []string{"", `,"_source":["n"]`, `,"_source":false,"fields":["n"]`, `,"_source":false,"docvalue_fields":["n"]`} {
		var got []int
		for from := 0; from < 70; from += 10 {
			body := call(t, e, "POST", through.base+"/"+index+"/_search", fmt.Sprintf(`{"sort":"n","from":%d,"size":10%s}`, from, extra)).want(t, 200)
			var result struct {
				Hits struct {
					Hits []struct{ Sort []int }
				}
			}
			decode(t, body.body, &result)
			for _, h := range result.Hits.Hits {
				got = append(got, h.Sort[0])
			}
			if strings.Contains(string(body.body), "many other") != (extra == "" && len(result.Hits.Hits) > 0) {
				t.Errorf("%s: text is shown or hidden wrongly: %.300s", extra, body.body)
			}
		}
		var want []int
		for i := range 60 {
			want = append(want, 2*i)
		}
		same(t, want, got, "%s", extra)
	}
}

// TestSketchStaysHidden asks in ways in which a search is left alone.
func TestSketchStaysHidden(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	index := "hide-1"
	through, direct := api{e, serve(t, e, setup{match: "hide-*"})}, api{e, e.URL}
	direct.drop(t, "other-1")
	through.create(t, index, documents(t)[:10]...)
	call(t, e, "PUT", e.URL+"/other-1/_doc/1?refresh=true", someText).want(t, 201)
	for _, c := range []struct{ path, body string }{
		{"/hide-1,nope/_search?ignore_unavailable=true", ""},
		{"/hide-1/_search?scroll=1m", ""},
		{"/hide-1/_search", `{"sort":["_doc"]}`},
		{"/hide-1/_search", `{"collapse":{"field":"id"}}`},
		{"/other-1,hide-1/_search", `{"search_after":[""],"sort":["id"]}`},
		{"/_msearch", "{\"index\":\"other-1\"}\n{}\n{\"index\":\"hide-1\"}\n{\"sort\":[\"_doc\"]}\n"},
		{"/_msearch", "{\"index\":\"hide-1,nope\",\"ignore_unavailable\":true}\n{\"neardup\":\"off\"}\n"},
		{"/_mget", `{"docs":[{"_index":"hide-1","_id":"` + documents(t)[0].ID + `"}]}`},
		{"/hide-1/_mapping", ""}, {"/hide-1", ""}, {"/hide-1/_source/" + documents(t)[0].ID, ""},
	} {
		method := "POST"
		if c.body == "" {
			method = "GET"
		}
		r := call(t, e, method, through.base+c.path, c.body).want(t, 200)
		if strings.Contains(string(r.body), rule.SketchField) {
			t.Errorf("%s %s shows the sketch: %.300s", c.path, c.body, r.body)
		}
	}
	r := call(t, e, "GET", through.base+"/hide-1/_search?_source=neardup_sketch", "").want(t, 200)
	if !strings.Contains(string(r.body), rule.SketchField) {
		t.Errorf("a client that names it does not see it: %.300s", r.body)
	}
}

// TestComplaintC26 is about proxies that break official clients: each answer that is our own carries what those of the engine's do.
func TestComplaintC26(t *testing.T) {
	onEach(t, true, []string{engines.Elasticsearch, engines.OpenSearch}, func(t *testing.T, e *engines.Engine) {
		through := serve(t, e, setup{match: "c26-*"})
		api{e, through}.create(t, "c26-1")
		closed := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		dead := serve(t, e, setup{match: "c26-*", urls: []string{"http://" + closed.Addr().String()}})
		closed.Close()
		for _, accept := range []string{"", "*/*", "application/json; charset=utf-8", "application/vnd.elasticsearch+json;compatible-with=8"} {
			kind, body := strings.Replace(accept, "*/*", "application/json", 1), `{}`
			if kind == "" {
				kind = "application/json"
			}
			if e.Kind == engines.OpenSearch {
				kind = "application/json"
			}
			header := []string{"Content-Type", kind, "Accept", accept, "X-Opaque-Id", "some id"}
			engine := call(t, e, "POST", e.URL+"/c26-1/_search", `{"size":-2}`, header...).want(t, 400)
			for name, own := range map[string]reply{
				"a bad control":                call(t, e, "POST", through+"/c26-1/_search?neardup_threshold=2", body, header...).want(t, 400),
				"a bad control in a template":  call(t, e, "POST", through+"/c26-1/_search/template", `{"neardup_window":0}`, header...).want(t, 400),
				"a bad control in a multi":     call(t, e, "POST", through+"/c26-1/_msearch", "{}\n{\"neardup\":3}\n", header...).want(t, 400),
				"an engine that is not there":  call(t, e, "GET", dead+"/c26-1/_doc/1", "", header...).want(t, 502),
				"a search of one":              call(t, e, "POST", dead+"/c26-1/_search", body, header...).want(t, 502),
				"a write to one":               call(t, e, "PUT", dead+"/c26-1/_doc/1", body, header...).want(t, 502),
				"a request that none answered": call(t, e, "GET", dead+"/", "", header...).want(t, 502),
			} {
				for key := range engine.header {
					// OpenSearch 3 tells its version in each reply. No client asks for it, and a dead engine has none.
					if key != "Content-Length" && key != "X-Opensearch-Version" && !slices.Equal(engine.header[key], own.header[key]) {
						t.Errorf("%s, Accept %q: %s is %q, the engine's own is %q", name, accept, key, own.header[key], engine.header[key])
					}
				}
				var shape struct {
					Error struct {
						Type, Reason string
						Causes       []struct{ Type, Reason string } `json:"root_cause"`
					}
					Status int
				}
				if err := json.Unmarshal(own.body, &shape); err != nil || shape.Status != own.status || shape.Error.Reason == "" || len(shape.Error.Causes) != 1 {
					t.Errorf("%s: %v %s", name, err, own.body)
				}
			}
		}
	})
}

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
		"GET /INDEX/_mapping/field/*": "", "GET /INDEX/_search?_source=" + rule.ClusterField: rule.ClusterField,
		"GET /INDEX/_doc/1?_source=" + rule.BandsField:                                                                          rule.BandsField,
		`POST /INDEX/_search | {"_source":false,"fields":["` + rule.ClusterField + `"]}`:                                        rule.ClusterField,
		`POST /INDEX/_search?scroll=1m | {"_source":false,"fields":["` + rule.ClusterField + `"]}`:                              rule.ClusterField,
		`POST /INDEX/_search | {"size":0,"aggs":{"` + rule.ClusterField + `":{"terms":{"field":"` + rule.ClusterField + `"}}}}`: rule.ClusterField,
		"GET /INDEX/_mapping/field/" + rule.BandsField:                                                                          rule.BandsField,
	}
	const ts = "/collections/INDEX"
	typesense := map[string]string{
		"GET " + ts + "/documents/1": "", "GET " + ts + "/documents/2": "", "GET " + ts + "/documents/export": "", "GET " + ts: "",
		"GET " + ts + "/documents/search?q=river&query_by=body": "", "GET " + ts + "/documents/search?q=*&neardup=off": "",
		`POST ` + ts + `/documents?action=upsert | {"id":"2","title":"?","body":"!"}`: "", `PATCH ` + ts + `/documents/2 | {"x":1}`: "",
		"GET " + ts + "/documents/search?q=river&query_by=body&include_fields=" + rule.ClusterField: rule.ClusterField,
		"GET " + ts + "/documents/export?include_fields=" + rule.BandsField:                         rule.BandsField,
	}
	for _, kind := range []string{engines.OpenSearch, engines.Typesense} {
		t.Run(kind, func(t *testing.T) {
			e, index := engines.Shared(t, kind), "ours-1"
			through := api{e, serve(t, e, setup{match: "ours-*", rule: "bands: auto\non_duplicate: tag"})}
			through.create(t, index)
			stored, requests := "/"+index+"/_source/1", elastic
			if through.typesense() {
				stored, requests = "/collections/"+index+"/documents/1", typesense
				through.loadLines(t, index, lines)
			} else {
				one, two, _ := strings.Cut(lines, "\n")
				through.loadLines(t, index, fmt.Sprintf("{\"index\":{\"_index\":%q,\"_id\":\"1\"}}\n%s\n{\"index\":{\"_index\":%q,\"_id\":\"2\"}}\n%s", index, one, index, two))
			}
			if o := rule.OursOf(call(t, e, "GET", e.URL+stored, "").want(t, 200).body); o.Sketch == "" || len(o.Bands) == 0 || o.Cluster == "" {
				t.Fatalf("stored is %+v", o)
			}
			for request, named := range requests {
				method, rest, _ := strings.Cut(strings.ReplaceAll(request, "INDEX", index), " ")
				path, body, _ := strings.Cut(rest, " | ")
				r := call(t, e, method, through.base+path, body)
				text := string(decoded(t, r))
				if r.status > 299 || strings.Contains(text, rule.FieldPrefix) != (named != "") || !strings.Contains(text, named) {
					t.Errorf("%s: %d %.600s", request, r.status, text)
				}
				if named != "" && named != rule.SketchField && strings.Contains(text, rule.SketchField) {
					t.Errorf("%s shows the sketch as well: %.600s", request, text)
				}
			}
		})
	}
}

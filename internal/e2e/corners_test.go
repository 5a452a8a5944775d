package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// elasticEngines runs a test on the two engines that share an adapter.
func elasticEngines(t *testing.T, test func(t *testing.T, e *engines.Engine)) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		t.Run(kind, func(t *testing.T) { test(t, engines.Shared(t, kind)) })
	}
}

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
			if !adapters.HasSketch(direct.get(t, index, id)) {
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
			check(t, json.Unmarshal(body.body, &result))
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
	through.create(t, index)
	through.load(t, index, documents(t)[:10])
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
		if strings.Contains(string(r.body), adapters.SketchField) {
			t.Errorf("%s %s shows the sketch: %.300s", c.path, c.body, r.body)
		}
	}
	r := call(t, e, "GET", through.base+"/hide-1/_search?_source=neardup_sketch", "").want(t, 200)
	if !strings.Contains(string(r.body), adapters.SketchField) {
		t.Errorf("a client that names it does not see it: %.300s", r.body)
	}
}

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestSearchPipelines has OpenSearch send searches through pipelines that cut, sort and change what is found: by a setting of the
// index, or by the request. Pages are the engine's own, and the reply says why.
func TestSearchPipelines(t *testing.T) {
	e, index := engines.Shared(t, engines.OpenSearch), "spipe-1"
	direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "spipe-*"})}
	through.create(t, index)
	through.load(t, index, documents(t))
	if e.Name == engines.OpenSearch2 {
		t.Skip("its packages have none of these processors")
	}
	pipelines := map[string]string{
		"rename": `{"response_processors":[{"rename_field":{"field":"title","target_field":"headline"}}]}`,
		"filter": `{"request_processors":[{"filter_query":{"query":{"match":{"body":"ferry"}}}}]}`,
		"cut":    `{"response_processors":[{"truncate_hits":{"target_size":3}}]}`,
		"one each": `{"request_processors":[{"oversample":{"sample_factor":2}}],` +
			`"response_processors":[{"collapse":{"field":"host"}},{"truncate_hits":{}}]}`,
		"script": `{"request_processors":[{"script":{"source":"ctx._source['size'] = 4"}}]}`,
		"sort": `{"response_processors":[{"split":{"field":"title","separator":" ","target_field":"words"}},` +
			`{"sort":{"field":"words","order":"desc"}}]}`,
	}
	bodies := []string{
		`{"size":10,"query":{"match":{"body":"the"}},"sort":["_score",{"id":"asc"}]}`,
		`{"from":3,"size":3,"query":{"match":{"body":"the"}},"sort":["_score",{"id":"asc"}]}`,
	}
	same := func(name, path, body, header string) {
		t.Helper()
		own, got := call(t, e, "POST", direct.base+path, body), call(t, e, "POST", through.base+path, body)
		if outcome := got.header.Get("Neardup"); outcome != header {
			t.Errorf("%s: %s, want %s", name, outcome, header)
		}
		ids, _ := idsOf(t, got.want(t, own.status))
		want, _ := idsOf(t, own)
		if diff := cmp.Diff(want, ids); diff != "" || len(want) == 0 || strings.Contains(string(got.body), "neardup_sketch") {
			t.Errorf("%s, %s: -directly +through %s", name, body, diff)
		}
	}
	for name, pipeline := range pipelines {
		id := "spipe-" + strings.ReplaceAll(name, " ", "-")
		call(t, e, "PUT", e.URL+"/_search/pipeline/"+id, pipeline).want(t, 200)
		for _, body := range bodies {
			same(name+" in the body", "/"+index+"/_search", `{"search_pipeline":`+pipeline+`,`+body[1:], "bypassed; reason=not_understood")
			same(name+" by the request", "/"+index+"/_search?search_pipeline="+id, body, "bypassed; reason=not_understood")
		}
		call(t, e, "PUT", e.URL+"/"+index+"/_settings", fmt.Sprintf(`{"index.search.default_pipeline":%q}`, id)).want(t, 200)
		anew := api{e, serve(t, e, setup{match: "spipe-*"})} // which has not looked at the index yet
		through = anew
		for _, body := range bodies {
			same(name+" by the index", "/"+index+"/_search", body, "bypassed; reason=search_pipeline")
			same(name+" by one of two", "/"+index+",nothing*/_search", body, "bypassed; reason=search_pipeline")
			inPIT := `{"pit":{"id":"` + openPIT(t, e, e.URL, index) + `"},` + body[1:]
			same(name+" by the index of a point in time", "/_search", inPIT, "bypassed; reason=search_pipeline")
		}
		call(t, e, "PUT", e.URL+"/"+index+"/_settings", `{"index.search.default_pipeline":null}`).want(t, 200)
		call(t, e, "DELETE", e.URL+"/_search/pipeline/"+id, "").want(t, 200)
	}
	through = api{e, serve(t, e, setup{match: "spipe-*"})}
	if got := call(t, e, "POST", through.base+"/"+index+"/_search", bodies[0]).want(t, 200).header.Get("Neardup"); !strings.HasPrefix(got, "collapsed;") {
		t.Error("without a pipeline:", got)
	}
}

// TestJobsPastSearchPipelines has jobs and look-ups read an index whose searches OpenSearch sends through a pipeline that leaves documents
// out, renames a field and cuts lists: they go by all that is stored, as in an index without.
func TestJobsPastSearchPipelines(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	if e.Name == engines.OpenSearch2 {
		t.Skip("its packages have none of these processors")
	}
	direct, list := api{e, e.URL}, documents(t)
	defer call(t, e, "DELETE", e.URL+"/_search/pipeline/past", "")
	call(t, e, "PUT", e.URL+"/_search/pipeline/past", `{"request_processors":[{"filter_query":{"query":{"match":{"body":"ferry"}}}}],"response_processors":[`+
		`{"rename_field":{"ignore_failure":true,"field":"title","target_field":"headline"}},{"truncate_hits":{"target_size":3}}]}`).want(t, 200)
	var seen [2][]string
	for i, index := range []string{"past-plain", "past-piped"} {
		direct.create(t, index)
		direct.load(t, index, list)
		if i == 1 {
			call(t, e, "PUT", e.URL+"/"+index+"/_settings", `{"index.search.default_pipeline":"past"}`).want(t, 200)
		}
		file := walking(t, e, walkRule{match: index, window: 1000, more: "bands: auto\nmin_shingles: 8\non_duplicate: skip"})
		for _, args := range [][]string{{"setup"}, {"reindex"}, {"verify"}, {"verify", "--sample", "20"}, {"similar", "--index", index, list[0].ID}} {
			out, code := sidecar(t, append(args[:1:1], append([]string{"--config", file}, args[1:]...)...)...)
			out, _, _ = strings.Cut(out, ", in ") // what it took
			seen[i] = append(seen[i], fmt.Sprint(args[0], code, out))
		}
		base := serveFile(t, file)
		for _, d := range list[:20] {
			_, alike, _ := strings.Cut(string(call(t, e, "GET", base+"/_neardup/"+index+"/similar/"+d.ID, "").body), `"total"`)
			written := call(t, e, "PUT", base+"/"+index+"/_doc/new-"+d.ID, fmt.Sprintf(`{"title":%q,"body":%q}`, d.Title, d.Body))
			seen[i] = append(seen[i], d.ID+": "+alike, fmt.Sprint(written.status, strings.Contains(string(written.body), "noop")))
		}
	}
	for i := range seen[1] {
		seen[1][i] = strings.ReplaceAll(seen[1][i], "past-piped", "past-plain")
	}
	if diff := cmp.Diff(seen[0], seen[1]); diff != "" || !strings.Contains(strings.Join(seen[0], " "), "200 true") {
		t.Errorf("-without a pipeline +with one %s", diff)
	}
}

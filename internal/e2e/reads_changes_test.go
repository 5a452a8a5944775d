package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestRepliesToChangesAreTheEnginesOwn compares the replies to what changes documents and shows them, or quotes them in an error.
func TestRepliesToChangesAreTheEnginesOwn(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	index := "reads-changes"
	long := `"body":"` + strings.Repeat("many words ", 30) + `"`
	tooBig := `"r":{"gte":123456789012345678901234567890}`
	list := []readCase{
		{request: "POST /INDEX/_update/0?_source=true", body: `{"doc":{"n":7}}`}, {request: "POST /INDEX/_update/0?_source=near*", body: `{"doc":{"title":"four new words"}}`},
		{request: "POST /INDEX/_update/0", body: `{"doc":{"title":"one two","body":"three"},"_source":["*"]}`},
		{request: "POST /INDEX/_update/1?filter_path=get._source.near*", body: `{"doc":{"n":7},"_source":true}`},
		{request: "POST /_bulk", body: "{\"update\":{\"_index\":\"INDEX\",\"_id\":\"0\",\"_source\":true}}\n{\"doc\":{\"n\":8}}\n{\"update\":{\"_index\":\"INDEX\",\"_id\":\"1\"}}\n{\"doc\":{\"n\":8}}\n"},
		{request: "POST /_bulk?_source=n*&filter_path=items.*.get", body: "{\"update\":{\"_index\":\"INDEX\",\"_id\":\"0\"}}\n{\"doc\":{\"n\":9}}\n"},
		{request: "PUT /INDEX/_doc/9", body: `{"title":"some words",` + tooBig + `}`}, {request: "POST /INDEX/_doc?filter_path=error.*.reason", body: `{` + tooBig + `,"title":"some words"}`},
		{request: "PUT /INDEX/_create/9", body: `{"title":"some words",` + tooBig + "\n,\n" + `"k":"\"}"}`},
		{request: "POST /_bulk", body: "{\"index\":{\"_index\":\"INDEX\"}}\n{\"title\":\"some words\"," + tooBig + "}\n{\"create\":{\"_index\":\"INDEX\",\"_id\":\"9\"}}\n{\"title\":\"some words\"}\n"},
		{request: "PUT /INDEX/_doc/9", body: `{"title":"some words",` + long + `,` + tooBig + `}`}, // quoted up to within our field
		{request: "POST /INDEX/_update_by_query?refresh=true&conflicts=proceed", body: `{"query":{"ids":{"values":["2"]}},"script":"ctx._source.n=1"}`},
		{request: "POST /INDEX/_delete_by_query?refresh=true", body: `{"query":{"ids":{"values":["3"]}}}`},
		{request: "GET /INDEX/_doc/2"}, {request: "DELETE /INDEX/_doc/1"},
	}
	twins(t, e, index, prepareReadable(index), func(t *testing.T, a api) map[string]answered {
		got := map[string]answered{}
		for i, c := range list {
			method, path, _ := strings.Cut(strings.ReplaceAll(c.request, "INDEX", index), " ")
			r := a.fetch(t, method, path, strings.ReplaceAll(c.body, "INDEX", index), c.loose)
			r.Body = madeUp.ReplaceAllString(r.Body, `"_id":""`)
			r.Body = inDocumentOf.ReplaceAllString(r.Body, "in document with id ''")
			delete(r.Header, "Location")
			got[fmt.Sprint(i, " ", c.request, " ", c.body)] = r
		}
		return got
	})
}

// Ids that the engine makes up.
var (
	madeUp       = regexp.MustCompile(`"_id":"[A-Za-z0-9_-]{20}"`)
	inDocumentOf = regexp.MustCompile(`in document with id '[A-Za-z0-9_-]{20}'`)
)

// TestWhatIsNamedIsShown: our field's own name shows it, in the URL and in a body; a pattern that covers it does not.
func TestWhatIsNamedIsShown(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	index := "reads-named"
	a := api{e, serve(t, e, setup{match: index})}
	api{e, e.URL}.drop(t, index)
	call(t, e, "DELETE", e.URL+"/"+index, "")
	prepareReadable(index)(t, a)
	for _, c := range []readCase{
		{request: "GET /INDEX/_doc/0?_source=NAME"}, {request: "GET /INDEX/_source/0?_source_includes=title,NAME"},
		{request: "GET /INDEX/_mget", body: `{"docs":[{"_id":"0","_source":["NAME"]}]}`}, {request: "POST /INDEX/_mget", body: `{"docs":[{"_id":"0","_source":{"include":"NAME"}}]}`},
		{request: "GET /INDEX/_mapping/field/NAME"}, {request: "GET /INDEX/_field_caps?fields=NAME"},
		{request: "POST /INDEX/_explain/0?_source_includes=NAME", body: `{"query":{"match_all":{}}}`},
		{request: "POST /INDEX/_search?scroll=1m", body: `{"sort":["_doc"],"_source":["NAME"]}`},
		{request: "POST /INDEX/_search", body: `{"sort":["_doc"],"docvalue_fields":["NAME"],"_source":false}`},
		{request: "GET /INDEX/_doc/0?filter_path=_source.NAME"},
	} {
		if e.Kind == engines.Elasticsearch && strings.Contains(c.request, "_field_caps") {
			c = readCase{request: "POST /INDEX/_field_caps", body: `{"fields":["NAME"]}`}
		}
		method, path, _ := strings.Cut(strings.ReplaceAll(c.request, "INDEX", index), " ")
		for name, want := range map[string]bool{adapters.SketchField: true, "neardup_s*": false, "n*": false} {
			with := strings.NewReplacer("NAME", name)
			for _, encoding := range []string{"", "gzip"} {
				r := call(t, e, method, a.base+with.Replace(path), with.Replace(c.body), "Accept-Encoding", encoding).want(t, 200)
				if got := strings.Contains(string(decoded(t, r)), `"`+adapters.SketchField+`":`); got != want {
					t.Errorf("%s %s with %s, %q: shown = %t: %.500s", c.request, c.body, name, encoding, got, decoded(t, r))
				}
			}
		}
	}
}

// TestReadsThatAreSearchesSayWhy they are left alone.
func TestReadsThatAreSearchesSayWhy(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		index, other := "reads-why", "reads-other"
		a := api{e, serve(t, e, setup{match: index})}
		for _, name := range []string{index, other} {
			call(t, e, "DELETE", e.URL+"/"+name, "")
			api{e, e.URL}.drop(t, name)
			prepareReadable(name)(t, a)
		}
		first := call(t, e, "POST", a.base+"/"+index+"/_search?scroll=1m", `{"size":1,"sort":["_doc"]}`).want(t, 200)
		id := string(regexp.MustCompile(`"_scroll_id":"([^"]+)"`).FindSubmatch(first.body)[1])
		cases := map[string]string{
			"POST /_search/scroll":              "bypassed; reason=export",
			"GET /" + index + "/_doc/0":         "",
			"POST /" + index + "/_eql/search":   "bypassed; reason=eql",
			"POST /" + other + "/_eql/search":   "",
			"POST /" + index + "/_async_search": "bypassed; reason=async",
			"POST /_msearch/template":           "bypassed; reason=template",
			"POST /" + index + "/_rank_eval":    "bypassed; reason=rank_eval",
			"POST /" + index + "/_knn_search":   "bypassed; reason=vector",
			"POST /" + other + "/_knn_search":   "",
		}
		for request, want := range cases {
			method, path, _ := strings.Cut(request, " ")
			r := call(t, e, method, a.base+path, `{"scroll":"1m","scroll_id":"`+id+`"}`)
			if got := strings.Join(slices.Concat(r.header["Neardup"]), "|"); got != want {
				t.Errorf("%s: %q, want %q (status %d)", request, got, want, r.status)
			}
		}
	})
}

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

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

package typesense

import (
	"bytes"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestAllOursAreCut: what is cut of the sketch is cut of all three fields.
func TestAllOursAreCut(t *testing.T) {
	const ours = `"neardup_bands":[1,2],"neardup_cluster":"c","neardup_sketch":"s"`
	for _, c := range []struct{ method, path, reply, want string }{
		{"GET", "/collections/a/documents/1", `{"id":"1",` + ours + `}`, `{"id":"1"}`},
		{"GET", "/collections/a/documents/1", `{"id":"1","neardup_cluster":"c"}`, `{"id":"1"}`},
		{"GET", "/collections/a/documents/export", `{"id":"1","neardup_cluster":"c"}` + "\n" + `{` + ours + `,"x":1}`, `{"id":"1"}` + "\n" + `{"x":1}`},
		{"POST", "/collections/a/documents/import", `{"document":{"id":"1","neardup_bands":[1]},"success":true}`, `{"document":{"id":"1"},"success":true}`},
		{"GET", "/collections/a", `{"fields":[{"name":"neardup_cluster"},{"name":"t"},{"name":"neardup_bands"}]}`, `{"fields":[{"name":"t"}]}`},
		{"GET", "/collections", `[{"fields":[{"name":"neardup_bands"}]}]`, `[{"fields":null}]`},
		{"PATCH", "/collections/a", `{"fields":[{"name":"neardup_bands","type":"int64[]"}]}`, `{"fields":null}`},
		{"DELETE", "/collections/a/documents/1", `{` + ours + `}`, `{}`},
		{"GET", "/collections/a/documents/search", `{"hits":[{"document":{` + ours + `}}]}`, `{"hits":[{"document":{}}]}`},
		{"POST", "/multi_search", `{"results":[{"grouped_hits":[{"hits":[{"document":{"neardup_cluster":"c"}}]}]}]}`, `{"results":[{"grouped_hits":[{"hits":[{"document":{}}]}]}]}`},
	} {
		var out bytes.Buffer
		class := Dialect{}.Classify(&adapters.Request{Method: c.method, Path: c.path})
		expect.OK(t, (Dialect{}).CleanReply(class, &out, strings.NewReader(c.reply)))
		expect.Same(t, c.want, out.String(), "%s %s: %s", c.method, c.path, c.reply)
	}
	for _, field := range []string{rule.SketchField, rule.BandsField, rule.ClusterField} {
		class := Dialect{}.Classify(&adapters.Request{Method: "GET", Path: "/collections/a/documents/1", RawQuery: "include_fields=id," + field})
		if !class.NamesOurs {
			t.Errorf("%s is not shown where it is named", field)
		}
	}
}

package elastic

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestRealPackedReplies has the engines answer in CBOR and SMILE, with a filter_path, and quote a document in an error, in YAML too. A cleaned
// reply reads as the one about the same documents without our fields.
func TestRealPackedReplies(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index := l.name + "p"
		got, want := l.packedReplies(index, `,"neardup_sketch":"AQ=="`), l.packedReplies(index, "")
		for asked := range want {
			expect.Same(t, want[asked], got[asked], "%s (-directly +through us)", asked)
		}
		if len(want) < 100 {
			t.Errorf("%d replies", len(want))
		}
	})
}

// packedReplies stores documents that end with ours, and returns the cleaned replies to requests.
func (l *larder) packedReplies(index, ours string) map[string]any {
	l.t.Helper()
	l.drop(index)
	mapped := ""
	if ours != "" {
		mapped = "," + mappedSketch
	}
	l.must("PUT", "/"+index, `{"settings":{"number_of_replicas":0},"mappings":{"properties":{"title":{"type":"keyword"},"n":{"type":"integer"}`+mapped+`}}}`)
	for i, document := range []string{`{"title":"one"%s}`, `{"title":"two","n":[1,2]%s}`, `{"o":{"n":1},"n":3%s}`} {
		l.must("PUT", fmt.Sprintf("/%s/_doc/%d?refresh=true", index, i), fmt.Sprintf(document, ours))
	}
	replies := map[string]any{}
	ask := func(method, path, query, body string, forms ...written) {
		for _, form := range forms {
			r := requestFor(method, "/"+index+path, query, body)
			r.Header["Accept"] = []string{form.mediaType}
			reply := l.send(r)
			var out bytes.Buffer
			expect.OK(l.t, l.d.CleanReply(l.d.Classify(r), &out, bytes.NewReader(reply.Body)))
			if bytes.Contains(out.Bytes(), []byte("neardup_")) {
				l.t.Errorf("%s %s?%s in %s shows %q", method, path, query, form.name, out.Bytes())
			}
			value, _ := form.read(l.t, out.Bytes()).(map[string]any)
			delete(value, "took")
			replies[fmt.Sprint(method, " ", path, " ", query, " ", strings.ReplaceAll(body, ours, ""), " in ", form.name)] = map[string]any{"status": reply.Status, "body": value}
		}
	}
	packed := writtenForms[:2]
	for _, filter := range []string{
		"", "docs._source.near*", "docs._source.n*,docs._id", "**.near*", "*._source.near*", "hits.hits._source.near*", "hits.hits.fields.near*,took", "-docs._source.title",
		"*.mappings.properties.near*", "-docs._id,-hits.hits._id",
	} {
		query := "filter_path=" + url.QueryEscape(filter)
		ask("GET", "/_mget", query, `{"ids":["0","1","2","nope"]}`, packed...)
		ask("GET", "/_doc/0", query, "", packed...)
		ask("GET", "/_mapping", query, "", packed...)
		ask("POST", "/_search", query, `{"sort":["_doc"],"_source":["near*"],"fields":["near*"]}`, packed...)
		ask("POST", "/_search", query, `{"sort":["_doc"],"_source":true,"fields":["*"]}`, packed...)
	}
	tooBig := `{"title":"some words","n":123456789012345678901234567890` + ours + `}`
	ask("PUT", "/_doc/9", "", tooBig, writtenForms[:3]...)
	ask("POST", "/_bulk", "", "{\"index\":{\"_id\":\"9\"}}\n"+tooBig+"\n", writtenForms[:3]...)
	for key, reply := range replies {
		if strings.HasPrefix(key, "PUT") && reply.(map[string]any)["status"] != http.StatusBadRequest {
			l.t.Errorf("%s: %v", key, reply)
		}
	}
	return replies
}

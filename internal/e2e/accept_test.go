package e2e

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestAcceptOfSearches has searches without a body say what they accept in every way that clients do: what the engine answers with JSON
// comes collapsed, in one request and in the type that the engine answers.
func TestAcceptOfSearches(t *testing.T) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} { // which take other types
		e := engines.Shared(t, kind)
		const index = "accept-1"
		direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "accept-*"})}
		direct.drop(t, index)
		through.create(t, index)
		through.load(t, index, documents(t)[:60])
		collapsed := 0
		for _, accept := range []string{
			"", "*/*", "application/json; charset=UTF-8", "Application/JSON", "text/html, */*", "application/vnd.elasticsearch+json; compatible-with=8",
			"application/vnd.elasticsearch+json; compatible-with=8,text/plain", // the JavaScript client's
			"text/plain", "application/vnd.opensearch+json", "application/yaml", "application/cbor", "application/yaml, application/json", "nonsense",
		} {
			path := "/_search?q=body:ferry&neardup_window=50&size=40"
			got := call(t, e, "GET", through.base+"/"+index+path, "", "Accept", accept)
			want := call(t, e, "GET", direct.base+"/"+index+strings.ReplaceAll(path, "neardup_window=50&", ""), "", "Accept", accept)
			kind := want.header.Get("Content-Type")
			if got.status != want.status || got.header.Get("Content-Type") != kind {
				t.Errorf("%s, accepting %q: %d %s, directly %d %s", path, accept, got.status, got.header.Get("Content-Type"), want.status, kind)
			}
			outcome := got.header.Get("Neardup")
			if want.status == 200 && strings.Contains(kind, "json") {
				if collapsed++; !strings.HasPrefix(outcome, "collapsed; raw=") {
					t.Errorf("%s, accepting %q, is answered as %s: %s", path, accept, kind, outcome)
				}
			}
		}
		if collapsed < 5 {
			t.Errorf("%s answered %d with JSON", kind, collapsed)
		}
	}
}

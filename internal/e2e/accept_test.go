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
		through.create(t, index)
		through.load(t, index, documents(t)[:60])
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

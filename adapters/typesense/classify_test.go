package typesense

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// TestAlters tells what may change a collection from what can't.
func TestAlters(t *testing.T) {
	for request, want := range map[string]bool{
		"POST /collections": true, "POST /collections/": true, "PATCH /collections/news": true, "DELETE /collections/news": true,
		"PUT /aliases/news": true, "DELETE //aliases/news": true, "GET /collections": false, "GET /aliases": false,
		"HEAD /collections/news": false, "OPTIONS /collections": false, "POST /collections/news/documents": false,
		"DELETE /collections/news/documents": false, "DELETE /collections/news/documents/1": false, "PUT /collections/news/synonyms/a": false,
		"POST /multi_search": false, "POST /keys": false, "POST /": false, "POST /collections/news/documents?action=destroy": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		expect.Same(t, want, (Dialect{}).Classify(&adapters.Request{Method: method, Path: path}).Alters, "%s: alters", request)
	}
}

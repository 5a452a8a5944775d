package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestTypedPaths speaks version 7 of the API, in which a type stands behind the index. Elasticsearch 8 is the last that understands it.
func TestTypedPaths(t *testing.T) {
	e, index := engines.Shared(t, engines.Elasticsearch), "typed-1"
	if e.Name != engines.Elasticsearch8 {
		t.Skip("for NEARDUP_OLDER=1")
	}
	through, direct := api{e, serve(t, e, setup{match: "typed-*"})}, api{e, e.URL}
	through.create(t, index)
	const kind = "application/vnd.elasticsearch+json;compatible-with=7"
	seven := func(base, method, path, body string) reply {
		t.Helper()
		return call(t, e, method, base+"/"+index+path, body, "Content-Type", kind, "Accept", kind)
	}
	seven(through.base, "PUT", "/article/1", someText).want(t, 201)
	seven(through.base, "POST", "/article/2/_create", someText).want(t, 201)
	seven(through.base, "PUT", "/article/3", someText).want(t, 201)
	seven(through.base, "POST", "/article/_bulk?refresh=true", fmt.Sprintf("{\"index\":{\"_id\":\"4\"}}\n%s\n", someText)).want(t, 200)
	seven(through.base, "POST", "/article/3/_update?refresh=true", `{"doc":{"title":"another one"}}`).want(t, 200)
	for id, want := range map[string]bool{"1": true, "2": true, "3": false, "4": true} {
		if got := adapters.HasSketch(direct.get(t, index, id)); got != want {
			t.Errorf("document %s has a sketch: %t, want %t", id, got, want)
		}
	}
	for _, path := range []string{"/article/1", "/_doc/1", "/article/1/_source", "/_doc/1/_source", "/article/_mapping", "/_mapping/article?include_type_name=true", "/article/_search", "/_mapping"} {
		own, ours := seven(e.URL, "GET", path, ""), seven(through.base, "GET", path, "")
		if own.status != ours.status || own.header.Get("Content-Type") != ours.header.Get("Content-Type") {
			t.Errorf("%s: %d %s, directly %d %s", path, ours.status, ours.header.Get("Content-Type"), own.status, own.header.Get("Content-Type"))
		}
		if strings.Contains(string(ours.body), "neardup_sketch") {
			t.Errorf("%s shows our field: %s", path, ours.body)
		}
	}
	if outcome := seven(through.base, "GET", "/article/_search", "").want(t, 200).header.Get("Neardup"); !strings.HasPrefix(outcome, "collapsed; raw=4; folded=3;") {
		t.Error(outcome)
	}
}

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// saying returns a document whose text is the n-th, unlike all others.
func saying(n int) string {
	var words strings.Builder
	for i := range 30 {
		fmt.Fprintf(&words, "w%dx%d ", n, i)
	}
	return `{"title":"a","body":"` + words.String() + `"}`
}

// skipping makes an index of several shards through a sidecar that skips, with one document in it, of saying(1).
func skipping(t *testing.T, e *engines.Engine, index string) (through, direct api) {
	t.Helper()
	file := config(t, e, setup{match: index + "*", rule: "bands: auto\nmin_shingles: 8\non_duplicate: skip"})
	through, direct = api{e, serveFile(t, file)}, api{e, e.URL}
	through.drop(t, index)
	call(t, e, "DELETE", direct.base+"/"+index, "")
	call(t, e, "PUT", through.base+"/"+index, `{"settings":{"number_of_shards":3,"number_of_replicas":0},
		"mappings":{"properties":{"title":{"type":"text"},"body":{"type":"text"}}}}`).want(t, 200)
	call(t, e, "PUT", through.base+"/"+index+"/_doc/first", saying(1)).want(t, 201)
	call(t, e, "POST", direct.base+"/"+index+"/_refresh", "").want(t, 200)
	return through, direct
}

// TestSkipStandsOnWhatIsStored: nothing is left out for a document of the same request that the engine takes and does not store; and what
// the engine refuses as a whole it gets as a whole.
func TestSkipStandsOnWhatIsStored(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	index := "stands-1"
	through, direct := skipping(t, e, index)
	pipeline := direct.base + "/_ingest/pipeline/stands-drop"
	call(t, e, "PUT", pipeline, `{"processors":[{"drop":{"if":"ctx.drop != null"}}]}`).want(t, 200)
	defer func() {
		call(t, e, "PUT", direct.base+"/"+index+"/_settings", `{"index.default_pipeline":null}`)
		call(t, e, "DELETE", pipeline, "").want(t, 200)
	}()
	dropped := func(n int) string { return strings.Replace(saying(n), "{", `{"drop":1,`, 1) }
	repeated := `{"index":{"_id":"again"}}` + "\n" + saying(1) + "\n"
	for _, c := range []struct {
		name, body string
		status     int
		want       []string // results, or types of errors
		stored     string   // an id that has to be there
	}{
		{"a repeated one", repeated, 200, []string{"noop"}, "first"},
		{"an upsert that is not needed", `{"update":{"_id":"first"}}` + "\n" + `{"doc":{"n":1},"upsert":` + saying(2) + "}\n" + `{"index":{"_id":"u"}}` +
			"\n" + saying(2) + "\n", 200, []string{"updated", "created"}, "u"},
		{"a pipeline of the action's", `{"index":{"_id":"gone","pipeline":"stands-drop"}}` + "\n" + dropped(3) + "\n" + `{"index":{"_id":"p"}}` + "\n" + saying(3) +
			"\n", 200, []string{"noop", "created"}, "p"},
		{"an action without a document", repeated + `{"index":{"_id":"d"}}` + "\n" + saying(4) + "\n" + `{"index":{"_id":"e"}}` + "\n", 200,
			[]string{"created", "created"}, "d"},
		{"no end of line", `{"index":{"_id":"f"}}` + "\n" + saying(5) + "\n" + `{"index":{"_id":"g"}}` + "\n" + saying(1), 400, nil, ""},
		{"no id", `{"index":{"_id":""}}` + "\n" + saying(1) + "\n", 200, []string{"illegal_argument_exception"}, ""},
		{"the index's pipeline", `{"index":{"_id":"gone"}}` + "\n" + dropped(6) + "\n" + `{"index":{"_id":"q"}}` + "\n" + saying(6) + "\n", 200,
			[]string{"noop", "created"}, "q"},
	} {
		if c.name == "the index's pipeline" {
			call(t, e, "PUT", direct.base+"/"+index+"/_settings", `{"index.default_pipeline":"stands-drop"}`).want(t, 200)
		}
		reply := call(t, e, "POST", through.base+"/"+index+"/_bulk", c.body, "Content-Type", "application/x-ndjson").want(t, c.status).body
		var r struct {
			Items []map[string]struct {
				Result string
				Error  struct{ Type string }
			}
		}
		decode(t, reply, &r)
		var got []string
		for _, item := range r.Items {
			for _, outcome := range item {
				got = append(got, outcome.Result+outcome.Error.Type)
			}
		}
		same(t, fmt.Sprint(c.want), fmt.Sprint(got), "%s: %s", c.name, reply)
		if c.stored != "" {
			call(t, e, "GET", direct.base+"/"+index+"/_doc/"+c.stored, "").want(t, 200)
		}
	}
}

// TestSkipThroughARoutedAlias: where a name gives documents a routing, an id alone does not tell whether there is one, and none is left out.
func TestSkipThroughARoutedAlias(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	index := "routed-1"
	through, direct := skipping(t, e, index)
	call(t, e, "POST", direct.base+"/_aliases", `{"actions":[{"add":{"index":"`+index+`","alias":"routed-x","routing":"77"}},
		{"add":{"index":"`+index+`","alias":"routed-y"}}]}`).want(t, 200)
	reply := call(t, e, "PUT", through.base+"/routed-y/_doc/other", saying(1)).want(t, 200).body
	if !strings.Contains(string(reply), `"noop"`) {
		t.Errorf("an alias without a routing: %s", reply)
	}
	for n := range 6 {
		at := fmt.Sprintf("/routed-x/_doc/%d", n)
		call(t, e, "PUT", through.base+at, saying(10+n)).want(t, 201)
		call(t, e, "PUT", through.base+at, saying(1)).want(t, 200)
		reply := call(t, e, "GET", direct.base+at, "").want(t, 200).body
		if !strings.Contains(string(reply), "w1x0 ") {
			t.Errorf("%s is still %s", at, reply)
		}
	}
}

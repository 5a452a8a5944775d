package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestEngineTimeouts has searches end by the engine's own time limit. Without partial results that is an error, which Elasticsearch 9
// answers with 429: the client gets the engine's own. With them the reply says so.
func TestEngineTimeouts(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		const index = "slow-1"
		direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "slow-*"})}
		through.create(t, index)
		var lines strings.Builder
		for i := range 4000 { // the engines look at the clock after some thousands of documents
			fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q}}\n{\"title\":\"the ferry was late on day %d\"}\n", index, i)
		}
		through.loadLines(t, index, lines.String())
		const slow = `{"timeout":"1ms","query":{"script":{"script":"double x=0; for(int i=0;i<20000;i++){x+=Math.sin(i)} return x>-1e9"}}}`
		path := "/" + index + "/_search?allow_partial_search_results=false"
		own := call(t, e, "POST", direct.base+path, slow)
		got := call(t, e, "POST", through.base+path, slow)
		if own.status < 400 || got.status != own.status {
			t.Fatalf("status %d, directly %d: %.300s", got.status, own.status, own.body)
		}
		same(t, string(own.body), string(got.body), "")
		if e.Name == engines.Elasticsearch && own.status != 429 {
			t.Errorf("Elasticsearch 9 answers %d", own.status)
		}
		partly := call(t, e, "POST", through.base+"/"+index+"/_search", slow).want(t, 200)
		if !strings.Contains(string(partly.body), `"timed_out":true`) {
			t.Errorf("%.200s", partly.body)
		}
	})
}

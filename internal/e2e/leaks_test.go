package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestBodiesThatNameOtherIndices asks an index that no rule matches, by its path, for documents of one that a rule does match.
func TestBodiesThatNameOtherIndices(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		index, other := "named-1", "other-named-1"
		through, direct := api{e, serve(t, e, setup{match: "named-*"})}, api{e, e.URL}
		direct.drop(t, index)
		direct.drop(t, other)
		through.create(t, index)
		through.create(t, other)
		through.loadLines(t, index, fmt.Sprintf("{\"index\":{\"_index\":%q,\"_id\":\"1\"}}\n%s\n{\"index\":{\"_index\":%q,\"_id\":\"2\"}}\n%s\n", index, strings.Replace(someText, `{`, `{"n":51/* a, b */,`, 1), index, someText))
		call(t, e, "POST", e.URL+"/_aliases", fmt.Sprintf(`{"actions":[{"add":{"index":%q,"alias":"alias-of-named"}}]}`, index)).want(t, 200)
		for _, c := range [][3]string{
			{"POST", "/_mget", `{"docs":[{"_index":"` + index + `","_id":"1"},{"_index":"` + index + `","_id":"2"}]}`},
			{"POST", "/_msearch", `{"index":"` + index + `"}` + "\n" + `{"collapse":{"field":"id"}}` + "\n"},
			{"POST", "/_msearch", `{"index":"` + index + `"}` + "\n" + `{}` + "\n"},
			{"POST", "/_bulk", `{"update":{"_index":"` + index + `","_id":"2","_source":true}}` + "\n" + `{"doc":{"n":3}}` + "\n"},
			{"POST", "/_mtermvectors", `{"docs":[{"_index":"` + index + `","_id":"1"}]}`},
		} {
			r := call(t, e, c[0], through.base+"/"+other+c[1], c[2]).want(t, 200)
			if strings.Contains(string(r.body), "neardup") {
				t.Errorf("%s %s: %s", c[1], c[2], r.body)
			}
		}
		for _, path := range []string{"/" + index + "/_doc/1", "/alias-of-named/_doc/2", "/alias-of-named/_search", "/alias-of-named/_search?scroll=1m", "/" + index + "/_search?neardup=off"} {
			if r := call(t, e, "GET", through.base+path, "").want(t, 200); strings.Contains(string(r.body), "neardup") {
				t.Errorf("%s: %s", path, r.body)
			}
		}
	})
}

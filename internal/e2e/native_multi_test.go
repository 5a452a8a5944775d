package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestNativeMulti sends searches for the engine, for query time and for neither in one request: each is answered as it is alone.
func TestNativeMulti(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		c := newClustered(t, e, "native-multi", cliquesOnly(t))
		bodies := []string{
			`"query":{"match":{"body":"the"}}`, `"query":{"match":{"body":"river"}},"neardup_window":1000`, `"query":{"match":{"body":"town"}},"aggs":{"a":{"max":{"field":"at"}}}`,
			`"query":{"match":{"body":"the"}},"neardup":"off"`, `"query":{"match":{"body":"old"}},"sort":"nosuch"`, `"query":{"match":{"body":"old"}},"from":10,"size":3`,
		}
		if c.direct.typesense() {
			bodies = []string{
				`"q":"the"`, `"q":"river","neardup_window":1000`, `"q":"town","facet_by":"host"`, `"q":"the","neardup":"off"`, `"q":"old","facet_by":"nosuch"`, `"q":"*","page":2,"per_page":3`,
			}
		}
		ask := func(bodies []string) ([][]byte, string) {
			path, body, key := "/_msearch", "", "responses"
			if c.direct.typesense() {
				path, key = "/multi_search", "results"
				var searches []string
				for _, b := range bodies {
					searches = append(searches, `{"collection":"`+c.index+`","query_by":"title,body",`+b+`}`)
				}
				body = `{"searches":[` + strings.Join(searches, ",") + `]}`
			} else {
				for _, b := range bodies {
					body += `{"index":"` + c.index + `"}` + "\n{" + b + "}\n"
				}
			}
			r := call(t, e, "POST", c.through.base+path, body).want(t, 200)
			var parts map[string]json.RawMessage
			check(t, json.Unmarshal(r.body, &parts))
			list, err := jsonedit.Elements(parts[key])
			if err != nil || len(list) != len(bodies) {
				t.Fatalf("%d answers: %s", len(list), r.body)
			}
			return list, r.header.Get("Neardup")
		}
		all, header := ask(bodies)
		if !strings.HasPrefix(header, "collapsed; reason=off,refused; ") || strings.Contains(header, "native") {
			t.Errorf("not all of them are native: %s", header)
		}
		for i, body := range bodies {
			alone, header := ask([]string{body})
			same(t, spent.ReplaceAllString(string(alone[0]), ""), spent.ReplaceAllString(string(all[i]), ""), "%s: alone (-), among others (+)", body)
			if native := strings.Contains(header, "; native; "); native != (i == 0 || i == 2 || i == 5) {
				t.Errorf("%s: %s", body, header)
			}
		}
		_, header = ask([]string{bodies[0], bodies[2], bodies[5]})
		isNative(t, header)
	})
}

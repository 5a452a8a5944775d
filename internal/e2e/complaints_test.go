package e2e

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestComplaintC26 is about proxies that break official clients: each answer that is our own carries what those of the engine's do.
func TestComplaintC26(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		through := serve(t, e, setup{match: "c26-*"})
		api{e, through}.create(t, "c26-1")
		closed := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		dead := serve(t, e, setup{match: "c26-*", urls: []string{"http://" + closed.Addr().String()}})
		closed.Close()
		for _, accept := range []string{"", "*/*", "application/json; charset=utf-8", "application/vnd.elasticsearch+json;compatible-with=8"} {
			kind, body := strings.Replace(accept, "*/*", "application/json", 1), `{}`
			if kind == "" {
				kind = "application/json"
			}
			if e.Kind == engines.OpenSearch {
				kind = "application/json"
			}
			header := []string{"Content-Type", kind, "Accept", accept, "X-Opaque-Id", "some id"}
			engine := call(t, e, "POST", e.URL+"/c26-1/_search", `{"size":-2}`, header...).want(t, 400)
			for name, own := range map[string]reply{
				"a bad control":                call(t, e, "POST", through+"/c26-1/_search?neardup_threshold=2", body, header...).want(t, 400),
				"a bad control in a template":  call(t, e, "POST", through+"/c26-1/_search/template", `{"neardup_window":0}`, header...).want(t, 400),
				"a bad control in a multi":     call(t, e, "POST", through+"/c26-1/_msearch", "{}\n{\"neardup\":3}\n", header...).want(t, 400),
				"an engine that is not there":  call(t, e, "GET", dead+"/c26-1/_doc/1", "", header...).want(t, 502),
				"a search of one":              call(t, e, "POST", dead+"/c26-1/_search", body, header...).want(t, 502),
				"a write to one":               call(t, e, "PUT", dead+"/c26-1/_doc/1", body, header...).want(t, 502),
				"a request that none answered": call(t, e, "GET", dead+"/", "", header...).want(t, 502),
			} {
				for key := range engine.header {
					// OpenSearch 3 tells its version in each reply. No client asks for it, and a dead engine has none.
					if key != "Content-Length" && key != "X-Opensearch-Version" && !slices.Equal(engine.header[key], own.header[key]) {
						t.Errorf("%s, Accept %q: %s is %q, the engine's own is %q", name, accept, key, own.header[key], engine.header[key])
					}
				}
				var shape struct {
					Error struct {
						Type, Reason string
						Causes       []struct{ Type, Reason string } `json:"root_cause"`
					}
					Status int
				}
				if err := json.Unmarshal(own.body, &shape); err != nil || shape.Status != own.status || shape.Error.Reason == "" || len(shape.Error.Causes) != 1 {
					t.Errorf("%s: %v %s", name, err, own.body)
				}
			}
		}
	})
}

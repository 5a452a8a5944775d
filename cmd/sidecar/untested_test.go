package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestUntestedVersions: a job that writes to stored documents asks the engine's version before anything else, and goes no further with one that is not
// tested; looking is allowed.
func TestUntestedVersions(t *testing.T) {
	for _, c := range []struct {
		version, args string
		refused       bool
	}{
		{"9.5.0", "reindex", true},
		{"9.5.0", "reindex --dry-run", false},
		{"9.5.0", "reindex --untested", false},
		{"9.4.7", "reindex", false},
		{"8.19.1", "reindex", false},
		{"9.41.0", "reindex", true},
		{"", "reindex", true},
		{"9.5.0", "verify", false},
		{"9.5.0", "verify --repair", true},
		{"9.5.0", "remove --index news-1 --yes", true},
		{"9.5.0", "remove --index news-1 --dry-run", false},
		{"9.5.0", "cluster --index news-1 --write", true},
		{"9.5.0", "cluster --index news-1", false},
	} {
		t.Run(c.version+" "+c.args, func(t *testing.T) {
			var wrote atomic.Bool
			engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Elastic-Product", "Elasticsearch")
				switch {
				case r.URL.Path == "/" && c.version == "":
					w.WriteHeader(http.StatusForbidden)
				case r.URL.Path == "/":
					_, _ = fmt.Fprintf(w, `{"version":{"number":%q},"tagline":"You Know, for Search"}`, c.version)
				case strings.Contains(r.URL.Path, "/_mapping/field/"):
					_, _ = fmt.Fprint(w, `{"news-1":{"mappings":{"neardup_sketch":{"mapping":{"neardup_sketch":{"type":"binary","doc_values":true}}}}}}`)
				default:
					wrote.Store(wrote.Load() || r.Method == http.MethodPut || strings.HasSuffix(r.URL.Path, "_bulk"))
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer engine.Close()
			file := write(t, fmt.Sprintf(`engines: [{kind: elasticsearch, listen: "127.0.0.1:0", urls: [%q], indices: [{match: news-1, fields: [t], native: true}]}]`, engine.URL))
			got := sidecar(t, append(strings.Fields(c.args), "--config", file)...)
			if refused := strings.Contains(got.stderr, "--untested"); refused != c.refused || c.refused && (got.code == 0 || wrote.Load()) {
				t.Errorf("code %d, wrote %t: %s", got.code, wrote.Load(), got.stderr)
			}
		})
	}
}

package elastic

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// TestRecognize shows it the first replies of engines, with and without credentials, and of strangers.
func TestRecognize(t *testing.T) {
	const (
		about = `{"cluster_uuid":"u","version":{"number":"%s"%s},"tagline":"%s"}`
		no    = `{"error":{"type":"security_exception","reason":"missing authentication credentials"},"status":401}`
	)
	elastic := map[string]string{"X-Elastic-Product": "Elasticsearch"}
	for _, c := range []struct {
		name   string
		status int
		header map[string]string
		body   string
		ours   bool
		want   adapters.Recognition
		fails  bool
	}{
		{"Elasticsearch", 200, elastic, fmt.Sprintf(about, "8.19.13", "", "You Know, for Search"), true,
			adapters.Recognition{Product: adapters.Product{Name: "Elasticsearch", Version: "8.19.13", Cluster: "u"}}, false},
		{"OpenSearch", 200, nil, fmt.Sprintf(about, "2.19.1", `,"distribution":"opensearch"`, "The OpenSearch Project: https://opensearch.org/"), true,
			adapters.Recognition{Product: adapters.Product{Name: "OpenSearch", Version: "2.19.1", Cluster: "u"}}, false},
		{"Elasticsearch, locked", 401, map[string]string{"WWW-Authenticate": `Basic realm="security", charset="UTF-8"`, "X-Elastic-Product": "Elasticsearch"}, no, true,
			adapters.Recognition{Product: adapters.Product{Name: "Elasticsearch"}, Locked: true}, false},
		{"OpenSearch, locked", 401, map[string]string{"WWW-Authenticate": `Basic realm="OpenSearch Security"`}, "Unauthorized", true,
			adapters.Recognition{Product: adapters.Product{Name: "OpenSearch"}, Locked: true}, false},
		{"known, and may not ask", 403, elastic, no, true, adapters.Recognition{Product: adapters.Product{Name: "Elasticsearch"}}, false},
		{"not ready", 503, elastic, `{"error":"no master"}`, true, adapters.Recognition{Product: adapters.Product{Name: "Elasticsearch"}}, true},
		{"Typesense", 404, nil, `{ "message": "Not Found"}`, false, adapters.Recognition{}, false},
		{"another API", 200, nil, `{"version":{"number":"1"}}`, false, adapters.Recognition{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := opened(func(w http.ResponseWriter, _ *http.Request) {
				for key, value := range c.header {
					w.Header().Set(key, value)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			got, ours, err := store.Recognize(t.Context())
			if ours != c.ours || (err != nil) != c.fails {
				t.Errorf("ours: %v, %v", ours, err)
			}
			expect.Same(t, c.want, got, "")
		})
	}
}

// TestProductOfAStranger is an error, whatever answers there.
func TestProductOfAStranger(t *testing.T) {
	for _, body := range []string{`{}`, `<html>`, `{"version":{}}`} {
		store := opened(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		if got, err := store.Product(t.Context()); err == nil {
			t.Errorf("%s is %+v", body, got)
		}
	}
}

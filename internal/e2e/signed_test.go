package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// arrived notes the requests that come to an engine as a signature sees them.
type arrived struct {
	next http.Handler
	mu   sync.Mutex
	list []string
}

// ServeHTTP implements http.Handler.
func (a *arrived) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.list = append(a.list, signedPart(r, body))
	a.mu.Unlock()
	for _, name := range []string{"Authorization", "X-Amz-Date"} {
		r.Header.Del(name)
	}
	query := r.URL.Query()
	for name := range query {
		if strings.HasPrefix(name, "X-Amz-") {
			query.Del(name)
		}
	}
	r.URL.RawQuery = query.Encode()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	a.next.ServeHTTP(w, r)
}

// signedPart is all of a request that a signature of AWS may be over.
func signedPart(r *http.Request, body []byte) string {
	lines := []string{r.Method + " " + r.URL.RequestURI(), r.Host, string(body)}
	for _, name := range []string{"Accept-Encoding", "Authorization", "Content-Type", "X-Amz-Content-Sha256", "X-Amz-Date"} {
		if value := r.Header.Get(name); value != "" && (name != "Accept-Encoding" || value != "gzip") { // which Go's client adds
			lines = append(lines, name+": "+value)
		}
	}
	return strings.Join(lines, "\n")
}

// TestSignedRequests sends requests that are signed, by a header or in the query, to an engine behind one that notes what arrives:
// each arrives once and as it was sent, no other does, and a search says why it is not collapsed.
func TestSignedRequests(t *testing.T) {
	real, index := engines.Shared(t, engines.OpenSearch), "satk-signed"
	engine := &arrived{next: relay(t, real)}
	gate := httptest.NewServer(engine)
	t.Cleanup(gate.Close)
	direct := api{real, real.URL}
	direct.drop(t, index)
	base := serve(t, &engines.Engine{Kind: real.Kind, URL: gate.URL}, setup{match: index})
	document := `{"title":"news","body":"` + victimText + `"}`
	call(t, real, "PUT", real.URL+"/"+index,
		`{"mappings":{"properties":{"title":{"type":"text"},"body":{"type":"text"}}}}`).want(t, 200)
	for _, c := range []struct {
		request, body, accept string
		status                int
	}{
		{"POST /_bulk?refresh=true", `{"index":{"_index":"` + index + `","_id":"b1"}}` + "\n" + document + "\n", "", 200},
		{"PUT /" + index + "/_doc/a%20b", document, "", 201},
		{"POST /" + index + "/_search?typed_keys=true", `{"size":3}`, "", 200},
		{"GET /" + index + "/_search?q=news&size=2", "", "", 200},
		{"POST /" + index + "/_search", `{"size":1}`, "br", 200},
		{"POST /_msearch", `{"index":"` + index + `"}` + "\n{}\n", "", 200},
		{"GET /" + index + "/_doc/b1", "", "zstd, br;q=0.5", 200},
		{"POST /" + index + "/_update/b1", `{"doc":{"title":"olds"}}`, "", 200},
		{"GET /" + index + "/_mapping", "", "", 200},
		{"GET /_neardup/" + index + "/similar/b1", "", "", 400},
		{"DELETE /" + index + "/_doc/a%20b", "", "", 200},
	} {
		for _, how := range []string{"header", "query"} {
			method, path, _ := strings.Cut(c.request, " ")
			path = strings.Replace(path, "a%20b", how+"%20b", 1)
			if how == "query" {
				path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] +
					"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20261122&X-Amz-SignedHeaders=host&X-Amz-Signature=ab12"
			}
			r := must(http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(c.body)))(t)
			r.Host = strings.TrimPrefix(gate.URL, "http://") // a client signs for the engine
			r.Header.Set("Content-Type", "application/json")
			if how == "header" {
				r.Header.Set("X-Amz-Date", "20261122T000000Z")
				r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
				r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261122/eu-central-1/es/aws4_request, "+
					"SignedHeaders=host, Signature=ab12")
			}
			if c.accept != "" {
				r.Header.Set("Accept-Encoding", c.accept)
			}
			engine.mu.Lock()
			engine.list = nil
			engine.mu.Unlock()
			resp := must(http.DefaultTransport.RoundTrip(r))(t)
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			name := c.request + ", signed by " + how
			engine.mu.Lock()
			if want := []string{signedPart(r, []byte(c.body))}; !slices.Equal(engine.list, want) {
				t.Errorf("%s: %q arrived, want %q", name, engine.list, want)
			}
			engine.mu.Unlock()
			same(t, c.status, resp.StatusCode, "%s: status, with %.300s", name, text)
			if got := resp.Header.Get("Neardup"); strings.Contains(path, "search") && got != "bypassed; reason=signed" {
				t.Errorf("%s: Neardup: %q", name, got)
			}
		}
	}
	direct.refresh(t, index)
	if values, found := oursStored(t, direct, index, "b1"); !found || strings.Contains(values, `"neardup_sketch"`) {
		t.Errorf("what was signed has been changed: %s", values)
	}
}

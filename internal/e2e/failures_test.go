package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestOversizedBody sends a bulk over the engine's limit, which it refuses, and one just below, which it takes though our sketches would
// cross the limit.
func TestOversizedBody(t *testing.T) {
	e, index := engines.Shared(t, engines.OpenSearch), "big-1"
	base := serve(t, e, setup{match: "big-*"})
	direct := api{e, e.URL}
	direct.create(t, index)
	const limit = 100 << 20
	for _, size := range []int{limit + 4096, limit - 4096} {
		body := bulkOf(index, size)
		status := post(t, base+"/_bulk", body)
		if want := map[bool]int{true: http.StatusRequestEntityTooLarge, false: http.StatusOK}[size > limit]; status != want {
			t.Errorf("%d bytes: status %d, want %d", size, status, want)
		}
	}
}

// post sends a large body and returns the status; an engine that cuts the connection under an upload refuses it as too large.
func post(t *testing.T, url, body string) int {
	t.Helper()
	resp, err := http.Post(url, "application/x-ndjson", strings.NewReader(body))
	if err != nil {
		t.Log(err)
		return http.StatusRequestEntityTooLarge
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// bulkOf returns a bulk of exactly size bytes.
func bulkOf(index string, size int) string {
	var b strings.Builder
	filler := strings.Repeat("many different words stand here to be read ", 2500)
	for i := 0; b.Len() < size-220_000; i++ {
		fmt.Fprintf(&b, "{\"index\":{\"_index\":%q,\"_id\":\"b%d\"}}\n{\"title\":\"document %d\",\"url\":\"x\",\"body\":%q}\n", index, i, i, filler)
	}
	fmt.Fprintf(&b, "{\"index\":{\"_index\":%q,\"_id\":\"last\"}}\n", index)
	const open, end = `{"title":"the last one of all","body":"`, "\"}\n"
	b.WriteString(open + strings.Repeat("x ", (size-b.Len()-len(open)-len(end))/2))
	b.WriteString(strings.Repeat("y", size-b.Len()-len(end)) + end)
	return b.String()
}

// TestMainJobDeadEngine has no engine behind the sidecar, which answers as a proxy does, 502 in the engine's own shape; then the engine comes back, and
// the same sidecar goes on.
func TestMainJobDeadEngine(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		dead := "http://" + l.Addr().String()
		l.Close()
		base := serve(t, e, setup{match: "dead-*", urls: []string{dead}})
		requests := []sending{{"GET", "/", "", nil}, {"GET", "/dead-1/_search", "", nil}, {"PUT", "/dead-1/_doc/1", `{"title":"a"}`, nil}}
		if e.Kind == engines.Typesense {
			requests = []sending{{"GET", "/health", "", nil}, {"GET", "/collections/dead-1/documents/search?q=a&query_by=b", "", nil},
				{"POST", "/collections/dead-1/documents", `{"title":"a"}`, nil}}
		}
		for _, r := range requests {
			got := call(t, e, r.method, base+r.path, r.body).want(t, 502)
			if !inShape(gotten{reply: got}) {
				t.Errorf("%s %s: %s", r.method, r.path, got.body)
			}
			if e.Kind == engines.Elasticsearch && got.header.Get("X-Elastic-Product") != "Elasticsearch" {
				t.Error("no X-Elastic-Product on an error of ours")
			}
		}
		there := must(url.Parse(e.URL))(t)
		l = must(net.Listen("tcp", l.Addr().String()))(t)
		back := &http.Server{Handler: httputil.NewSingleHostReverseProxy(there)}
		go back.Serve(l)
		defer back.Close()
		for until := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			got := call(t, e, "GET", base+requests[0].path, "")
			if got.status == 200 {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("the engine is back, the sidecar answers %d: %s", got.status, got.body)
			}
		}
	})
}

// TestSecondNode has a dead node before the live one.
func TestSecondNode(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	base := serve(t, e, setup{match: "x-*", urls: []string{"http://127.0.0.1:1", e.URL}})
	for range 5 {
		call(t, e, "GET", base+"/", "").want(t, 200)
	}
}

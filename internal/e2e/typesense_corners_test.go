package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// inFront starts a sidecar behind which a server of the test's own stands.
func inFront(t *testing.T, h http.Handler) (e *engines.Engine, base string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	e = &engines.Engine{Kind: engines.Typesense, URL: server.URL, Key: "xyz"}
	return e, serve(t, e, setup{match: "news-*"})
}

// kindsOfRequest are one of each kind.
var kindsOfRequest = [][3]string{
	{"GET", "/health"}, {"GET", "/collections"}, {"GET", "/collections/news-1"}, {"GET", "/collections/news-1/documents/1"}, {"GET",
		"/collections/news-1/documents/export"},
	{"GET", "/collections/news-1/documents/search?q=a&query_by=b"}, {"POST", "/multi_search",
		`{"searches":[{"collection":"news-1","q":"a","query_by":"b"}]}`},
	{"POST", "/multi_search?x-typesense-api-key=xyz", `{"searches":[]}`}, {"POST", "/collections", `{"name":"news-1"}`}, {"POST",
		"/collections/news-1/documents", `{"title":"a"}`},
	{"POST", "/collections/news-1/documents/import", `{"title":"a"}` + "\n" + `{"title":"b"}`}, {"PATCH",
		"/collections/news-1/documents/1", `{"title":"a"}`}, {"DELETE", "/collections/news-1/documents/1"},
}

// TestTypesenseDeadEngine has nothing, or something that hangs up, where the engine should be. The error is one that the server's
// clients know and that a browser may read.
func TestTypesenseDeadEngine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String()
	l.Close()
	e := &engines.Engine{Kind: engines.Typesense, URL: dead, Key: "xyz"}
	gone := serve(t, e, setup{match: "news-*"})
	_, hanging := inFront(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	for name, base := range map[string]string{"nothing there": gone, "hanging up": hanging} {
		for _, k := range kindsOfRequest {
			r := call(t, e, k[0], base+k[1], k[2], "Origin", "http://shop.example")
			var shape map[string]string
			if r.status != 502 || json.Unmarshal(r.body, &shape) != nil || shape["message"] == "" {
				t.Errorf("%s, %s %s: %d %s", name, k[0], k[1], r.status, r.body)
			}
			if r.header.Get("Access-Control-Allow-Origin") != "*" || r.header.Get("Content-Type") != "application/json; charset=utf-8" {
				t.Errorf("%s, %s %s: a browser may not read it: %v", name, k[0], k[1], r.header)
			}
		}
	}
}

// relay returns a handler that sends requests on to an engine, each whole.
func relay(t *testing.T, e *engines.Engine) http.Handler {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 9}}
	t.Cleanup(client.CloseIdleConnections)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		out, err := http.NewRequestWithContext(r.Context(), r.Method, e.URL+r.RequestURI, bytes.NewReader(body))
		if err != nil {
			panic(err)
		}
		out.Header = r.Header
		resp, err := client.Do(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		for key, values := range resp.Header {
			w.Header()[key] = values
		}
		w.WriteHeader(resp.StatusCode)
		if _, err := io.Copy(w, resp.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	})
}

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// inPath escapes a name for a path, in which this server takes a plus sign for a space.
func inPath(name string) string {
	return strings.NewReplacer("+", "%2B", "..", "%2e%2e", ".", "%2e").Replace(url.PathEscape(name))
}

// TestTypesenseIDs reads, changes and deletes documents whose ids, and a collection whose name, need escapes in a path.
func TestTypesenseIDs(t *testing.T) {
	p := newDuo(t, "")
	for i := range p.names {
		p.names[i] += " ä/+%3f"
		p.direct.drop(t, inPath(p.names[i]))
	}
	p.take(t, step{request: "POST /collections", body: factSchema, status: 201})
	escaped := func(i int, request string) string { return strings.ReplaceAll(request, "NAME", inPath(p.names[i])) }
	both := func(request, body string, status int) {
		t.Helper()
		var replies [2]reply
		for i := range replies {
			replies[i] = p.ask(t, i, escaped(i, request), body)
		}
		if p.alike(t, request, replies[0], replies[1]); replies[1].status != status {
			t.Errorf("%s: %d, want %d: %s", request, replies[1].status, status, replies[1].body)
		}
	}
	for _, id := range []string{"a/b", "a b", "a+b", "a%2Fb", "a%b", "ä😀", "a?b", "a#b", "..", ".", "a&b=c", `a"b`, `a\b`,
		"search;x", "import", "a,b", "a:b", "%", "a`b", "  "} {
		line, err := json.Marshal(map[string]any{"id": id, "title": "alpha " + id, "body": "some words that are its own: " + id})
		if err != nil {
			t.Fatal(err)
		}
		path := "/collections/NAME/documents/" + inPath(id)
		both("POST /collections/NAME/documents", string(line), 201)
		both("GET "+path, "", 200)
		both("PATCH "+path, `{"n":5}`, 201)
		if stored := p.ask(t, 0, escaped(1, "GET "+path), ""); !adapters.HasSketch(stored.body) {
			t.Errorf("%q has no sketch: %s", id, stored.body)
		}
		both("PATCH "+path, `{"title":"another"}`, 201)
		if stored := p.ask(t, 0, escaped(1, "GET "+path), ""); adapters.HasSketch(stored.body) {
			t.Errorf("%q keeps the sketch of another text: %s", id, stored.body)
		}
		both("DELETE "+path, "", 200)
		both("GET "+path, "", 404)
	}
	both("GET /collections/NAME", "", 200)
	both("GET /collections/NAME/documents/search?q=alpha&query_by=title", "", 200)
}

// TestTypesenseParametersOverThePath names in the query what the path names too: there this server goes by the query.
func TestTypesenseParametersOverThePath(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	const title = "/documents/search?q=alpha&query_by=title"
	for i := range p.names {
		other := "other-" + p.names[i]
		p.direct.drop(t, other)
		call(t, p.direct.e, "POST", p.direct.base+"/collections", `{"name":"`+other+`","fields":[{"name":".*","type":"auto"}]}`).want(t,
			201)
	}
	for _, s := range []step{
		{request: "GET /collections/other-NAME" + title + "&collection=NAME", status: 200, has: `"found":3`},
		{request: "GET /collections/NAME" + title + "&collection=other-NAME", status: 404},
		{request: "GET /collections/other-NAME/documents/x?collection=NAME&id=1", status: 200, has: "harbour"},
		{request: "GET /collections/NAME/documents/x?id=1", status: 200, has: "harbour"},
		{request: "GET /collections/other-NAME/documents/export?collection=NAME", status: 200, has: "harbour"},
		{request: "GET /collections/other-NAME?collection=NAME", status: 200, has: `"name":"NAME"`},
		{request: "POST /collections/other-NAME/documents?action=upsert&collection=NAME",
			body: `{"id":"9","title":"alpha nine","body":"of nine words in all, or about that many"}`, status: 201},
		{request: "POST /collections/other-NAME/documents/import?action=update&collection=NAME&return_doc=true",
			body: `{"id":"1","title":"alpha one"}`, status: 200, has: `"title":"alpha one"`},
		{request: "PATCH /collections/other-NAME/documents/x?collection=NAME&id=2", body: `{"title":"alpha two"}`, status: 201,
			has: `"title":"alpha two"`},
		{request: "POST /collections/NAME/documents?collection=other-NAME", body: factDocuments[2], status: 201},
		{request: "GET /collections/other-NAME", status: 200, has: `"num_documents":1`},
		{request: "DELETE /collections/other-NAME/documents/x?collection=NAME&id=3", status: 200, has: "owls"},
	} {
		p.take(t, s)
	}
	p.sketched(t, "9")
	p.unsketched(t, "1", "2")
}

// TestTypesenseBodyTypes sends the same JSON under other types.
func TestTypesenseBodyTypes(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	search := `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}`
	for i, kind := range []string{"application/json", "text/plain", "text/plain;charset=UTF-8", "application/octet-stream",
		"application/x-www-form-urlencoded", "nonsense", ""} {
		for _, request := range []string{multi, multi + "?use_cache=false"} {
			r := p.both(t, request, search, "Content-Type", kind)
			if got := r.header.Get("Neardup"); r.status != 200 || !strings.HasPrefix(got, "collapsed;") {
				t.Errorf("%q: %d %s", kind, r.status, got)
			}
		}
		id := fmt.Sprint("x", i)
		p.both(t, "POST /collections/NAME/documents", `{"id":"`+id+`","title":"beta with many words"}`, "Content-Type", kind)
		p.both(t, "POST /collections/NAME/documents/import?action=emplace",
			`{"id":"`+id+`","title":"beta with other words","body":"and a body"}`, "Content-Type", kind)
		p.sketched(t, id)
	}
}

// TestTypesenseHeadThenWrite has a write follow on HEAD, to which this server sends a body that HTTP does not know.
func TestTypesenseHeadThenWrite(t *testing.T) {
	p := newDuo(t, factSchema)
	for i := range 60 {
		if r := p.ask(t, 1, "HEAD /collections/NAME", ""); r.status != 404 {
			t.Fatalf("HEAD: %d", r.status)
		}
		if r := p.ask(t, 1, "POST /collections/NAME/documents", fmt.Sprintf(`{"id":"%d","title":"alpha"}`, i)); r.status != 201 {
			t.Fatalf("the write behind it: %d %s", r.status, r.body)
		}
	}
}

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

// TestTypesenseEngineErrors has an engine that is lagging, overloaded or broken: its answer is the answer, and it is asked once.
func TestTypesenseEngineErrors(t *testing.T) {
	var status, searches atomic.Int32
	e, base := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "search") {
			searches.Add(1)
		}
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, `{ "message": "Not Ready or Lagging"}`)
	}))
	for _, s := range []int32{401, 403, 408, 429, 500, 503} {
		status.Store(s)
		for _, k := range kindsOfRequest {
			before := searches.Load()
			r := call(t, e, k[0], base+k[1], k[2])
			if r.status != int(s) || string(r.body) != `{ "message": "Not Ready or Lagging"}` ||
				r.header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%d, %s %s: %d %v %s", s, k[0], k[1], r.status, r.header, r.body)
			}
			if n := searches.Load() - before; n > 1 {
				t.Errorf("%d, %s %s: the engine was asked %d times", s, k[0], k[1], n)
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

// TestTypesenseSlowEngine has an engine that takes its time, and clients that wait or don't.
func TestTypesenseSlowEngine(t *testing.T) {
	real := engines.Shared(t, engines.Typesense)
	var slow atomic.Bool
	left := make(chan string, 9)
	engine := relay(t, real)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slow.Load() && strings.HasSuffix(r.URL.Path, "search") {
			body, _ := io.ReadAll(r.Body) // else a closed connection is not seen
			r.Body = io.NopCloser(bytes.NewReader(body))
			select {
			case <-time.After(700 * time.Millisecond):
			case <-r.Context().Done():
				left <- r.URL.Path
				return
			}
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	p := &duo{direct: api{real, real.URL}, through: api{real, serve(t, real, setup{match: ownPrefix("t") + "*",
		urls: []string{front.URL}})}}
	p = p.renew(t, factSchema, factDocuments...)
	slow.Store(true)
	p.take(t, step{request: searched + "?q=alpha&query_by=title", status: 200, has: `"found":3`})
	for _, request := range []string{searched + "?q=alpha&query_by=title", multi} {
		method, path, _ := strings.Cut(p.named(1, request), " ")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, p.through.base+path, strings.NewReader(p.named(1,
			`{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}`)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Typesense-Api-Key", real.Key)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
			t.Errorf("%s: answered in time: %d", request, resp.StatusCode)
		}
		select {
		case <-left:
		case <-time.After(5 * time.Second):
			t.Errorf("%s: the client is gone, and the engine still works for it", request)
		}
	}
	slow.Store(false)
	p.take(t, step{request: searched + "?q=alpha&query_by=title", status: 200, has: `"found":3`})
}

// TestTypesenseClientGoneInAnExport has a client leave an export without an end: the engine is let go too.
func TestTypesenseClientGoneInAnExport(t *testing.T) {
	ended := make(chan struct{})
	line := []byte(`{"id":"1","neardup_sketch":"` + strings.Repeat("A", 200) + `","title":"alpha"}` + "\n")
	_, base := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "export") {
			_, _ = io.WriteString(w, `{"name":"news-1","fields":[{"name":"neardup_sketch","type":"string","index":false}]}`)
			return
		}
		defer close(ended)
		w.Header().Set("Content-Type", "application/octet-stream")
		for many := bytes.Repeat(line, 300); r.Context().Err() == nil; {
			if _, err := w.Write(many); err != nil {
				return
			}
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", base+"/collections/news-1/documents/export", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	head := make([]byte, 1<<20)
	if _, err := io.ReadFull(resp.Body, head); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(head, []byte("neardup")) || !bytes.HasPrefix(head, []byte(`{"id":"1","title":"alpha"}`+"\n")) {
		t.Errorf("%.200s", head)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the client is gone, and the engine still sends")
	}
}

package proxy_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// arrival is a request as it came to an engine.
type arrival struct {
	method, uri string
	header      http.Header
	body        []byte
	length      int64 // -1 where it came in chunks
	err         error // of reading the body
}

func (a arrival) String() string { return a.method + " " + a.uri }

// engine is an engine that knows its indices and how our field is mapped, and leaves all else to answer. It stands in for a real one
// where a fault or an odd reply is wanted.
type engine struct {
	answer func(w http.ResponseWriter, a arrival) // nil answers {}
	// refuse, if set, is asked before any look-up or preparation; a status other than 0 is the answer.
	refuse func(a arrival) int

	mu      sync.Mutex
	log     []arrival
	indices map[string]bool // and whether our field is mapped
}

func newEngine(indices ...string) *engine {
	e := &engine{indices: map[string]bool{}}
	for _, name := range indices {
		e.indices[name] = true
	}
	return e
}

// ServeHTTP implements http.Handler.
func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	a := arrival{r.Method, r.RequestURI, r.Header.Clone(), body, r.ContentLength, err}
	e.mu.Lock()
	e.log = append(e.log, a)
	e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	switch {
	case e.lookedUp(w, a):
	case e.answer != nil:
		e.answer(w, a)
	default:
		io.WriteString(w, "{}")
	}
}

// ours reports whether a request was made by the sidecar on its own account.
func (a arrival) ours() bool {
	return strings.Contains(a.uri, "/_mapping") || strings.HasPrefix(a.uri, "/_cluster") || strings.HasPrefix(a.uri, "/_index_template") || a.method == "GET" && strings.HasPrefix(a.uri, "/_template") ||
		strings.Contains(a.uri, "flat_settings=true") || strings.HasPrefix(a.uri, "/_alias/") ||
		a.method == "PUT" && strings.Count(a.uri, "/") == 1
}

// beside answers what the sidecar asks on its own account as the engine, and leaves clients' requests, unread, to another.
func (e *engine) beside(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if (arrival{method: r.Method, uri: r.RequestURI}).ours() {
			e.ServeHTTP(w, r)
			return
		}
		answer(w, r)
	}
}

func (e *engine) lookedUp(w http.ResponseWriter, a arrival) bool {
	if !a.ours() {
		return false
	}
	if e.refuse != nil {
		if status := e.refuse(a); status != 0 {
			w.WriteHeader(status)
			io.WriteString(w, `{"error":{"type":"security_exception","reason":"no"},"status":403}`)
			return true
		}
	}
	path, _, _ := strings.Cut(a.uri, "?")
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	name = strings.ReplaceAll(name, "%2A", "*")
	if name == "_mapping" {
		name = "*"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case name == "_cluster":
		io.WriteString(w, `{"defaults":{"action.auto_create_index":"true"}}`)
	case name == "_template":
		io.WriteString(w, `{}`)
	case name == "_index_template":
		io.WriteString(w, `{"index_templates":[]}`)
	case a.method == "PUT":
		e.indices[name] = e.indices[name] || strings.Contains(string(a.body), rule.SketchField)
		io.WriteString(w, `{"acknowledged":true}`)
	case strings.Contains(a.uri, "flat_settings=true"):
		fmt.Fprintf(w, `{%q:{"settings":{},"mappings":{}}}`, name)
	case name == "_alias":
		w.WriteHeader(http.StatusNotFound)
	default:
		e.mappings(w, name)
	}
	return true
}

func (e *engine) mappings(w http.ResponseWriter, name string) {
	found := map[string]any{}
	for index, mapped := range e.indices {
		if !rule.Matches(name, index) {
			continue
		}
		fields := map[string]any{}
		if mapped {
			fields[rule.SketchField] = map[string]any{"mapping": map[string]any{rule.SketchField: map[string]any{"type": "binary", "doc_values": true}}}
		}
		found[index] = map[string]any{"mappings": fields}
	}
	if len(found) == 0 {
		w.WriteHeader(http.StatusNotFound)
	}
	json.NewEncoder(w).Encode(found)
}

// arrived returns what came of the clients' own requests; lookups returns what came of ours.
func (e *engine) arrived() []arrival { return e.filter(func(a arrival) bool { return !a.ours() }) }

// last returns the newest of the clients' own requests.
func (e *engine) last() arrival {
	got := e.arrived()
	return got[len(got)-1]
}

func (e *engine) lookups() []arrival { return e.filter(arrival.ours) }

func (e *engine) filter(keep func(arrival) bool) []arrival {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []arrival
	for _, a := range e.log {
		if keep(a) {
			list = append(list, a)
		}
	}
	return list
}

func (e *engine) set(index string, mapped bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.indices[index] = mapped
}

func (e *engine) drop(index string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.indices, index)
}

// front is a sidecar before engines.
type front struct {
	*proxy.Handler
	url    string
	log    *lines
	behind *httptest.Server
}

// counted returns what a series of the metrics has come to.
func (f front) counted(t testing.TB, series string) int64 {
	t.Helper()
	return int64(exported(t, f.Metrics)[series])
}

// unreachable is what the log says of an engine that gave no answer.
const unreachable = "engine unreachable"

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// rule sketches the title of news-*.
func newRule(t testing.TB) *rule.Rule {
	t.Helper()
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	return &rule.Rule{Match: "news-*", Fields: []string{"title"}, Profile: rerank.Profile{Threshold: 0.8}, Window: 100, Sketcher: sketcher}
}

// handler returns a sidecar that needs no network of its own in front of the nodes.
func handler(t testing.TB, nodes []string, change func(*proxy.Engine)) front {
	t.Helper()
	log := &lines{}
	e := proxy.Engine{
		Dialect: elastic.Dialect{}, Rules: rule.Rules{newRule(t)}, Transport: proxy.NewTransport(),
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, node := range nodes {
		e.URLs = append(e.URLs, expect.Value(url.Parse(node))(t))
	}
	if change != nil {
		change(&e)
	}
	if e.Open == nil {
		open := elastic.Dialect{}.Open(e.Transport, e.URLs, e.Rules)
		e.Open = func(h adapters.Header, query string) adapters.Store { return open(h, query) }
	}
	return front{Handler: expect.Value(proxy.New(e))(t), log: log}
}

// serve starts an engine and a sidecar in front of it.
func serve(t testing.TB, e http.Handler, change func(*proxy.Engine)) front {
	t.Helper()
	behind := httptest.NewServer(e)
	t.Cleanup(behind.Close)
	f := serveNodes(t, []string{behind.URL}, change)
	f.behind = behind
	return f
}

func serveNodes(t testing.TB, nodes []string, change func(*proxy.Engine)) front {
	t.Helper()
	f := handler(t, nodes, change)
	server := httptest.NewUnstartedServer(f.Handler)
	server.Config.DisableGeneralOptionsHandler = true
	server.Start()
	t.Cleanup(server.Close)
	if transport, ok := f.Transport.(interface{ CloseIdleConnections() }); ok {
		t.Cleanup(transport.CloseIdleConnections)
	}
	f.url = server.URL
	return f
}

// client adds nothing to what it is told to send.
var client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}, Timeout: 30 * time.Second}

// answer is a reply that was read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request with the headers, given as "Name: value".
func do(t testing.TB, method, url, body string, headers ...string) answer {
	t.Helper()
	return expect.Value(try(t, method, url, strings.NewReader(body), headers...))(t)
}

func try(t testing.TB, method, url string, body io.Reader, headers ...string) (answer, error) {
	t.Helper()
	r := expect.Value(http.NewRequestWithContext(t.Context(), method, url, body))(t)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	if body != nil && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(got)}, err
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

func unzipped(t testing.TB, s string) string {
	t.Helper()
	z := expect.Value(gzip.NewReader(strings.NewReader(s)))(t)
	return string(expect.Value(io.ReadAll(z))(t))
}

// bulk returns a bulk of n documents for an index.
func bulk(index string, n int) string { return padded(index, n, func() string { return "" }) }

// fat returns a bulk of n documents of about 8 kB each, of which gzip makes half at best.
func fat(index string, n int) string {
	noise, random := make([]byte, 4<<10), rand.NewChaCha8([32]byte{1})
	return padded(index, n, func() string {
		random.Read(noise)
		return hex.EncodeToString(noise)
	})
}

func padded(index string, n int, pad func() string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n", index, i)
		fmt.Fprintf(&b, "{\"title\":\"the story number %d of the day as it was told\",\"n\":%d,\"pad\":\"%s\"}\n", i, i, pad())
	}
	return b.String()
}

// uris returns the requests without their bodies.
func uris(list []arrival) []string {
	out := []string{}
	for _, a := range list {
		out = append(out, a.String())
	}
	return out
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("%s: not within a minute", what)
}

// count returns how many of the requests have the method and hold the part in their URI.
func count(list []arrival, method, part string) int {
	return len(slices.DeleteFunc(slices.Clone(list), func(a arrival) bool { return a.method != method || !strings.Contains(a.uri, part) }))
}

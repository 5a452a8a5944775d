package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// asking sends a GET to the admin listener under a host, "" for its own.
func asking(t *testing.T, url, host string, header ...string) (int, http.Header, string) {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), "GET", url, nil))(t)
	if host != "" {
		r.Host = host
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got := must(exchange(http.DefaultClient, r))(t)
	return got.status, got.header, string(got.body)
}

// TestAdminPages asks the built program for each page.
func TestAdminPages(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	node := strings.TrimPrefix(e.URL, "http://")
	w := monitor(t, config(t, e, setup{match: "x-*", urls: []string{e.URL, "http://127.0.0.1:1"}}), nil)
	for _, c := range []struct {
		path, host string
		header     []string
		status     int
		has        []string
	}{
		{"/livez", "", nil, 200, []string{"ok"}},
		{"/readyz", "", nil, 200, []string{"engine elasticsearch: ok"}},
		{"/readyz?verbose", "", nil, 200, []string{"[+] engine elasticsearch: ok", "http://" + node + ": answers ", "http://127.0.0.1:1: dial", "[+] config", "\nready"}},
		{"/version", "", nil, 200, []string{"sidecar "}},
		{"/version?output=json", "", nil, 200, []string{`"go": "go1.`}},
		{"/version", "", []string{"Accept", "application/json"}, 200, []string{`"version": "`}},
		{"/", "", nil, 200, []string{`href="/metrics"`, `href="/readyz?verbose"`}},
		{"/metrics", "", nil, 200, []string{"neardup_build_info{", "go_goroutines", "process_open_fds"}},
		{"/nothing", "", nil, 404, nil},
		{"/debug/pprof/", "", nil, 404, nil},
		// Names under which a page of a stranger can't have come here, and one under which it can.
		{"/metrics", "localhost:1", nil, 200, nil},
		{"/metrics", "[::1]:7610", nil, 200, nil},
		{"/metrics", "sidecar", nil, 200, nil},
		{"/metrics", "sidecar.search.svc", nil, 200, nil},
		{"/metrics", "sidecar.search.svc.cluster.local:7610", nil, 200, nil},
		{"/metrics", "rebound.example.com", nil, 421, nil},
		{"/metrics", "127.0.0.1.example.com:7610", nil, 421, nil},
		{"/", "rebound.example.com", nil, 421, nil},
		{"/version", "rebound.example.com", nil, 421, nil},
		{"/livez", "health.example.com", nil, 200, []string{"ok"}},
	} {
		status, header, body := asking(t, w.admin+c.path, c.host, c.header...)
		same(t, c.status, status, "%s of %q", c.path, c.host)
		for _, text := range c.has {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not say %q: %s", c.path, text, body)
			}
		}
		for _, name := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Cache-Control", "X-Frame-Options", "Referrer-Policy"} {
			if header.Get(name) == "" {
				t.Errorf("%s has no %s", c.path, name)
			}
		}
	}
	if _, _, body := asking(t, w.admin+"/readyz?verbose", "rebound.example.com"); strings.Contains(body, node) {
		t.Errorf("a stranger's page is shown %s", body)
	}
	if resp, err := http.Post(w.admin+"/metrics", "text/plain", strings.NewReader("x")); err != nil || resp.StatusCode != 405 {
		t.Errorf("POST: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	w.stop(t)
}

// monitored is a sidecar whose admin listener and log are looked at.
type monitored struct {
	*daemon
	base, admin string
}

// monitor starts a sidecar with a configuration file. It ends with the test, or by stop.
func monitor(t *testing.T, file string, env []string, args ...string) *monitored {
	t.Helper()
	d := &daemon{file: file, cmd: command(t, context.Background(), append([]string{"serve", "--config", file}, args...)...)}
	d.cmd.Env = append(os.Environ(), env...)
	d.start(t)
	engine, admin := d.await(t, "listening", 1), d.await(t, "admin listening", 1)
	return &monitored{d, fmt.Sprint("http://", engine[0]["addr"]), fmt.Sprint("http://", admin[0]["addr"])}
}

func (w *monitored) lines() (list []string) {
	for _, line := range w.with("") {
		list = append(list, fmt.Sprint(line))
	}
	return list
}

// stop ends the sidecar in an orderly way, and returns how long that took.
func (w *monitored) stop(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	w.signal(t, syscall.SIGTERM)
	same(t, 0, w.ended(t), "the exit code of serve: %s", w.lines())
	return time.Since(began)
}

// scraped returns the page of metrics, and the value of each series by its name and labels.
func scraped(t *testing.T, admin string) (text string, series map[string]float64) {
	t.Helper()
	status, text := statusAt(t, admin+"/metrics")
	expect.Must(t, 200, status, "%s", text)
	series = map[string]float64{}
	for line := range strings.Lines(text) {
		if name, value, found := cutLast(strings.TrimSpace(line), " "); found && !strings.HasPrefix(line, "#") {
			series[name] = must(strconv.ParseFloat(value, 64))(t)
		}
	}
	return text, series
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// TestMetricsOfEngines: what a real engine's traffic shows on /metrics of the built program: what was sent, and nothing of what
// it said.
func TestMetricsOfEngines(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		const index = "meter-canary"
		w := monitor(t, config(t, e, setup{match: "meter-*"}), nil)
		through := api{e, w.base}
		through.create(t, index)
		list := documents(t)[:120]
		through.load(t, index, list)
		found := through.search(t, index, "*", 0, 10, "")
		through.search(t, index, "canaryword", 0, 10, "&neardup=off")
		folded := 0
		if _, rest, ok := strings.Cut(found.outcome, "folded="); ok {
			_, _ = fmt.Sscanf(rest, "%d", &folded)
		}
		var text string
		var series map[string]float64
		of := func(name, labels string) float64 {
			return series["neardup_"+name+"{"+strings.Replace(labels, "ENGINE", fmt.Sprintf("engine=%q", e.Kind), 1)+"}"]
		}
		until(func() bool { // the last request's client has its answer before we are done with it
			text, series = scraped(t, w.admin)
			return of("requests_in_flight", "ENGINE") == 0
		})
		for name, want := range map[string][2]float64{
			"documents enriched": {of("documents_total", `change="enriched",ENGINE`), float64(len(list))},
			"searches":           {of("requests_total", `ENGINE,kind="search"`), 2},
			"searches timed":     {of("engine_seconds_count", `ENGINE,kind="search"`), 2},
			"ours timed":         {of("added_seconds_count", `ENGINE,kind="search"`), 2},
			"collapsed":          {of("searches_total", `ENGINE,outcome="collapsed",reason=""`), 1},
			"off":                {of("searches_total", `ENGINE,outcome="bypassed",reason="off"`), 1},
			"folded":             {of("folded_total", "ENGINE"), float64(folded)},
			"under way":          {of("requests_in_flight", "ENGINE"), 0},
			"held":               {of("held_bytes", "ENGINE"), 0},
			"errors":             {of("engine_errors_total", `ENGINE,what="cut"`), 0},
		} {
			same(t, want[1], want[0], "%s", name)
		}
		if of("hits_total", `ENGINE,sketch="stored"`) < 10 || of("engine_seconds_sum", `ENGINE,kind="write"`) <= 0 {
			t.Errorf("%s", text)
		}
		for _, canary := range []string{"canary", list[0].Title, e.Key + "\"", "127.0.0.1"} {
			if canary != "\"" && strings.Contains(text, canary) {
				t.Errorf("the page holds %q", canary)
			}
		}
		w.stop(t)
	})
}

// receiver takes spans by OTLP over HTTP.
type receiver struct {
	mu       sync.Mutex
	raw      bytes.Buffer
	spans    []*traces.Span
	resource string
	header   http.Header
}

// ServeHTTP implements http.Handler.
func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		w.WriteHeader(400)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	c.header = r.Header.Clone()
	for _, resource := range sent.ResourceSpans {
		c.resource = fmt.Sprint(resource.Resource)
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func attributeOf(s *traces.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key != key {
			continue
		}
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			return v.StringValue
		case *common.AnyValue_IntValue:
			return fmt.Sprint(v.IntValue)
		}
	}
	return ""
}

// noting stands in front of an engine and notes the headers of requests by their paths, and of all for the empty one.
func noting(t *testing.T, e *engines.Engine) (base string, noted func(path string) []http.Header) {
	t.Helper()
	pass := relay(t, e)
	var mu sync.Mutex
	by := map[string][]http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		by[r.URL.Path] = append(by[r.URL.Path], r.Header.Clone())
		by[""] = append(by[""], r.Header.Clone())
		mu.Unlock()
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func(path string) []http.Header {
		mu.Lock()
		defer mu.Unlock()
		return by[path]
	}
}

// traced returns a configuration file with a section traces.
func traced(t *testing.T, file, section string) string {
	t.Helper()
	text := must(os.ReadFile(file))(t)
	check(t, os.WriteFile(file, append(text, "traces: "+section+"\n"...), 0o600))
	return file
}

const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan   = "00f067aa0ba902b7"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

// TestTraces decodes what the built program exports of a request to a real engine, whose parent is the client's span.
func TestTraces(t *testing.T) {
	onEach(t, true, []string{engines.OpenSearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		const index = "traced-canary"
		c := &receiver{}
		at := httptest.NewServer(c)
		defer at.Close()
		node, noted := noting(t, e)
		file := traced(t, config(t, e, setup{match: "traced-*", urls: []string{node}}), `{endpoint: "`+at.URL+`", sample: 0}`)
		w := monitor(t, file, []string{"OTEL_SERVICE_NAME=", "OTEL_EXPORTER_OTLP_HEADERS=x-tenant=blue", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=proof"})
		through := api{e, w.base}
		through.create(t, index, documents(t)[:60]...)
		path, body := "/"+index+"/_search", `{"query":{"match":{"title":"canaryquery"}}}`
		if through.typesense() {
			path, body = "/collections/"+index+"/documents/search?q=canaryquery&query_by=title", ""
		}
		call(t, e, map[bool]string{true: "GET", false: "POST"}[body == ""], w.base+path, body, "Traceparent", clientParent, "Tracestate", "vendor=state",
			"Authorization", "").want(t, 200)
		unsampled := strings.TrimSuffix(clientParent, "1") + "0"
		call(t, e, "GET", w.base+"/health/unsampled", "", "Traceparent", unsampled)
		if took := w.stop(t); took > 30*time.Second {
			t.Errorf("the end took %v", took)
		}

		c.mu.Lock()
		defer c.mu.Unlock()
		var server *traces.Span
		var asked []*traces.Span
		for _, s := range c.spans {
			switch {
			case hex.EncodeToString(s.TraceId) != clientTrace:
				t.Errorf("a span of another trace: %v", s)
			case s.Kind == traces.Span_SPAN_KIND_SERVER:
				server = s
			case s.Kind == traces.Span_SPAN_KIND_CLIENT:
				asked = append(asked, s)
			}
		}
		if server == nil || len(asked) == 0 || len(c.spans) != len(asked)+1 {
			t.Fatalf("%v", c.spans)
		}
		if hex.EncodeToString(server.ParentSpanId) != clientSpan || attributeOf(server, "neardup.kind") != "search" ||
			attributeOf(server, "http.response.status_code") != "200" || attributeOf(server, "neardup.engine") != e.Kind {
			t.Errorf("%v", server)
		}
		searched := false
		for _, s := range asked {
			if !bytes.Equal(s.ParentSpanId, server.SpanId) || attributeOf(s, "db.system.name") != e.Kind || attributeOf(s, "db.operation.name") == "" ||
				attributeOf(s, "server.address") == "" || s.StartTimeUnixNano < server.StartTimeUnixNano || s.EndTimeUnixNano > server.EndTimeUnixNano {
				t.Errorf("%v", s)
			}
			searched = searched || attributeOf(s, "db.operation.name") == "search"
		}
		if !searched {
			t.Errorf("%v", asked)
		}
		for _, secret := range []string{"canary", "Authorization", "traced-", e.Key + "\""} {
			if secret != "\"" && bytes.Contains(c.raw.Bytes(), []byte(secret)) {
				t.Errorf("the spans hold %q", secret)
			}
		}
		if c.header.Get("X-Tenant") != "blue" || !strings.Contains(c.resource, "neardup-sidecar") || !strings.Contains(c.resource, "proof") {
			t.Errorf("%v %s", c.header, c.resource)
		}
		ours := false
		for _, header := range noted("") {
			got := header.Get("Traceparent")
			ours = ours || slices.ContainsFunc(asked, func(s *traces.Span) bool {
				return got == "00-"+clientTrace+"-"+hex.EncodeToString(s.SpanId)+"-01" && header.Get("Tracestate") == "vendor=state"
			})
		}
		if !ours {
			t.Errorf("the engine got %v", noted(""))
		}
		if got := noted("/health/unsampled"); len(got) != 1 || got[0].Get("Traceparent") != unsampled {
			t.Errorf("one that is not recorded came as %v", got)
		}
	})
}

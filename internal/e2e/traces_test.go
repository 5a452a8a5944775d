package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/neardup/sidecar/internal/engines"
)

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
	atOnce(t, []string{engines.OpenSearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		const index = "traced-canary"
		c := &receiver{}
		at := httptest.NewServer(c)
		defer at.Close()
		node, noted := noting(t, e)
		file := traced(t, config(t, e, setup{match: "traced-*", urls: []string{node}}), `{endpoint: "`+at.URL+`", sample: 0}`)
		w := monitor(t, file, []string{"OTEL_SERVICE_NAME=", "OTEL_EXPORTER_OTLP_HEADERS=x-tenant=blue", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=proof"})
		through := api{e, w.base}
		through.create(t, index)
		through.load(t, index, documents(t)[:60])
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

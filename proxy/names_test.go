package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/expect"
)

const sketchMapping = `{"type":"binary","doc_values":true%s}`

// declaredIn is how our field is mapped in an index, by a template or not.
func declaredIn(index string, byTemplate bool) string {
	mark := ""
	if byTemplate {
		mark = `,"meta":{"declared_by":"template"}`
	}
	return fmt.Sprintf(`%q:{"mappings":{"neardup_sketch":{"mapping":{"neardup_sketch":`+sketchMapping+`}}}}`, index, mark)
}

// scripted is an engine that answers look-ups from a list and keeps what clients send.
type scripted struct {
	look map[string]string // by the path, to what is asked of it with GET
	mu   sync.Mutex
	log  []string // of all else: method, path and body
}

// ServeHTTP implements http.Handler.
func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	if r.Method == "GET" {
		body, ok := s.look[r.URL.EscapedPath()]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			body = "{}"
		}
		io.WriteString(w, body)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.log = append(s.log, r.Method+" "+r.URL.EscapedPath()+" "+string(body))
	s.mu.Unlock()
	if r.URL.Path == "/news-refused" {
		w.WriteHeader(http.StatusBadRequest)
	}
	io.WriteString(w, `{"acknowledged":true}`)
}

const fieldPath = "/_mapping/field/neardup_sketch"

// TestNamesThatMove: through a name that the engine leads to new indices by itself no sketch is sent, unless their template
// declares our field; what a partial document makes stale is cleared all the same.
func TestNamesThatMove(t *testing.T) {
	for _, byTemplate := range []bool{false, true} {
		s := &scripted{look: map[string]string{
			"/news" + fieldPath: "{" + declaredIn("news-000001", false) + "," + declaredIn("news-000002", byTemplate) + "}",
			"/_alias/news":      `{"news-000001":{"aliases":{"news":{}}},"news-000002":{"aliases":{"news":{"is_write_index":true}}}}`,
			"/news-000002":      `{"news-000002":{"settings":{"index.lifecycle.name":"p"},"mappings":{}}}`,
		}}
		f := near(t, s)
		f.ask("POST", "/news/_bulk", "{\"index\":{}}\n{\"title\":\"a b c\",\"neardup_sketch\":\"forged\"}\n{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"title\":\"a b\"}}\n")
		got := s.log[len(s.log)-1]
		switch sketches, nulls := strings.Count(got, `"neardup_sketch":"`), strings.Count(got, `"neardup_sketch":null`); {
		case strings.Contains(got, "forged"):
			t.Errorf("byTemplate=%v: a client's own value went on: %s", byTemplate, got)
		case byTemplate && sketches != 2, !byTemplate && (sketches != 0 || nulls != 1):
			t.Errorf("byTemplate=%v: %d sketches and %d nulls: %s", byTemplate, sketches, nulls, got)
		}
		counts := exported(t, f.Metrics)
		want := map[bool][]float64{true: {2, 0, 0}, false: {0, 1, 1}}[byTemplate]
		expect.Same(t, want, []float64{counts["documents_total change=enriched"], counts["documents_total change=unprepared"], counts["documents_total change=cleared"]}, "byTemplate=%v", byTemplate)
		expect.Same(t, !byTemplate, strings.Contains(f.log.String(), "run setup"), "byTemplate=%v: to run setup is in the log: %s", byTemplate, f.log)
	}
}

// TestOlderIndicesOfAnAlias: a write goes to one index of an alias, so that the others need neither a rule nor our field.
func TestOlderIndicesOfAnAlias(t *testing.T) {
	s := &scripted{look: map[string]string{
		"/all" + fieldPath: `{"old-1":{"mappings":{}},` + declaredIn("news-2", false) + "}",
		"/_alias/all":      `{"old-1":{"aliases":{"all":{}}},"news-2":{"aliases":{"all":{"is_write_index":true}}}}`,
		"/news-2":          `{"news-2":{"settings":{},"mappings":{}}}`,
	}}
	f := near(t, s)
	f.ask("PUT", "/all/_doc/1", `{"title":"a b c"}`)
	if diff := cmp.Diff([]string{`PUT /all/_doc/1 {"title":"a b c"}`}, s.log); diff == "" || enriched([]byte(s.log[0])) != 1 {
		t.Errorf("the engine got %q", s.log)
	}
}

// TestCreationThroughUs: when the client knows of its new index, our field is declared there; the client's request and the reply
// are as they were.
func TestCreationThroughUs(t *testing.T) {
	s := &scripted{look: map[string]string{
		"/news-1" + fieldPath: `{"news-1":{"mappings":{}}}`, "/news-1": `{"news-1":{"settings":{"index.mapping.total_fields.limit":"3"},"mappings":{}}}`,
		"/logs-1" + fieldPath: `{"logs-1":{"mappings":{}}}`, "/logs-1": `{"logs-1":{"settings":{},"mappings":{}}}`,
	}}
	f := serve(t, s, nil)
	for _, path := range []string{"/news-1", "/logs-1", "/news-refused"} {
		expect.Same(t, `{"acknowledged":true}`, do(t, "PUT", f.url+path, `{"mappings":{}}`).body, "%s", path)
	}
	want := []string{
		`PUT /news-1 {"mappings":{}}`, `PUT /news-1/_settings {"index.mapping.total_fields.limit":4}`,
		`PUT /news-1/_mapping {"properties":{"neardup_sketch":` + fmt.Sprintf(sketchMapping, "") + `}}`,
		`PUT /logs-1 {"mappings":{}}`, `PUT /news-refused {"mappings":{}}`,
	}
	expect.Same(t, want, s.log, "")
}

// TestCreationBesideASlowEngine: a look-up that does not end must not keep the client from its answer for ever.
func TestCreationBesideASlowEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := near(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				<-r.Context().Done()
				return
			}
			io.WriteString(w, "{}")
		}))
		began := time.Now()
		if rec := f.ask("PUT", "/news-1", "{}"); rec.Code != 200 || time.Since(began) > 15*time.Second {
			t.Errorf("%d after %v", rec.Code, time.Since(began))
		}
	})
}

// TestDateMathNames: rules are matched against what the engine says that a name is called.
func TestDateMathNames(t *testing.T) {
	s := &scripted{look: map[string]string{
		"/%3Cnews-%7Bnow%7Byyyy%7D%7D%3E" + fieldPath: "{" + declaredIn("news-2026", true) + "}",
		"/%3Clogs-%7Bnow%7Byyyy%7D%7D%3E" + fieldPath: "{" + declaredIn("logs-2026", true) + "}",
	}}
	f := near(t, s)
	f.ask("POST", "/_bulk", "{\"index\":{\"_index\":\"<news-{now{yyyy}}>\"}}\n{\"title\":\"a b c\"}\n{\"index\":{\"_index\":\"<logs-{now{yyyy}}>\"}}\n{\"title\":\"a b c\"}\n")
	expect.Same(t, 1, enriched([]byte(s.log[0])), "documents that are enriched: %s", s.log[0])
}

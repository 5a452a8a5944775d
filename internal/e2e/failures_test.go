package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestRefusals sends what an engine refuses, directly and through the sidecar: status and words are the same, and so is what is
// stored afterwards.
func TestRefusals(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		base := serve(t, e, setup{match: "bad-*"})
		direct, through := api{e, e.URL}, api{e, base}
		for _, index := range []string{"bad-direct", "bad-through"} {
			direct.drop(t, index)
			direct.create(t, index)
		}
		for _, c := range refusals(e.Kind) {
			t.Run(c.name, func(t *testing.T) {
				one := call(t, e, c.method, direct.base+strings.ReplaceAll(c.path, "INDEX", "bad-direct"), strings.ReplaceAll(c.body, "INDEX", "bad-direct"), c.header...)
				two := call(t, e, c.method, through.base+strings.ReplaceAll(c.path, "INDEX", "bad-through"), strings.ReplaceAll(c.body, "INDEX", "bad-through"), c.header...)
				if one.status != two.status {
					t.Errorf("status %d, directly %d", two.status, one.status)
				}
				if c.status != 0 && one.status != c.status {
					t.Errorf("the engine answers %d, the case expects %d: %.300s", one.status, c.status, one.body)
				}
				if diff := cmp.Diff(anonymous(one.body, "bad-direct"), anonymous(two.body, "bad-through")); diff != "" {
					t.Error(diff)
				}
			})
		}
		for id := range map[string]bool{"ok1": true, "ok2": true} {
			a := direct.get(t, "bad-direct", id)
			b, err := adapters.Cut(direct.get(t, "bad-through", id), adapters.Our)
			if err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s is stored as %s, directly %s (%v)", id, b, a, err)
			}
		}
	})
}

// refusal is a request that the engine refuses, whole or in part.
type refusal struct {
	name, method, path, body string
	status                   int
	header                   []string
}

func refusals(kind string) []refusal {
	if kind == engines.Typesense {
		return []refusal{
			{"document refused among good ones", "POST", "/collections/INDEX/documents/import?action=create",
				`{"id":"ok1","title":"a good one","body":"of some words"}` + "\n" + `{"id":"no1","title":"no body"}` + "\n" + `{"id":"no2","title":7,"body":"a number"}` + "\n" +
					`{"id":"ok2","title":"another","body":"with words"}`, 200, nil},
			{"the same id twice", "POST", "/collections/INDEX/documents/import?action=create", `{"id":"ok1","title":"a good one","body":"of some words"}`, 200, nil},
			{"broken line", "POST", "/collections/INDEX/documents/import?action=create", `{"id":"x","title":"no end","body":"` + "\n\n" + `nonsense`, 200, nil},
			{"broken document", "POST", "/collections/INDEX/documents", `{"id":"x","title":`, 400, nil},
			{"document refused", "POST", "/collections/INDEX/documents", `{"id":"x","title":["a"],"body":"b"}`, 400, nil},
			{"no such collection", "POST", "/collections/nothing-INDEX/documents", `{"id":"x"}`, 404, nil},
			{"wrong key writing", "POST", "/collections/INDEX/documents", `{"id":"x","title":"a","body":"b"}`, 401, []string{"X-Typesense-Api-Key", "wrong"}},
			{"wrong key searching", "GET", "/collections/INDEX/documents/search?q=*&query_by=title", "", 401, []string{"X-Typesense-Api-Key", "wrong"}},
			{"bad search", "GET", "/collections/INDEX/documents/search?q=*&query_by=nofield", "", 404, nil},
			{"bad page", "GET", "/collections/INDEX/documents/search?q=*&query_by=title&per_page=251", "", 422, nil},
			{"broken multi-search", "POST", "/multi_search", `{"searches":[{`, 400, nil},
			{"multi-search with a bad one", "POST", "/multi_search?query_by=title", `{"searches":[{"collection":"INDEX","q":"zzz"},{"collection":"nothing","q":"*"}]}`, 200, nil},
		}
	}
	return []refusal{
		{"document refused among good ones", "POST", "/_bulk",
			`{"index":{"_index":"INDEX","_id":"ok1"}}` + "\n" + `{"title":"a good one","body":"of some words"}` + "\n" +
				`{"index":{"_index":"INDEX","_id":"no1"}}` + "\n" + `{"title":"a bad one","published_at":"not a date"}` + "\n" +
				`{"create":{"_index":"INDEX","_id":"ok2"}}` + "\n" + `{"title":"another","body":"with words"}` + "\n", 200, nil},
		{"the same id twice", "PUT", "/INDEX/_create/ok1", `{"title":"a good one","body":"of some words"}`, 409, nil},
		{"broken document in a bulk", "POST", "/INDEX/_bulk", `{"index":{"_id":"x"}}` + "\n" + `{"title":"no end` + "\n", 200, nil},
		{"broken action in a bulk", "POST", "/INDEX/_bulk", `{"indx":{"_id":"x"}}` + "\n" + `{"title":"a"}` + "\n", 400, nil},
		{"no last line end", "POST", "/INDEX/_bulk", `{"index":{"_id":"x"}}` + "\n" + `{"title":"a"}`, 400, nil},
		{"broken document", "PUT", "/INDEX/_doc/x", `{"title":`, 400, nil},
		{"document refused", "PUT", "/INDEX/_doc/x", `{"title":"words","published_at":"never"}`, 400, nil},
		{"update of nothing", "POST", "/INDEX/_update/x", `{"doc":{"title":"a","body":"b"}}`, 404, nil},
		{"no body", "POST", "/_bulk", "", 400, nil},
		{"bad search", "POST", "/INDEX/_search", `{"query":{"nonsense":{}}}`, 400, nil},
		{"bad sort", "POST", "/INDEX/_search", `{"sort":"nofield"}`, 400, nil},
		{"unknown parameter", "GET", "/INDEX/_search?nonsense=1", "", 400, nil},
		{"too far", "GET", "/INDEX/_search?from=10000&size=1", "", 400, nil},
		{"broken search", "POST", "/INDEX/_search", `{"query"`, 400, nil},
		{"no such index", "GET", "/nothing-INDEX/_search", "", 404, nil},
		{"multi-search with a bad one", "POST", "/_msearch", `{"index":"INDEX"}` + "\n" + `{"query":{"term":{"title":"zzz"}}}` + "\n" + `{"index":"nothing"}` + "\n" + `{}` + "\n", 200, nil},
	}
}

// anonymous returns a reply without what differs between two indices and two moments.
func anonymous(body []byte, index string) string {
	s := strings.ReplaceAll(string(untimed(body)), index, "INDEX")
	for _, re := range []string{"index_uuid"} {
		if i := strings.Index(s, `"`+re+`":"`); i >= 0 {
			end := strings.Index(s[i+len(re)+4:], `"`)
			s = strings.ReplaceAll(s, s[i:i+len(re)+4+end+1], re)
		}
	}
	return s
}

// TestOversizedBody sends a bulk over the engine's limit and one just below, where our sketches would cross it.
func TestOversizedBody(t *testing.T) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		t.Run(kind, func(t *testing.T) {
			e, index := engines.Shared(t, kind), "big-1"
			base := serve(t, e, setup{match: "big-*"})
			direct := api{e, e.URL}
			direct.drop(t, index)
			direct.create(t, index)
			const limit = 100 << 20
			for _, size := range []int{limit + 4096, limit - 4096} {
				body := bulkOf(index, size)
				one, two := post(t, e.URL+"/_bulk", body), post(t, base+"/_bulk", body)
				if one != two || (size > limit) != (two == http.StatusRequestEntityTooLarge) {
					t.Errorf("%d bytes: status %d, directly %d", size, two, one)
				}
			}
		})
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

// TestDeadEngine has no engine behind the sidecar: a proxy's 502 in the engine's own shape; and one that never answers, whose
// client breaks off.
func TestDeadEngine(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		dead := "http://" + l.Addr().String()
		l.Close()
		base := serve(t, e, setup{match: "dead-*", urls: []string{dead}})
		requests := []refusal{{"", "GET", "/", "", 502, nil}, {"", "GET", "/dead-1/_search", "", 502, nil}, {"", "PUT", "/dead-1/_doc/1", `{"title":"a"}`, 502, nil}}
		if e.Kind == engines.Typesense {
			requests = []refusal{{"", "GET", "/health", "", 502, nil}, {"", "GET", "/collections/dead-1/documents/search?q=a&query_by=b", "", 502, nil}, {"", "POST", "/collections/dead-1/documents", `{"title":"a"}`, 502, nil}}
		}
		for _, r := range requests {
			got := call(t, e, r.method, base+r.path, r.body).want(t, 502)
			var shape struct {
				Message string
				Error   struct{ Reason string }
				Status  int
			}
			if err := json.Unmarshal(got.body, &shape); err != nil || shape.Message+shape.Error.Reason == "" {
				t.Errorf("%s %s: %v %s", r.method, r.path, err, got.body)
			}
			if e.Kind == engines.Elasticsearch && got.header.Get("X-Elastic-Product") != "Elasticsearch" {
				t.Error("no X-Elastic-Product on an error of ours")
			}
		}
	})
}

// TestSecondNode has a dead node before the live one.
func TestSecondNode(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	base := serve(t, e, setup{match: "x-*", urls: []string{"http://127.0.0.1:1", e.URL}})
	began := time.Now()
	for range 5 {
		call(t, e, "GET", base+"/", "").want(t, 200)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("five requests past a dead node took %v", took)
	}
}

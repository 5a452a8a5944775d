package embedded

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mediaType = "application/vnd.elasticsearch+json;compatible-with=8"

// reply is what the tests read of the replies.
type reply struct {
	ScrollID string `json:"_scroll_id"`
	Errors   bool
	Hits     struct {
		Total struct{ Value int }
		Hits  []struct {
			ID     string          `json:"_id"`
			SeqNo  int             `json:"_seq_no"`
			Term   int             `json:"_primary_term"`
			Source json.RawMessage `json:"_source"`
		}
	}
	Items []map[string]struct{ Status int }
}

// call sends a request as the official client does in compatibility mode. The reply has to be a success, in the media type that was asked for.
func call(t *testing.T, base, method, path, body string) (out reply) {
	t.Helper()
	status, got, header := send(t, base, exchange{method: method, path: path, body: body}, mediaType)
	if status >= 300 || header.Get("Content-Type") != mediaType {
		t.Fatalf("%s %s: %d in %q: %s", method, path, status, header.Get("Content-Type"), got)
	}
	if err := json.Unmarshal([]byte(got), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// fill indexes n documents in two bulks.
func fill(t *testing.T, base string, n int) {
	t.Helper()
	var bulk strings.Builder
	for i := range n {
		fmt.Fprintf(&bulk, `{"index":{"_id":"%d"}}`+"\n"+`{"id":"d%04d","body":"the same words"}`+"\n", i, i)
		if i != n/2 && i != n-1 {
			continue
		}
		if call(t, base, "POST", "/news/_bulk?refresh=true", bulk.String()).Errors {
			t.Fatal("a document was refused")
		}
		bulk.Reset()
	}
}

func TestClientSearches(t *testing.T) {
	url := start(t)
	fill(t, url, 300)
	out := call(t, url, "POST", "/news/_search", `{"query":{"match":{"body":"words"}},"from":10,"size":3}`)
	var ids []string
	for _, h := range out.Hits.Hits {
		ids = append(ids, h.ID)
	}
	if diff := cmp.Diff([]string{"10", "11", "12"}, ids); diff != "" {
		t.Errorf("equal scores are not in the order of insertion (-want +got):\n%s", diff)
	}
	if out.Hits.Total.Value != 300 {
		t.Errorf("got %d hits, want 300", out.Hits.Total.Value)
	}
}

// TestReindexByScroll scrolls over all documents and writes each back on the condition that it has not changed, as a backfill does.
func TestReindexByScroll(t *testing.T) {
	url := start(t)
	fill(t, url, 250)
	out := call(t, url, "POST", "/news/_search?scroll=1m", `{"sort":["_doc"],"size":100,"seq_no_primary_term":true}`)
	call(t, url, "PUT", "/news/_doc/120", `{"id":"changed"}`)
	scroll := func() string { return fmt.Sprintf(`{"scroll_id":%q}`, out.ScrollID) }
	seen, conflicts := map[string]bool{}, 0
	for len(out.Hits.Hits) > 0 {
		var bulk strings.Builder
		for _, h := range out.Hits.Hits {
			seen[h.ID] = true
			fmt.Fprintf(&bulk, `{"index":{"_id":%q,"if_seq_no":%d,"if_primary_term":%d}}`+"\n", h.ID, h.SeqNo, h.Term)
			bulk.WriteString(`{"added":1,` + string(h.Source[1:]) + "\n")
		}
		for _, item := range call(t, url, "POST", "/news/_bulk", bulk.String()).Items {
			if item["index"].Status == http.StatusConflict {
				conflicts++
			}
		}
		out = call(t, url, "POST", "/_search/scroll?scroll=1m", scroll())
	}
	if len(seen) != 250 || conflicts != 1 {
		t.Errorf("saw %d documents and %d conflicts, want 250 and 1", len(seen), conflicts)
	}
	call(t, url, "DELETE", "/_search/scroll", scroll())
	if got := call(t, url, "POST", "/news/_search?q=added:1&size=0", "").Hits.Total.Value; got != 249 {
		t.Errorf("%d documents were rewritten, want 249", got)
	}
	if status, got, _ := ask(t, url, exchange{method: "POST", path: "/_search/scroll", body: scroll()}); status != http.StatusNotFound {
		t.Errorf("scroll after clear: got %d %s", status, got)
	}
}

func TestSourceBytesAreKept(t *testing.T) {
	url := start(t)
	source := `{ "b":1.0,"a" : "<x> & \u00e9",  "n": 12345678901234567890 , "e":{ } }`
	ask(t, url, exchange{method: "PUT", path: "/i/_doc/1", body: source})
	ask(t, url, exchange{method: "POST", path: "/_bulk", body: `{"index":{"_index":"i","_id":"2"}}` + "\n" + source + "\n"})
	for _, path := range []string{"/i/_doc/1", "/i/_doc/2", "/i/_source/1", "/i/_search"} {
		if _, got, _ := ask(t, url, exchange{method: "GET", path: path}); !strings.Contains(got, source) {
			t.Errorf("%s: got %s, want the bytes %s", path, got, source)
		}
	}
}

func TestUnsupportedIsSaid(t *testing.T) {
	url := start(t)
	ask(t, url, exchange{method: "PUT", path: "/i/_doc/1", body: `{"a":"b"}`})
	for _, x := range []exchange{
		{method: "GET", path: "/i/_search", body: `{"aggs":{"a":{"terms":{"field":"a"}}}}`},
		{method: "GET", path: "/i/_search", body: `{"highlight":{"fields":{"a":{}}}}`},
		{method: "GET", path: "/i/_search", body: `{"query":{"wildcard":{"a":"b*"}}}`},
		{method: "GET", path: "/i/_search?filter_path=hits"},
		{method: "POST", path: "/i/_update/1", body: `{"script":"x"}`},
		{method: "POST", path: "/i/_pit?keep_alive=1m"},
		{method: "POST", path: "/_reindex", body: `{}`},
		{method: "GET", path: "/_nodes"},
		{method: "PATCH", path: "/i"},
		{method: "PUT", path: "/j", body: `{"settings":{"analysis":{"analyzer":{"a":{"type":"english"}}}}}`},
	} {
		status, got, header := ask(t, url, x)
		if status != http.StatusNotImplemented || !strings.Contains(got, `"type":"unsupported_operation_exception"`) || !strings.Contains(got, "embedded demo engine") {
			t.Errorf("%s: got %d %s", x, status, got)
		}
		if header.Get("X-Elastic-Product") != "Elasticsearch" {
			t.Errorf("%s: no product header", x)
		}
	}
}

func TestUnknownKeyIsLocated(t *testing.T) {
	_, got, _ := ask(t, start(t), exchange{method: "POST", path: "/_search", body: "{\"size\":1,\n \"zork\":-1.5}"})
	want := `{"error":{"root_cause":[{"type":"parsing_exception","reason":"Unknown key for a VALUE_NUMBER in [zork].","line":2,"col":9}],` +
		`"type":"parsing_exception","reason":"Unknown key for a VALUE_NUMBER in [zork].","line":2,"col":9},"status":400}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConcurrentUse(t *testing.T) {
	url := start(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				ask(t, url, exchange{method: "PUT", path: fmt.Sprintf("/i/_doc/%d-%d", i, j), body: `{"a":"some words"}`})
				ask(t, url, exchange{method: "GET", path: "/i/_search?q=words"})
			}
		})
	}
	wg.Wait()
	if _, got, _ := ask(t, url, exchange{method: "GET", path: "/i/_count?q=words"}); !strings.Contains(got, `"count":160,`) {
		t.Errorf("got %s, want 160 documents", got)
	}
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{`{"query":{"query_string":{"query":"a:(b OR \"c d\") -e \\+"}}}`, `{"query":{"match":{"a":null}}}`, `{"sort":[{"a":{}}],"_source":[1]}`,
		`{"query":{"range":{"a":{"gte":[]}}}}`, `{"query":{"bool":{"must":[{"terms":{"n":[1,"x"]}}]}}}`, `{"fields":["*"],"docvalue_fields":[{"field":null}]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		url := start(t)
		ask(t, url, exchange{method: "PUT", path: "/i/_doc/1", body: `{"a":"b c","n":[1,2.5],"o":{"d":"2024-01-01","t":true}}`})
		status, got, _ := ask(t, url, exchange{method: "POST", path: "/i/_search", body: body})
		if !json.Valid([]byte(got)) || status == http.StatusInternalServerError {
			t.Errorf("%s: got %d %s", body, status, got)
		}
	})
}

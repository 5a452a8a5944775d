package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/elastic/go-elasticsearch/v8/esutil"
	"github.com/google/go-cmp/cmp"
)

func client(t *testing.T) *elasticsearch.Client {
	t.Helper()
	c, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{start(t)}, DisableRetry: true, EnableCompatibilityMode: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

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

// must reads a reply that has to be a success.
func must(t *testing.T, res *esapi.Response, err error) (out reply) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.IsError() {
		t.Fatal(res)
	}
	if got := res.Header.Get("Content-Type"); got != "application/vnd.elasticsearch+json;compatible-with=8" {
		t.Errorf("got media type %q", got)
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// fill indexes n documents with the official client's bulk indexer.
func fill(t *testing.T, c *elasticsearch.Client, n int) {
	t.Helper()
	b, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: c, Index: "news", NumWorkers: 1, FlushBytes: 10_000, Refresh: "true"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		err := b.Add(t.Context(), esutil.BulkIndexerItem{Action: "index", DocumentID: fmt.Sprint(i),
			Body: strings.NewReader(fmt.Sprintf(`{"id":"d%04d","body":"the same words"}`, i))})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := b.Stats(); s.NumFailed > 0 || s.NumFlushed != uint64(n) {
		t.Fatalf("bulk indexer: %+v", s)
	}
}

func TestClientSearches(t *testing.T) {
	c := client(t)
	fill(t, c, 300)
	res, err := c.Search(c.Search.WithIndex("news"), c.Search.WithBody(strings.NewReader(`{"query":{"match":{"body":"words"}},"from":10,"size":3}`)))
	out := must(t, res, err)
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
	c := client(t)
	fill(t, c, 250)
	res, err := c.Search(c.Search.WithIndex("news"), c.Search.WithScroll(time.Minute),
		c.Search.WithBody(strings.NewReader(`{"sort":["_doc"],"size":100,"seq_no_primary_term":true}`)))
	out := must(t, res, err)
	res, err = c.Index("news", strings.NewReader(`{"id":"changed"}`), c.Index.WithDocumentID("120"))
	must(t, res, err)

	seen, conflicts := map[string]bool{}, 0
	for len(out.Hits.Hits) > 0 {
		var bulk bytes.Buffer
		for _, h := range out.Hits.Hits {
			seen[h.ID] = true
			fmt.Fprintf(&bulk, `{"index":{"_id":%q,"if_seq_no":%d,"if_primary_term":%d}}`+"\n", h.ID, h.SeqNo, h.Term)
			bulk.Write(append(append([]byte(`{"added":1,`), h.Source[1:]...), '\n'))
		}
		res, err := c.Bulk(&bulk, c.Bulk.WithIndex("news"))
		for _, item := range must(t, res, err).Items {
			if item["index"].Status == http.StatusConflict {
				conflicts++
			}
		}
		res, err = c.Scroll(c.Scroll.WithScrollID(out.ScrollID), c.Scroll.WithScroll(time.Minute))
		out = must(t, res, err)
	}
	if len(seen) != 250 || conflicts != 1 {
		t.Errorf("saw %d documents and %d conflicts, want 250 and 1", len(seen), conflicts)
	}
	res, err = c.ClearScroll(c.ClearScroll.WithScrollID(out.ScrollID))
	must(t, res, err)
	res, err = c.Search(c.Search.WithIndex("news"), c.Search.WithQuery("added:1"), c.Search.WithSize(0))
	if got := must(t, res, err).Hits.Total.Value; got != 249 {
		t.Errorf("%d documents were rewritten, want 249", got)
	}
	res, err = c.Scroll(c.Scroll.WithScrollID(out.ScrollID))
	if err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("scroll after clear: got %v, %v", res, err)
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

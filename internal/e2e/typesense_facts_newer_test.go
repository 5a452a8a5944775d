package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// newer stands in for a newer server than there is to run: it answers the shapes of replies that the sources of versions 0.25 to
// 29 give.
type newer struct {
	mu    sync.Mutex
	asked []string      // METHOD path?query body
	read  chan struct{} // closed when the client has read the first piece of a stream
}

const newerSchema = `{"created_at":1,"default_sorting_field":"","enable_nested_fields":false,"fields":[` +
	`{"facet":false,"index":true,"infix":false,"locale":"","name":"title","optional":false,"sort":false,"stem":false,` +
	`"stem_dictionary":"","store":true,"type":"string"},` +
	`{"facet":false,"index":false,"infix":false,"locale":"","name":"neardup_sketch","optional":true,"sort":false,"stem":false,` +
	`"stem_dictionary":"","store":true,"type":"string"}],` +
	`"name":"newer-1","num_documents":2,"symbols_to_index":[],"token_separators":[]}`

const newerHit = `{"document":{"id":"1","neardup_sketch":"AAAA","title":"alpha one"},` +
	`"highlight":{"title":{"matched_tokens":["alpha"],"snippet":"<mark>alpha</mark> one"}},` +
	`"highlights":[{"field":"title","matched_tokens":["alpha"],"snippet":"<mark>alpha</mark> one"}],"text_match":1,` +
	`"text_match_info":{"best_field_score":"1","best_field_weight":15,` +
	`"fields_matched":1,"num_tokens_dropped":0,"score":"1","tokens_matched":1,"typo_prefix_score":0}}`

func newerResult(params string) string {
	return `{"facet_counts":[],"found":1,"hits":[` + newerHit +
		`],"out_of":2,"page":1,"request_params":{"collection_name":"newer-1","first_q":"alpha","per_page":` + params +
		`,"q":"alpha"},` +
		`"search_cutoff":false,"search_time_ms":0}`
}

// newerResults answers a multi-search, in which limit is another word for per_page.
func newerResults(body []byte) string {
	var asked struct{ Searches []map[string]string }
	if err := json.Unmarshal(body, &asked); err != nil {
		return err.Error()
	}
	results := make([]string, len(asked.Searches))
	for i, search := range asked.Searches {
		results[i] = newerResult(cmp.Or(search["per_page"], search["limit"], "10"))
	}
	return `{"results":[` + strings.Join(results, ",") + `]}`
}

func (n *newer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	n.mu.Lock()
	n.asked = append(n.asked, fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body))
	n.mu.Unlock()
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	query := r.URL.Query()
	switch {
	case r.Method == "GET" && r.URL.Path == "/collections/newer-1":
		_, _ = io.WriteString(w, newerSchema)
	case r.Method == "PATCH" && strings.HasSuffix(r.URL.Path, "/documents"):
		_, _ = io.WriteString(w, `{"num_updated":1}`)
	case r.Method == "PATCH":
		_, _ = io.WriteString(w, `{"id":"1","neardup_sketch":"AAAA","title":"alpha one"}`)
	case query.Get("conversation_stream") == "true":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"message":"al"}`+"\n\n")
		_ = http.NewResponseController(w).Flush() // a client that is gone shows in the next write
		select {
		case <-n.read:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, `data: {"message":"pha"}`+"\n\ndata: [DONE]\n\n")
	case strings.Contains(string(body), `"union":true`) || query.Get("union") == "true":
		_, _ = io.WriteString(w, `{"found":1,"hits":[`+newerHit+`],"out_of":2,"page":1,"search_cutoff":false,"search_time_ms":0,`+
			`"union_request_params":[{"collection":"newer-1","first_q":"alpha","found":1,"per_page":10,"q":"alpha"}]}`)
	case query.Get("group_by") != "":
		_, _ = io.WriteString(w, `{"facet_counts":[],"found":1,"found_docs":1,`+
			`"grouped_hits":[{"found":1,"group_key":["a"],"hits":[`+newerHit+`]}],"out_of":2,"page":1,`+
			`"request_params":{"collection_name":"newer-1","first_q":"alpha","per_page":10,"q":"alpha"},"search_cutoff":false,`+
			`"search_time_ms":0}`)
	case r.URL.Path == "/multi_search":
		_, _ = io.WriteString(w, newerResults(body))
	case query.Get("per_page") == "300":
		_, _ = io.WriteString(w, newerResult("300"))
	default:
		_, _ = io.WriteString(w, newerResult("10"))
	}
}

// last returns the last request that was not for a schema.
func (n *newer) last() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := len(n.asked) - 1; i >= 0; i-- {
		if !strings.HasPrefix(n.asked[i], "GET /collections/newer-1 ") {
			return n.asked[i]
		}
	}
	return ""
}

// What newer servers are known by their sources to do differently passes, less our field.
func TestTypesenseFactsOfNewerServers(t *testing.T) {
	n := &newer{read: make(chan struct{})}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	e := &engines.Engine{Kind: engines.Typesense, URL: server.URL, Key: "xyz"}
	base := serve(t, e, setup{match: "newer-*"})
	const documents = "/collections/newer-1/documents"
	bare := func(text string) string { return strings.Replace(text, `"neardup_sketch":"AAAA",`, "", 1) }
	for _, c := range []struct{ name, request, body, sent, want string }{
		{"PATCH answers 200", "PATCH " + documents + "/1", `{"n":1}`, `{"n":1}`, `{"id":"1","title":"alpha one"}`},
		{"PATCH by a filter that leaves the text", "PATCH " + documents + "?filter_by=n:1", `{"n":2}`, `{"n":2}`, `{"num_updated":1}`},
		{"PATCH by a filter that changes a part of it", "PATCH " + documents + "?filter_by=n:1", `{"title":"other"}`,
			`{"title":"other","neardup_sketch":null}`, `{"num_updated":1}`},
		{"limit and offset", "GET " + documents + "/search?q=alpha&query_by=title&limit=1&offset=0", "", "POST /multi_search",
			bare(newerResult("1"))},
		{"more hits on a page", "GET " + documents + "/search?q=alpha&query_by=title&per_page=300", "", "per_page=300",
			bare(newerResult("300"))},
		{"found_docs of groups", "GET " + documents + "/search?q=alpha&query_by=title&group_by=k", "", "group_by=k",
			`"found_docs":1,"grouped_hits":[{"found":1,"group_key":["a"],"hits":[` + bare(newerHit) + `]}]`},
		{"union in the body", "POST /multi_search",
			`{"union":true,"searches":[{"collection":"newer-1","q":"alpha","query_by":"title"}]}`, `{"union":true,`, `"hits":[` +
				bare(newerHit) + `],"out_of":2,"page":1`},
		{"union in the query", "POST /multi_search?union=true",
			`{"searches":[{"collection":"newer-1","q":"alpha","query_by":"title"}]}`, "union=true", `"union_request_params":[{`},
	} {
		t.Run(c.name, func(t *testing.T) {
			method, path, _ := strings.Cut(c.request, " ")
			r := call(t, e, method, base+path, c.body).want(t, 200)
			if !strings.Contains(string(r.body), c.want) || strings.Contains(string(r.body), "neardup") {
				t.Errorf("answered %s\nwant %s", r.body, c.want)
			}
			if got := n.last(); !strings.Contains(got, c.sent) {
				t.Errorf("sent %s, want %s", got, c.sent)
			}
		})
	}
	t.Run("a conversation streams", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), "GET",
			base+documents+"/search?q=alpha&query_by=title&conversation=true&conversation_stream=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		first := "data: {\"message\":\"al\"}\n\n"
		head := make([]byte, len(first))
		if _, err := io.ReadFull(resp.Body, head); err != nil || string(head) != first {
			t.Errorf("%v: at first %q", err, head)
		}
		close(n.read)
		rest, err := io.ReadAll(resp.Body)
		if err != nil || string(rest) != "data: {\"message\":\"pha\"}\n\ndata: [DONE]\n\n" {
			t.Errorf("%v: then %q", err, rest)
		}
	})
}

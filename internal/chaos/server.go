package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Server is an engine, or a sidecar in front of one, as a client reaches it.
type Server struct {
	Typesense bool
	Base      string // URL without a slash at the end
	Key       string // of a Typesense
	Client    *http.Client
	// Jobs says that a job of the sidecar writes the documents of a [Writer] as well: the engine refuses an update that meets its write.
	Jobs bool
}

// NewClient returns an HTTP client that keeps connections and waits so long for an answer.
func NewClient(timeout time.Duration) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.MaxIdleConnsPerHost, transport.DisableCompression = nil, 16, true
	return &http.Client{Timeout: timeout, Transport: transport}
}

// Result is what a client was told of one write.
type Result struct {
	Answer Answer
	ID     string // of a document to which the engine gave one
	Other  string // see [Write.Other]
	Why    string
}

// reply is an answer read whole, or what came in its place.
type reply struct {
	status  int
	header  http.Header
	body    []byte
	trouble string // a word of the constants, or a status; empty for none
	why     string
}

// failed reports whether nothing is known of what was asked.
func (r reply) failed() bool {
	return r.trouble != "" && r.status != http.StatusTooManyRequests && r.status != http.StatusRequestEntityTooLarge
}

// form says how a body is sent.
type form int

const (
	plain form = iota
	chunked
)

// send sends a request and reads the answer whole.
func (s Server) send(ctx context.Context, method, path string, body []byte, as form) reply {
	var in io.Reader = bytes.NewReader(body)
	if as == chunked {
		in = io.MultiReader(in) // of which net/http does not know the length
	}
	if body == nil {
		in = nil
	}
	r, err := http.NewRequestWithContext(ctx, method, s.Base+path, in)
	if err != nil {
		return reply{trouble: Broken, why: err.Error()}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.Key != "" {
		r.Header.Set("X-Typesense-Api-Key", s.Key)
	}
	resp, err := s.Client.Do(r)
	if err != nil {
		return reply{trouble: wordOf(err), why: err.Error()}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		why := fmt.Sprintf("in a reply of status %d: %v", resp.StatusCode, err)
		return reply{status: resp.StatusCode, trouble: wordOf(err), why: why}
	}
	out := reply{status: resp.StatusCode, header: resp.Header, body: data}
	switch out.status {
	case http.StatusOK, http.StatusCreated, http.StatusNotFound, http.StatusConflict:
		if !json.Valid(data) && !lines(data) {
			out.trouble, out.why = Garbage, fmt.Sprintf("status %d: %.300q", out.status, data)
		}
	default:
		out.trouble, out.why = strconv.Itoa(out.status), fmt.Sprintf("%s %s: %.300s", method, path, data)
	}
	return out
}

// lines reports whether data is JSON line by line.
func lines(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !json.Valid(line) {
			return false
		}
	}
	return len(data) > 0
}

func wordOf(err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return TimeOut
	}
	return Broken
}

// bulk sends writes of one index in one request. Those of one request are of one kind on a Typesense, and no deletions.
func (s Server) bulk(ctx context.Context, index string, writes []*Write, as form) ([]Result, reply) {
	if s.Typesense {
		return s.imported(ctx, index, writes, as)
	}
	var b bytes.Buffer
	for _, w := range writes {
		action := map[Kind]string{Put: "index", Create: "create", Part: "update", Delete: "delete", Auto: "index"}[w.Kind]
		id := ""
		if w.Kind != Auto {
			id = `"_id":"` + w.ID + `"`
		}
		fmt.Fprintf(&b, "{%q:{%s}}\n", action, id)
		switch w.Kind {
		case Delete:
		case Part:
			fmt.Fprintf(&b, `{"doc":%s}`+"\n", w.Body)
		default:
			fmt.Fprintf(&b, "%s\n", w.Body)
		}
	}
	r := s.send(ctx, "POST", "/"+index+"/_bulk", b.Bytes(), as)
	if r.trouble != "" {
		return slices.Repeat([]Result{resultOf(r)}, len(writes)), r
	}
	var answer struct{ Items []map[string]item }
	if err := json.Unmarshal(r.body, &answer); err != nil || len(answer.Items) != len(writes) {
		r.trouble, r.why = Garbage, fmt.Sprintf("%d items of %d in a bulk's reply: %.300s", len(answer.Items), len(writes), r.body)
		return slices.Repeat([]Result{Result{Answer: Unknown, Why: r.why}}, len(writes)), r
	}
	list := make([]Result, len(writes))
	for i, w := range writes {
		for _, it := range answer.Items[i] {
			list[i] = s.resultOf(it, w)
			if it.Status >= 500 || list[i].Answer == Refused {
				r.trouble, r.why = strconv.Itoa(it.Status), "an item: "+list[i].Why
			}
		}
	}
	return list, r
}

// item is what Elasticsearch and OpenSearch say of one operation.
type item struct {
	ID     string `json:"_id"`
	Result string
	Status int
	Error  json.RawMessage
}

func (s Server) resultOf(it item, w *Write) Result {
	why := fmt.Sprintf("status %d %s %.300s", it.Status, it.Result, it.Error)
	switch {
	case it.Status == http.StatusNotFound:
		return Result{Answer: Missing, Why: why}
	case it.Status == http.StatusConflict && (w.Kind == Create || w.Kind == Part && s.Jobs):
		return Result{Answer: Conflict, Why: why}
	case it.Status >= 500 || it.Status == 0:
		return Result{Answer: Unknown, Why: why}
	case it.Status >= 300:
		return Result{Answer: Refused, Why: why}
	case it.Result == "noop" && w.Kind != Part:
		return Result{Answer: Left, Other: it.ID, Why: why}
	}
	return Result{Answer: Done, ID: it.ID, Why: why}
}

// resultOf returns what a reply without an answer says of a write.
func resultOf(r reply) Result {
	if r.failed() || r.status < 300 {
		return Result{Answer: Unknown, Why: r.why}
	}
	return Result{Answer: Refused, Why: r.why}
}

// one sends a write by itself.
func (s Server) one(ctx context.Context, w *Write, as form) (Result, reply) {
	if s.Typesense {
		return s.document(ctx, w, as)
	}
	path := "/" + w.Index + "/_doc/" + w.ID
	method, body := "PUT", w.Body
	switch w.Kind {
	case Create:
		path = "/" + w.Index + "/_create/" + w.ID
	case Auto:
		method, path = "POST", "/"+w.Index+"/_doc"
	case Part:
		method, path, body = "POST", "/"+w.Index+"/_update/"+w.ID, []byte(`{"doc":`+string(w.Body)+`}`)
	case Delete:
		method, body, as = "DELETE", nil, plain
	}
	r := s.send(ctx, method, path, body, as)
	if r.trouble != "" {
		return resultOf(r), r
	}
	var it item
	err := json.Unmarshal(r.body, &it)
	if err != nil || r.status < 300 && it.Result == "" || r.status >= 300 && w.Kind != Delete && it.Error == nil {
		r.trouble, r.why = Garbage, fmt.Sprintf("status %d: %.300s", r.status, r.body)
		return Result{Answer: Unknown, Why: r.why}, r
	}
	it.Status = r.status
	return s.resultOf(it, w), r
}

// search asks for a page. A page is nil where there was trouble.
func (s Server) search(ctx context.Context, index, words string, from, size int) (*Page, reply) {
	if s.Typesense {
		return s.searchTypesense(ctx, index, words, from, size)
	}
	body := fmt.Sprintf(`{"query":{"match":{"body":%q}},"from":%d,"size":%d}`, words, from, size)
	r := s.send(ctx, "POST", "/"+index+"/_search", []byte(body), plain)
	if r.trouble != "" {
		return nil, r
	}
	var found struct {
		Hits *struct {
			Hits []struct {
				ID     string          `json:"_id"`
				Source json.RawMessage `json:"_source"`
			}
		}
	}
	if err := json.Unmarshal(r.body, &found); err != nil || r.status != http.StatusOK || found.Hits == nil {
		r.trouble, r.why = Garbage, fmt.Sprintf("status %d of a search: %.300s", r.status, r.body)
		return nil, r
	}
	p := &Page{Index: index, Outcome: r.header.Get("Neardup"), Body: r.body}
	for _, h := range found.Hits.Hits {
		p.Hits = append(p.Hits, Stored{ID: h.ID, Source: h.Source})
	}
	return p, r
}

// Fetch reads every document of an index from an engine itself.
func (s Server) Fetch(ctx context.Context, in Index) (list []Stored, err error) {
	index := in.Name
	if s.Typesense {
		return s.export(ctx, index)
	}
	if r := s.send(ctx, "POST", "/"+index+"/_refresh", nil, plain); r.trouble != "" {
		return nil, fmt.Errorf("refresh %s: %s", index, r.why)
	}
	body, path := `{"size":2000,"version":true,"sort":["_doc"]`+in.Ask+`}`, "/"+index+"/_search?scroll=1m"+in.Params
	for {
		r := s.send(ctx, "POST", path, []byte(body), plain)
		var page struct {
			Scroll string `json:"_scroll_id"`
			Hits   struct {
				Hits []struct {
					ID      string          `json:"_id"`
					Source  json.RawMessage `json:"_source"`
					Version int             `json:"_version"`
					Fields  map[string][]json.RawMessage
				}
			}
		}
		if err := json.Unmarshal(r.body, &page); err != nil || r.status != http.StatusOK {
			return nil, fmt.Errorf("read %s: status %d %.300s %s", index, r.status, r.body, r.why)
		}
		if len(page.Hits.Hits) == 0 {
			s.send(ctx, "DELETE", "/_search/scroll", []byte(`{"scroll_id":"`+page.Scroll+`"}`), plain)
			return list, nil
		}
		for _, h := range page.Hits.Hits {
			list = append(list, Stored{ID: h.ID, Source: h.Source, Version: h.Version, Apart: h.Fields})
		}
		body, path = `{"scroll":"1m","scroll_id":"`+page.Scroll+`"}`, "/_search/scroll"
	}
}

// Make makes an index for the documents of a [Writer], dropping one of that name.
func (s Server) Make(ctx context.Context, in Index) error {
	index := in.Name
	path, method := "/"+index, "PUT"
	body := `{"settings":{"number_of_shards":2,"number_of_replicas":0,"refresh_interval":"500ms"` + in.Settings + `},"mappings":{"properties":{` +
		`"topic":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},"mark":{"type":"keyword"},"n":{"type":"integer"},` +
		`"filler":{"type":"keyword","index":false,"doc_values":false}` + in.Fields + `}}}`
	drop := path
	if s.Typesense {
		method, path, drop = "POST", "/collections", "/collections/"+index
		body = `{"name":"` + index + `","fields":[{"name":"topic","type":"string"},{"name":"title","type":"string"},` +
			`{"name":"body","type":"string"},{"name":"n","type":"int32"}` + in.Fields + `]}`
	}
	s.send(ctx, "DELETE", drop, nil, plain) // most often there is none
	if r := s.send(ctx, method, path, []byte(body), plain); r.trouble != "" || r.status >= 300 {
		return fmt.Errorf("make %s: status %d %s %.300s", index, r.status, r.why, r.body)
	}
	return nil
}

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
)

const sessionFields = `{"mappings":{"properties":{"id":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},` +
	`"url":{"type":"keyword"},"host":{"type":"keyword"},"published_at":{"type":"date"}}}}`

const sessionText = `{"multi_match":{"query":"river town old","fields":["title","body"]}}`

// recorder makes what package clients says of sessions, of a client in Go.
type recorder struct {
	t *testing.T
	session
}

func newRecorder(t *testing.T) *recorder {
	return &recorder{t, session{map[string]any{}, map[string][]any{}, map[string][]any{}}}
}

// same records what the client returned, or its error.
func (r *recorder) same(step string, value any, err error) {
	r.t.Helper()
	if _, ok := r.Same[step]; ok {
		r.t.Fatalf("two steps %q", step)
	}
	if err != nil {
		value = map[string]any{"raised": fmt.Sprintf("%T", err), "text": err.Error(), "error": err, "value": value}
	}
	r.Same[step] = value
}

// as is same for what a call returns: r.as("step")(call()).
func (r *recorder) as(step string) func(value any, err error) {
	return func(value any, err error) { r.same(step, value, err) }
}

// search reads a list in pages of a size: page answers one.
func (r *recorder) search(step string, size int, page func(from int) (any, error)) {
	r.t.Helper()
	for from := 0; ; from += size {
		if len(r.page(step, r.Searches, func() (any, error) { return page(from) })) == 0 {
			return
		}
	}
}

// cursor reads a list by the sort values of the last hit, nil for the first page.
func (r *recorder) cursor(step string, page func(after []any) (any, error)) {
	r.t.Helper()
	var after []any
	for {
		hits := r.page(step, r.Cursors, func() (any, error) { return page(after) })
		if len(hits) == 0 {
			return
		}
		after = hits[len(hits)-1].(map[string]any)["sort"].([]any)
	}
}

// page records one page and returns its hits.
func (r *recorder) page(step string, into map[string][]any, ask func() (any, error)) []any {
	r.t.Helper()
	reply, err := ask()
	if err != nil {
		r.t.Fatalf("%s: %v", step, err)
	}
	var plain any
	if err := json.Unmarshal(marshal(r.t, reply), &plain); err != nil {
		r.t.Fatal(err)
	}
	into[step] = append(into[step], reply)
	return hitsOf(plain)
}

// told is a reply as a client hands it out whole.
type told struct {
	Status  int             `json:"status"`
	Headers http.Header     `json:"headers"`
	Body    json.RawMessage `json:"body"`
}

// tell reads a reply. A body that is no JSON is recorded as a text.
func tell(status int, header http.Header, body io.ReadCloser) (told, error) {
	reply := told{Status: status, Headers: header}
	if body == nil {
		return reply, nil
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if reply.Body = data; err == nil && !json.Valid(data) {
		reply.Body, err = json.Marshal(string(data))
	}
	return reply, err
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

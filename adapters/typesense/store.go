package typesense

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Store is the I/O half of the adapter.
type Store struct {
	api *api.Client
	// rules say which fields of ours a collection needs.
	rules rule.Rules
}

var _ adapters.EngineStore = (*Store)(nil)

// Open returns a function that opens a store on the engine's nodes with one client's headers, and with the API key of its query if that
// holds one. A nil transport is http.DefaultTransport.
func (Dialect) Open(transport http.RoundTripper, urls []*url.URL, rules rule.Rules) func(header adapters.Header, query string) adapters.EngineStore {
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the key is for this server alone
	}}
	return func(header adapters.Header, query string) adapters.EngineStore {
		return &Store{&api.Client{
			Server: "http://engine/", Client: nodes{client, urls}, RequestEditors: []api.RequestEditorFn{credentials(header, query)},
		}, rules}
	}
}

// nodes sends a request to the first node that accepts the connection. One that may have been sent is never sent again.
type nodes struct {
	client *http.Client
	urls   []*url.URL
}

// Do implements api.HttpRequestDoer.
func (n nodes) Do(r *http.Request) (resp *http.Response, err error) {
	// The client has taken dot segments out: a document with the id .. would be its collection.
	if strings.HasSuffix(r.URL.EscapedPath(), "/") {
		return nil, fmt.Errorf("%s %s is not sent: no path can name an id that is empty or dots", r.Method, r.URL.Path)
	}
	err = errors.New("no node is configured")
	for _, u := range n.urls {
		out := r.Clone(r.Context())
		at := *u
		at.Path, at.RawPath = strings.TrimRight(u.Path, "/")+r.URL.Path, strings.TrimRight(u.EscapedPath(), "/")+r.URL.EscapedPath()
		at.RawQuery = r.URL.RawQuery
		if out.URL, out.Host = &at, u.Host; r.GetBody != nil {
			if out.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		if resp, err = n.client.Do(out); err == nil {
			return resp, nil
		}
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			return nil, err
		}
	}
	return nil, err
}

// credentials returns an editor that gives requests a client's headers and key.
func credentials(header adapters.Header, query string) api.RequestEditorFn {
	key, inQuery := adapters.Last(adapters.Params(query), keyParam)
	return func(_ context.Context, r *http.Request) error {
		for name, values := range header {
			if r.Header.Get(name) == "" {
				r.Header[name] = values
			}
		}
		if inQuery {
			values := r.URL.Query()
			values.Set(keyParam, key)
			r.URL.RawQuery = values.Encode()
		}
		if path := r.URL.EscapedPath(); strings.Contains(path, "+") { // a space to the engine
			r.URL.RawPath = strings.ReplaceAll(path, "+", "%2B")
		}
		return nil
	}
}

// readAll reads a whole reply. An engine's refusal is a *refusal.
func readAll(resp *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return body, refusalOf(resp.StatusCode, body)
}

// decoded reads a whole reply as a value.
func decoded[T any](resp *http.Response, err error) (value T, _ error) {
	body, err := readAll(resp, err)
	if err == nil {
		err = json.Unmarshal(body, &value)
	}
	return value, err
}

func refusalOf(status int, body []byte) error {
	if status < 300 {
		return nil
	}
	var reply struct{ Message string }
	if json.Unmarshal(body, &reply) != nil || reply.Message == "" {
		reply.Message = string(body[:min(len(body), 200)])
	}
	return &refusal{status, reply.Message}
}

// answered reports whether err is a refusal with one of these codes.
func answered(err error, codes ...int) bool {
	r, refused := errors.AsType[*refusal](err)
	return refused && slices.Contains(codes, r.code)
}

// collection is what the engine says of a collection.
type collection struct {
	Name         string
	NumDocuments int   `json:"num_documents"`
	CreatedAt    int64 `json:"created_at"` // in seconds
	Fields       []field
}

// field is how a schema declares a field.
type field struct {
	Name  string
	Type  string
	Index *bool
	Facet bool
}

func (s *Store) collection(ctx context.Context, name string) (collection, error) {
	c, err := decoded[collection](s.api.GetCollection(ctx, name))
	if err != nil {
		return collection{}, fmt.Errorf("read collection %s: %w", name, err)
	}
	return c, nil
}

// collections returns the collections of a name.
func (s *Store) collections(ctx context.Context, name string) ([]collection, error) {
	if name != "" && !strings.Contains(name, "*") {
		c, err := s.collection(ctx, name)
		if answered(err, http.StatusNotFound) {
			return nil, nil
		}
		return []collection{c}, err
	}
	var matching []collection
	all, err := decoded[[]collection](s.api.GetCollections(ctx))
	if err != nil {
		return nil, fmt.Errorf("list collections: %w", err)
	}
	for _, c := range all {
		if c.Name != JournalIndex && (name == "" || rule.Matches(name, c.Name)) {
			matching = append(matching, c)
		}
	}
	return matching, nil
}

// update sends documents to be merged into those that are stored, and calls yield with each line of the reply, which holds the document as
// it was left.
func (s *Store) update(ctx context.Context, index string, lines []byte, yield func(line []byte) error) error {
	action := "update"
	returning := func(_ context.Context, r *http.Request) error { // this parameter the client has not
		r.URL.RawQuery += "&return_doc=true"
		return nil
	}
	resp, err := s.api.ImportDocumentsWithBody(
		ctx, index, &api.ImportDocumentsParams{Action: &action}, "text/plain", bytes.NewReader(lines), returning,
	)
	if err == nil {
		err = eachLine(resp, yield)
	}
	if err != nil {
		return fmt.Errorf("update documents of %s: %w", index, err)
	}
	return nil
}

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
	"regexp"
	"strings"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
)

// store is the I/O half of the adapter. It talks to the first node that accepts a connection.
type store struct {
	nodes []*api.Client
	// rules say which fields of ours a collection needs.
	rules adapters.Rules
}

var _ adapters.Store = (*store)(nil)

// Open returns a function that opens a store on the engine's nodes with one client's headers, and with the API key of its query if that
// holds one. A nil transport is http.DefaultTransport.
func Open(transport http.RoundTripper, urls []*url.URL, rules adapters.Rules) func(header adapters.Header, query string) adapters.Store {
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the key is for this server alone
	}}
	return func(header adapters.Header, query string) adapters.Store {
		s := &store{rules: rules}
		for _, u := range urls {
			s.nodes = append(s.nodes, &api.Client{
				Server: strings.TrimRight(u.String(), "/") + "/", Client: client, RequestEditors: []api.RequestEditorFn{credentials(header, query)},
			})
		}
		return s
	}
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

// do makes a call on the first node that accepts the connection. A request that may have been sent is never sent again.
func (s *store) do(call func(*api.Client) (*http.Response, error)) (*http.Response, error) {
	err := errors.New("no node is configured")
	for _, node := range s.nodes {
		var resp *http.Response
		if resp, err = call(node); err == nil {
			return resp, nil
		}
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			break
		}
	}
	return nil, err
}

// get reads a whole reply. An engine's refusal is a *refusal.
func (s *store) get(call func(*api.Client) (*http.Response, error)) ([]byte, error) {
	resp, err := s.do(call)
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

func isNotFound(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.code == http.StatusNotFound
}

// collection is what the engine says of a collection.
type collection struct {
	Name         string
	NumDocuments int `json:"num_documents"`
	Fields       []struct {
		Name  string
		Type  string
		Index *bool
	}
}

func (s *store) collection(ctx context.Context, name string) (collection, error) {
	body, err := s.get(func(c *api.Client) (*http.Response, error) { return c.GetCollection(ctx, name) })
	if err != nil {
		return collection{}, fmt.Errorf("read collection %s: %w", name, err)
	}
	var c collection
	if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf("read collection %s: %w", name, err)
	}
	return c, nil
}

// collections returns the collections behind a name.
func (s *store) collections(ctx context.Context, name string) ([]collection, error) {
	if name != "" && !strings.Contains(name, "*") {
		c, err := s.collection(ctx, name)
		if isNotFound(err) {
			return nil, nil
		}
		return []collection{c}, err
	}
	body, err := s.get(func(c *api.Client) (*http.Response, error) { return c.GetCollections(ctx) })
	if err != nil {
		return nil, fmt.Errorf("list collections: %w", err)
	}
	var all, matching []collection
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("list collections: %w", err)
	}
	for _, c := range all {
		if name == "" || adapters.Matches(name, c.Name) {
			matching = append(matching, c)
		}
	}
	return matching, nil
}

// index says how our field stands in a collection; declared is false where it does not.
func (c collection) index() (i adapters.Index, declared bool) {
	i.Name = c.Name
	for _, f := range c.Fields {
		if f.Name != adapters.SketchField {
			continue
		}
		switch {
		case f.Type != "string":
			i.Why = fmt.Sprintf("field %s is declared as %s: drop it from the schema of %s", f.Name, f.Type, c.Name)
		case f.Index == nil || *f.Index:
			i.Why = fmt.Sprintf("field %s is indexed, which takes memory for nothing: drop it from the schema of %s", f.Name, c.Name)
		default:
			i.Ready, i.Mapped = true, true
		}
		return i, true
	}
	i.Mapped = true // a null is left out
	i.Why = fmt.Sprintf("field %s is not declared in %s", adapters.SketchField, c.Name)
	return i, false
}

// detected reports whether our field was declared by the engine alone: a document came with a sketch before we had declared it (an
// alias was moved, or a collection made anew, just then), and the schema takes fields up as they come.
func (c collection) detected() bool {
	ours, dynamic := false, false
	for _, f := range c.Fields {
		if f.Name == adapters.SketchField {
			ours = f.Type == "string" && (f.Index == nil || *f.Index)
			continue
		}
		pattern, err := regexp.Compile("^(?:" + f.Name + ")$")
		dynamic = dynamic || err == nil && pattern.MatchString(adapters.SketchField)
	}
	return ours && dynamic
}

// Resolve implements adapters.Store.
func (s *store) Resolve(ctx context.Context, name string) ([]adapters.Index, error) {
	collections, err := s.collections(ctx, name)
	if err != nil {
		return nil, err
	}
	var list []adapters.Index
	for _, c := range collections {
		index, _ := c.index()
		list = append(list, index)
	}
	return list, nil
}

// field declares our field: stored and returned, and not indexed.
const field = `{"name":"` + adapters.SketchField + `","type":"string","index":false,"optional":true}`

// declaration adds our field to a schema; redeclaration puts it in the place of one that stands there.
const (
	declaration   = `{"fields":[` + field + `]}`
	redeclaration = `{"fields":[{"name":"` + adapters.SketchField + `","drop":true},` + field + `]}`
)

// Prepare implements adapters.Store. It never makes a collection, since no write to the engine would.
func (s *store) Prepare(ctx context.Context, name string, _ bool) ([]adapters.Index, error) {
	collections, err := s.collections(ctx, name)
	if err != nil {
		return nil, err
	}
	var list []adapters.Index
	for _, c := range collections {
		index, declared := c.index()
		switch {
		case !declared:
			index = s.declare(ctx, c.Name, declaration)
		case c.detected():
			index = s.declare(ctx, c.Name, redeclaration)
		}
		list = append(list, index)
	}
	return list, nil
}

// declare adds our field and looks at what stands there then: another may have added it in the meantime.
func (s *store) declare(ctx context.Context, name, change string) adapters.Index {
	_, refused := s.get(func(c *api.Client) (*http.Response, error) {
		return c.UpdateCollectionWithBody(ctx, name, "application/json", strings.NewReader(change))
	})
	c, err := s.collection(ctx, name)
	if err != nil {
		return adapters.Index{Name: name, Why: errors.Join(refused, err).Error()}
	}
	index, declared := c.index()
	if !declared && refused != nil {
		index.Why += ": " + refused.Error()
	}
	return index
}

// importLines sends documents to be merged into those that are stored, and returns the reply's lines.
func (s *store) importLines(ctx context.Context, index string, lines []byte) ([][]byte, error) {
	update := "update"
	body, err := s.get(func(c *api.Client) (*http.Response, error) {
		return c.ImportDocumentsWithBody(ctx, index, &api.ImportDocumentsParams{Action: &update}, "text/plain", bytes.NewReader(lines))
	})
	if err != nil {
		return nil, fmt.Errorf("update documents of %s: %w", index, err)
	}
	return bytes.Split(bytes.TrimRight(body, "\n"), []byte{'\n'}), nil
}

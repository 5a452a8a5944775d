package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

// Store is the I/O half of the adapter. It sends its requests through go-elasticsearch's request types over a transport of its own,
// because that library's client refuses to talk to OpenSearch.
type Store struct {
	perform performer
}

var _ adapters.Store = (*Store)(nil)

// Open returns a function that opens a store which acts with a client's headers and query. Requests go to the first URL that
// answers.
func Open(transport http.RoundTripper, urls []*url.URL) func(header adapters.Header, query string) adapters.Store {
	return func(header adapters.Header, query string) adapters.Store {
		return &Store{performer{transport, urls, http.Header(header), query}}
	}
}

// performer carries a request of esapi to the engine with a client's headers.
type performer struct {
	transport http.RoundTripper
	urls      []*url.URL
	header    http.Header
	query     string
}

// Perform implements esapi.Transport.
func (p performer) Perform(r *http.Request) (*http.Response, error) {
	for key, values := range p.header {
		if _, set := r.Header[key]; !set {
			r.Header[key] = values
		}
	}
	if p.query != "" {
		r.URL.RawQuery = strings.Trim(r.URL.RawQuery+"&"+p.query, "&")
	}
	var last error
	for _, node := range p.urls {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host = node.Scheme, node.Host, node.Host
		if prefix := strings.TrimSuffix(node.Path, "/"); prefix != "" {
			out.URL.RawPath, out.URL.Path = prefix+r.URL.EscapedPath(), prefix+r.URL.Path
		}
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			out.Body = body
		}
		resp, err := p.transport.RoundTrip(out)
		if err == nil || r.Context().Err() != nil || r.Body != nil && r.GetBody == nil {
			return resp, err
		}
		last = err
	}
	return nil, last
}

// request is any request type of esapi.
type request interface {
	Do(ctx context.Context, transport esapi.Transport) (*esapi.Response, error)
}

// do sends a request and decodes its JSON into to, if to is not nil. An answer of 300 or above is a *refusal.
func (s *Store) do(ctx context.Context, r request, to any) error {
	resp, err := r.Do(ctx, s.perform)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return &refusal{status: resp.StatusCode, reason: reasonOf(body)}
	}
	if to == nil {
		return nil
	}
	return json.Unmarshal(body, to)
}

// refusal is an error of the engine.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the engine answered %d: %s", r.status, r.reason)
}

// missing reports whether err says that an index is not there.
func missing(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == http.StatusNotFound
}

// reasonOf returns the reason in an error of the engine, or the body as it stands if it is short.
func reasonOf(body []byte) string {
	var e struct {
		Error struct{ Type, Reason string }
	}
	if json.Unmarshal(body, &e) == nil && e.Error.Reason != "" {
		return e.Error.Type + ": " + e.Error.Reason
	}
	if len(body) > 300 {
		body = body[:300]
	}
	return string(body)
}

// Resolve implements adapters.Store. One request tells both the concrete names and how our field is mapped there.
func (s *Store) Resolve(ctx context.Context, name string) ([]adapters.Index, error) {
	var found map[string]struct {
		Mappings map[string]struct {
			Mapping map[string]struct {
				Type      string
				DocValues *bool `json:"doc_values"`
			}
		}
	}
	// Whatever of a list is there, hidden indices too: more than a search may reach, and never less.
	yes := true
	r := esapi.IndicesGetFieldMappingRequest{
		Fields: []string{adapters.SketchField}, IgnoreUnavailable: &yes, AllowNoIndices: &yes, ExpandWildcards: "all",
	}
	if name != "" {
		r.Index = []string{url.PathEscape(name)}
	}
	if err := s.do(ctx, r, &found); err != nil {
		if missing(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("resolve %s: %w", name, err)
	}
	var list []adapters.Index
	for index, m := range found {
		i := adapters.Index{Name: index, Why: "the field " + adapters.SketchField + " is not mapped: run setup with credentials that may change the mapping"}
		if field, mapped := m.Mappings[adapters.SketchField]; mapped {
			as := field.Mapping[adapters.SketchField]
			i.Ready = as.Type == "keyword" && (as.DocValues == nil || *as.DocValues)
			i.Why = ""
			if !i.Ready {
				i.Why = fmt.Sprintf("the field %s is mapped as %s, not as a keyword with doc values: reindex into a new index", adapters.SketchField, as.Type)
			}
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b adapters.Index) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// ourProperties is how our field is mapped: stored with the document, readable as doc values, not indexed.
const ourProperties = `{"properties":{"` + adapters.SketchField + `":{"type":"keyword","index":false,"doc_values":true}}}`

// Prepare implements adapters.Store.
func (s *Store) Prepare(ctx context.Context, name string, create bool) ([]adapters.Index, error) {
	list, err := s.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 && create {
		if s.autoCreates(ctx, name) {
			body := strings.NewReader(`{"mappings":` + ourProperties + `}`)
			err = s.do(ctx, esapi.IndicesCreateRequest{Index: url.PathEscape(name), Body: body}, nil)
			if _, refused := errors.AsType[*refusal](err); err != nil && !refused {
				return nil, fmt.Errorf("create index %s: %w", name, err)
			}
		}
		return s.Resolve(ctx, name)
	}
	for i, index := range list {
		if index.Ready || !strings.Contains(index.Why, "not mapped") {
			continue
		}
		put := esapi.IndicesPutMappingRequest{Index: []string{url.PathEscape(index.Name)}, Body: strings.NewReader(ourProperties)}
		if err := s.do(ctx, put, nil); err != nil {
			list[i].Why = err.Error()
			continue
		}
		list[i].Ready, list[i].Why = true, ""
	}
	return list, nil
}

// autoCreates reports whether the engine would make the index at its first write, as a plain index. In doubt it says no.
func (s *Store) autoCreates(ctx context.Context, name string) bool {
	var settings map[string]map[string]string
	yes := true
	err := s.do(ctx, esapi.ClusterGetSettingsRequest{
		IncludeDefaults: &yes, FlatSettings: &yes, FilterPath: []string{"*.action.auto_create_index"},
	}, &settings)
	if err != nil {
		return false
	}
	for _, level := range []string{"transient", "persistent", "defaults"} {
		if value, set := settings[level]["action.auto_create_index"]; set {
			if value != "true" {
				return false
			}
			break
		}
	}
	var templates struct {
		List []struct {
			Template struct {
				Patterns   []string         `json:"index_patterns"`
				Auto       *json.RawMessage `json:"allow_auto_create"`
				DataStream *json.RawMessage `json:"data_stream"`
			} `json:"index_template"`
		} `json:"index_templates"`
	}
	if err := s.do(ctx, esapi.IndicesGetIndexTemplateRequest{}, &templates); err != nil {
		return missing(err)
	}
	for _, t := range templates.List {
		matches := slices.ContainsFunc(t.Template.Patterns, func(p string) bool { return adapters.Matches(p, name) })
		if matches && (t.Template.Auto != nil || t.Template.DataStream != nil) {
			return false
		}
	}
	return true
}

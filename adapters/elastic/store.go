package elastic

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
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Store is the I/O half of the adapter. It sends the requests of go-elasticsearch over a transport of its own ([Store.Perform]), because that
// library's client refuses to talk to OpenSearch.
type Store struct {
	transport http.RoundTripper
	urls      []*url.URL
	header    http.Header // of the client, as is the query
	query     string
	rules     rule.Rules
	shared    *shared
}

// shared is what the stores of one engine share, whatever their credentials.
type shared struct {
	openSearch atomic.Bool // by the last reply
	piped      atomic.Bool // some index has a search pipeline
	mu         sync.Mutex  // locked while our fields are being declared
	// destinations are those of the engine by UUID.
	opening      sync.Mutex
	destinations map[string]*destination
}

var _ adapters.EngineStore = (*Store)(nil)

// Open returns a function that opens a store which acts with a client's headers and query. Requests go to the first URL that
// answers. The rules say which fields of ours an index needs.
func (Dialect) Open(transport http.RoundTripper, urls []*url.URL, rules rule.Rules) func(header adapters.Header, query string) adapters.EngineStore {
	common := &shared{destinations: map[string]*destination{}}
	return func(header adapters.Header, query string) adapters.EngineStore {
		return &Store{transport, urls, http.Header(header), query, rules, common}
	}
}

// dialect returns the dialect of the engine, as its last reply shows it.
func (s *Store) dialect() Dialect { return Dialect{OpenSearch: s.shared.openSearch.Load()} }

// Perform implements esapi.Transport: it sends a request with the client's headers to the first node that answers.
func (s *Store) Perform(r *http.Request) (*http.Response, error) {
	for key, values := range s.header {
		if _, set := r.Header[key]; !set {
			r.Header[key] = values
		}
	}
	query := []string{r.URL.RawQuery, s.query}
	if s.shared.piped.Load() && strings.HasSuffix(r.URL.Path, "/_search") {
		query = append(query, pastPipelines)
	}
	r.URL.RawQuery = strings.Join(slices.DeleteFunc(query, func(part string) bool { return part == "" }), "&")
	var last error
	for _, node := range s.urls {
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
		resp, err := s.transport.RoundTrip(out)
		if err == nil {
			s.shared.openSearch.Store(resp.Header.Get("X-Elastic-Product") == "")
		}
		if err == nil || r.Context().Err() != nil || r.Body != nil && r.GetBody == nil || !repeatable(r, err) {
			return resp, err
		}
		last = err
	}
	return nil, last
}

// repeatable reports whether a request that got no answer may go to another node: it was not sent, or it changes nothing. A scroll moves on
// with each request, so a page whose reply was lost would be missed.
func repeatable(r *http.Request, err error) bool {
	op, network := errors.AsType[*net.OpError](err)
	if network && op.Op == "dial" || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	return slices.Contains([]string{"_search", "_mget"}, path.Base(r.URL.Path))
}

// do sends a request and decodes its JSON into to, if to is not nil. An answer of 300 or above is a *refusal.
func (s *Store) do(ctx context.Context, r esapi.Request, to any) error {
	body, err := s.body(ctx, r, 0)
	if err == nil && to != nil {
		err = json.Unmarshal(body, to)
	}
	return err
}

// raw is a request for which esapi has no type that serves both engines, or none that is short.
type raw struct{ method, path, query, body string }

// post returns a request about an index: the path begins with its name, which is escaped here.
func post(path, query, body string) raw {
	index, endpoint, _ := strings.Cut(path, "/")
	return raw{http.MethodPost, "/" + url.PathEscape(index) + "/" + endpoint, query, body}
}

// Do implements esapi.Request.
func (r raw) Do(ctx context.Context, t esapi.Transport) (*esapi.Response, error) {
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	request, err := http.NewRequestWithContext(ctx, r.method, r.path, body)
	if err != nil {
		return nil, err
	}
	request.URL.RawQuery = r.query
	request.Header["Accept-Encoding"] = []string{"identity"} // packing pages of documents takes the engine longer than sending them
	if body != nil {
		request.Header["Content-Type"] = []string{"application/json"}
	}
	resp, err := t.Perform(request)
	if err != nil {
		return nil, err
	}
	return &esapi.Response{StatusCode: resp.StatusCode, Body: resp.Body, Header: resp.Header}, nil
}

// tidyUp sends a request that tidies up, with time of its own. Whether it succeeds does not matter.
func (s *Store) tidyUp(ctx context.Context, r esapi.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = s.do(ctx, r, nil)
}

// errTooLong: a reply is longer than wanted.
var errTooLong = errors.New("a reply of more than " + strconv.Itoa(scanLimit>>20) + " MB")

// body sends a request and returns the reply's body, or errTooLong if that is longer than the limit; 0 is no limit.
func (s *Store) body(ctx context.Context, r esapi.Request, limit int64) ([]byte, error) {
	resp, err := r.Do(ctx, s)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	from := io.Reader(resp.Body)
	if limit > 0 {
		from = io.LimitReader(from, limit+1)
	}
	var to bytes.Buffer
	if n, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); err == nil && n > 0 && (limit == 0 || n <= limit) {
		to.Grow(int(n) + bytes.MinRead)
	}
	_, err = to.ReadFrom(from)
	switch {
	case err != nil:
		return nil, err
	case limit > 0 && int64(to.Len()) > limit:
		return nil, errTooLong
	case resp.StatusCode >= 300:
		return nil, refusalOf(resp.StatusCode, to.Bytes())
	}
	return to.Bytes(), nil
}

// refusal is an error of the engine.
type refusal struct {
	status int
	reason string
	index  string // the concrete name that it is about, if it says so
}

func (r *refusal) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("the engine answered %d: %s", r.status, r.reason), ": ")
}

// Is reports whether an error of this kind says what target does.
func (r *refusal) Is(target error) bool {
	busy := r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable
	return target == adapters.ErrBusy && busy
}

// missing reports whether err says that an index is not there.
func missing(err error) bool { return adapters.StatusOf(err) == http.StatusNotFound }

// refusedBy reports whether the engine refused the request itself, so that it makes no sense to repeat it.
func refusedBy(err error) bool { return adapters.StatusOf(err) != 0 }

// says reports whether err is an error of the engine's of that type.
func says(err error, kind string) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && strings.HasPrefix(r.reason, kind)
}

// refusalOf returns the reason in an error of the engine, or the beginning of the body.
func refusalOf(status int, body []byte) *refusal {
	var e struct {
		Error struct{ Type, Reason, Index string }
	}
	if json.Unmarshal(body, &e) == nil && e.Error.Reason != "" {
		return &refusal{status, e.Error.Type + ": " + e.Error.Reason, e.Error.Index}
	}
	if len(body) > 300 {
		body = body[:300]
	}
	return &refusal{status: status, reason: string(body)}
}

// HTTPStatus is for adapters.StatusOf.
func (r *refusal) HTTPStatus() int { return r.status }

// DocumentOf returns the request for a stored document, without credentials.
func (Dialect) DocumentOf(index, id string) *adapters.Request {
	return &adapters.Request{Method: http.MethodGet, Path: "/" + url.PathEscape(index) + "/_doc/" + url.PathEscape(id)}
}

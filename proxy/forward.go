package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// unreachable answers as a proxy does whose engine can't be reached or does not answer. A client that broke off gets nothing.
func (h *Handler) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, errBrokenOff) {
		if u := underwayOf(r.Context()); u != nil {
			u.gone = true
		}
		panic(http.ErrAbortHandler) // the way in which net/http is told to cut the connection
	}
	status, reason := http.StatusBadRequest, ""
	refusal, refused := errors.AsType[adapters.Refusal](err)
	switch {
	case errors.Is(err, errEncoding):
		reason = "the body is not of its Content-Encoding"
	case errors.Is(err, errBusy):
		status, reason = http.StatusServiceUnavailable, "there is no room to decode this body now: send it again, or not compressed"
	case refused:
		reason = refusal.Error()
	}
	if reason != "" {
		h.Metrics.writesRefused.Inc()
		h.refuse(w, r, status, reason)
		return
	}
	h.Log.Warn("engine unreachable", "method", methodOf(r), "error", unquoted(err))
	status = http.StatusBadGateway
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !isDial(err) {
		status = http.StatusGatewayTimeout
	}
	h.refuse(w, r, status, "the search engine can't be reached: "+http.StatusText(status))
}

// nodes measures each request and sends it to one of the engine's nodes, in turn, leaving out for a while those that could not be dialled. Where a
// node can't be dialled the next is tried: no byte was sent, so no request is sent twice.
type nodes struct {
	meter
	urls    []*url.URL
	next    http.RoundTripper
	own     http.RoundTripper // next, with a connection for each request; nil if that can't be had
	granted set
	mu      sync.Mutex
	turn    int
	down    map[*url.URL]time.Time
}

// downFor is how long a node that could not be dialled is left out.
const downFor = 5 * time.Second

// RoundTrip implements http.RoundTripper. It sends a request, which is its to change, to one node after the other until one takes it. Of the URL
// only path and query count.
func (n *nodes) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	call, r := n.begin(r)
	own, key := n.needsOwnConnection(r)
	via := n.next
	if own && n.own != nil {
		via = n.own
	}
	from, body, order := r.URL, r.Body, n.order()
	for i, node := range order {
		out := r
		if i > 0 { // a transport may still look at the one before
			out = r.WithContext(r.Context())
		}
		out.URL, out.Body = from, body
		out.URL, out.Host = at(node, out), node.Host
		out.Close = own && n.own == nil
		last := i == len(order)-1
		if body != nil && body != http.NoBody && !last {
			out.Body = io.NopCloser(body) // a transport closes the body even if it never read it
		}
		if resp, err = via.RoundTrip(out); err == nil {
			n.mark(node, false)
			n.note(key, resp.StatusCode)
			break
		}
		if !isDial(err) || r.Context().Err() != nil {
			break
		}
		n.mark(node, true)
	}
	return call.end(resp, err)
}

// rawPath returns the path as it stands in the request line. URL.EscapedPath writes some of its bytes in another way, among them the
// angle brackets and braces of date math in an index name.
func rawPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") { // a URL with its host
		return r.URL.EscapedPath()
	}
	return path
}

// at returns the URL of a request at a node, with the path as the client sent it.
func at(node *url.URL, r *http.Request) *url.URL {
	raw := strings.TrimSuffix(node.EscapedPath(), "/") + rawPath(r)
	u := &url.URL{Scheme: node.Scheme, Host: node.Host, Path: raw, RawPath: raw, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
	if plain, err := url.PathUnescape(raw); err == nil {
		u.Path = plain
	}
	if u.EscapedPath() != raw && !strings.HasPrefix(raw, "//") {
		u.Opaque = raw // goes into the request line as it stands
	}
	return u
}

func (n *nodes) order() []*url.URL {
	if len(n.urls) == 1 {
		return n.urls
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.turn++
	start := n.turn % len(n.urls)
	list := slices.Concat(n.urls[start:], n.urls[:start])
	slices.SortStableFunc(list, func(a, b *url.URL) int { return n.rank(a) - n.rank(b) })
	return list
}

func (n *nodes) rank(node *url.URL) int {
	if time.Now().Before(n.down[node]) {
		return 1
	}
	return 0
}

func (n *nodes) mark(node *url.URL, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !down {
		delete(n.down, node)
		return
	}
	if n.down == nil {
		n.down = map[*url.URL]time.Time{}
	}
	n.down[node] = time.Now().Add(downFor)
}

func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

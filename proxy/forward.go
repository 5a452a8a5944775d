package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// unreachable answers as a proxy does whose engine can't be reached or does not answer. A client that broke off gets nothing.
func (h *Handler) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, errBrokenOff) {
		underwayOf(r.Context()).gone = true
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
	turn    atomic.Uint32
	down    set // hosts that could not be dialled
}

// downFor is how long a node that could not be dialled is left out.
const downFor = 5 * time.Second

// RoundTrip implements http.RoundTripper.
func (n *nodes) RoundTrip(r *http.Request) (*http.Response, error) { return n.measure(r, n.send) }

// send sends a request, which is its to change, to one node after the other until one takes it. Of the URL only path and query count.
func (n *nodes) send(r *http.Request) (resp *http.Response, err error) {
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
		if !bodiless(r) && i < len(order)-1 {
			out.Body = io.NopCloser(body) // a transport closes the body even if it never read it
		}
		if resp, err = via.RoundTrip(out); err == nil {
			n.down.Delete(node.Host)
			n.note(key, resp.StatusCode)
			return resp, nil
		}
		if !isDial(err) || r.Context().Err() != nil {
			break
		}
		n.down.add(node.Host)
	}
	return nil, err
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

// order returns the nodes in the order in which they are tried.
func (n *nodes) order() []*url.URL {
	if len(n.urls) == 1 {
		return n.urls
	}
	start := int(n.turn.Add(1)) % len(n.urls)
	up, down := []*url.URL{}, []*url.URL{}
	for _, node := range slices.Concat(n.urls[start:], n.urls[:start]) {
		if n.down.has(node.Host) {
			down = append(down, node)
		} else {
			up = append(up, node)
		}
	}
	return append(up, down...)
}

func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

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
)

// nodes is a transport that sends each request to one of the engine's nodes, in turn, leaving out for a while those that could not be dialled. Where a
// node can't be dialled the next is tried: no byte was sent, so no request is sent twice.
type nodes struct {
	urls    []*url.URL
	next    http.RoundTripper
	own     http.RoundTripper // next, with a connection for each request; nil if that can't be had
	granted set               // see needsOwnConnection
	turn    atomic.Uint32
	down    set // hosts that could not be dialled
}

// newEngine returns the transport to an engine.
func newEngine(e Engine) http.RoundTripper {
	n := &nodes{urls: e.URLs, next: e.Transport, own: ownConnections(e.Transport), granted: newSet(0), down: newSet(downFor)}
	return meter{n, e.Metrics, e.Traces, ""}
}

// downFor is how long a node that could not be dialled is left out.
const downFor = 5 * time.Second

// RoundTrip implements http.RoundTripper. The request is its to change. Of the URL only path and query count.
func (n *nodes) RoundTrip(r *http.Request) (resp *http.Response, err error) {
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
			n.remember(key, resp.StatusCode)
			return resp, nil
		}
		if !isDial(err) || r.Context().Err() != nil {
			break
		}
		n.down.add(node.Host)
	}
	return nil, err
}

// rawPath returns the path with the bytes of the request line. URL.EscapedPath writes some of them in another way, among them the angle brackets
// and braces of date math in an index name.
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
		u.Opaque = raw // goes into the request line as it is
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

package proxy

import (
	"errors"
	"io"
	"math"
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
	granted set               // see hastyKey
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
	key := hastyKey(r)
	own := needsOwnConnection(r) || key != "" && !n.granted.has(key)
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

// A connection is used again after a request whose head and body have no more than longHead and longBody bytes. With a hasty engine the bound of the
// body is hastyBody.
const (
	longHead  = 3 << 10
	longBody  = 1 << 20
	hastyBody = 128 << 10
)

// needsOwnConnection reports whether a request gets a connection of its own, which is closed after it. There are four reasons:
//
// Its head is long. To a head that it finds too long (4 kB of request line, 8 or 16 kB of header by default) the engine answers an error and
// then reads nothing more from that connection: the next request on it would wait for ever.
//
// Its body is long, or may be. An engine that finds it too long answers 413 and closes the connection while the body is still being written. A
// transport that can't write the rest would lose the answer: see [answered]. A body of 5 MB to an engine that drops it takes 13.1 ms by a connection
// of its own, and 11.7 by one that is kept (means of four runs, from 9 to 17 ms each, on a busy machine).
//
// net/http would send it twice though it may change something, as it does for the header Idempotency-Key, if the connection had been used before.
//
// The engine is hasty: it sends a body in reply to HEAD, which the next request would get, and does not read a body that it finds too long (196,605
// bytes in Typesense). See also [hastyKey].
func needsOwnConnection(r *http.Request) bool {
	body := r.ContentLength
	switch {
	case bodiless(r):
		body = 0
	case body < 0:
		body = math.MaxInt64
	}
	switch {
	case lengthOfHead(r) > longHead || resent(r):
		return true
	case isHasty(r):
		return r.Method == http.MethodHead || body > hastyBody
	}
	return body > longBody
}

// isHasty reports whether a request goes to a hasty engine: see [adapters.Class].
func isHasty(r *http.Request) bool {
	u := underwayOf(r.Context())
	return u != nil && u.class.Hasty
}

// hastyKey returns the key under which a hasty engine has granted requests such as this one; empty for other engines, and without a body.
//
// A hasty engine may answer before it has read the body and then never answers on that connection again: the rest of the body, even a few bytes, is
// in its way. The next request on it would wait for ever, or get another's reply. So a client's first requests of a kind get their own connections
// until one is granted: an engine that refuses credentials does so early, one that grants them reads the whole body.
func hastyKey(r *http.Request) string {
	if !isHasty(r) || bodiless(r) || r.Method == http.MethodHead {
		return ""
	}
	return grantKey(r, underwayOf(r.Context()).class.Target)
}

// resent reports whether net/http may send a request twice although it may change something.
func resent(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}

func lengthOfHead(r *http.Request) (n int) {
	n = len(r.RequestURI) + len(r.URL.RawQuery)
	for key, values := range r.Header {
		for _, value := range values {
			n += len(key) + len(value) + len(": \r\n")
		}
	}
	return n
}

// grantKey returns a key that is the same for requests of one client with the same method, endpoint and index: the engine grants all of them or none.
func grantKey(r *http.Request, target string) string {
	segments := strings.Split(rawPath(r), "/")
	return keyOf(senderOf(r).key, r.Method, target, strings.Join(segments[:min(len(segments), 4)], "/"), strings.Repeat("/", len(segments)))
}

// remember takes what the engine answered to a request under its hastyKey.
func (n *nodes) remember(key string, status int) {
	switch {
	case key == "":
	case status < 400:
		n.granted.add(key)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		n.granted.Delete(key)
	}
}

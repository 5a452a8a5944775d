package proxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// A connection is used again after a request whose head, and with a hasty engine whose body, has no more than these bytes.
const (
	longHead  = 3 << 10
	hastyBody = 128 << 10
)

// needsOwnConnection reports whether a request gets a connection of its own, which is closed after it. key is what [nodes.remember] takes, with the
// status of the reply. There are three reasons:
//
// Its head is long. To a head that it finds too long (4 kB of request line, 8 or 16 kB of header by default) the engine answers an error and
// then reads nothing more from that connection: the next request on it would wait for ever.
//
// net/http would send it twice though it may change something, as it does for the header Idempotency-Key, if the connection had been used before.
//
// The engine is hasty. It may answer before it has read the body and then never answers on that connection again: the rest of the body, even a few
// bytes, is in its way. So is the unread part of a long body that it refuses (beyond 196,605 bytes in Typesense). It also sends a body in reply to
// HEAD. The next request on the connection would wait for ever, or get another's reply. A client's first requests of a kind get their own connections
// until one is granted: an engine that refuses credentials does so early, one that grants them reads the whole body.
func (n *nodes) needsOwnConnection(r *http.Request) (yes bool, key string) {
	u := underwayOf(r.Context())
	switch {
	case lengthOfHead(r) > longHead || resent(r):
		return true, ""
	case u == nil || !u.class.Hasty:
		return false, ""
	case r.Method == http.MethodHead:
		return true, ""
	case bodiless(r):
		return false, ""
	}
	key = grantKey(r, u.class.Target)
	return r.ContentLength < 0 || r.ContentLength > hastyBody || !n.granted.has(key), key
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

// ownConnections returns a copy of a transport that closes each connection after its first reply, and reads that reply even where the engine reads no
// more of the request. It does not ask the engine to close the connection: that would close it at once when it answers, and the rest of the request
// would reset it.
func ownConnections(transport http.RoundTripper) http.RoundTripper {
	var t *http.Transport
	switch of := transport.(type) {
	case *Transport:
		t = of.Transport.Clone()
	case *http.Transport:
		t = of.Clone()
	default:
		return nil
	}
	t.MaxIdleConnsPerHost = -1
	if t.DialContext == nil {
		t.DialContext = new(net.Dialer).DialContext
	}
	t.DialContext = answering(t.DialContext)
	if t.DialTLSContext != nil {
		t.DialTLSContext = answering(t.DialTLSContext)
	}
	return t
}

type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// answering returns a way to connect whose connections are answered ones.
func answering(connect dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := connect(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return answered{conn}, nil
	}
}

// answered is a connection to an engine that may answer and close before it has read all. A transport that can't write the rest would give up, and
// lose the reply that has come. Here what the engine does not read counts as written, and reading shows the outcome.
type answered struct{ net.Conn }

// Write implements net.Conn.
func (c answered) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return len(p), nil
	}
	return n, err
}

// grantKey returns a key that is the same for requests of one client with the same method, endpoint and index: the engine grants all of them or none.
func grantKey(r *http.Request, target string) string {
	segments := strings.Split(rawPath(r), "/")
	sum := sha256.New()
	part(sum, senderOf(r).key)
	part(sum, r.Method)
	part(sum, target)
	part(sum, strings.Join(segments[:min(len(segments), 4)], "/"))
	part(sum, strings.Repeat("/", len(segments)))
	return string(sum.Sum(nil))
}

// remember takes what the engine answered to a request under the key that needsOwnConnection returned.
func (n *nodes) remember(key string, status int) {
	switch {
	case key == "":
	case status < 400:
		n.granted.add(key)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		n.granted.Delete(key)
	}
}

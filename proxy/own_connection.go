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

// A connection is used again behind a head, and with a hasty engine a body, of no more than so many bytes.
const (
	longHead  = 3 << 10
	hastyBody = 128 << 10
)

// needsOwnConnection reports whether a request gets a connection of its own, which is closed behind it, and under what key remember takes what
// becomes of it. It does for each of three reasons:
//
// Its head is long. To a head that it finds too long (4 kB of request line, 8 or 16 kB of header by default) the engine answers an error and
// then reads nothing more from that connection: whoever got it next would wait for ever.
//
// net/http would send it twice though it may change something, as it does for the header Idempotency-Key, if the connection had been used before.
//
// The engine is hasty. It may answer before it has read the body and then never answers on that connection again: what is left of the body, were
// it a few bytes, is in its way. So is what it has not yet taken in of a long body when it refuses that (beyond 196,605 bytes in Typesense). Nor
// does such an engine leave out the body of an answer to HEAD. Whoever got the connection next would wait for ever, or for another's answer. A
// client's first request of a kind gets its own until one was granted: an engine that refuses a client's credentials does so early, one that grants
// them reads what was sent.
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

// resent reports whether net/http sends a request twice that may change something.
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

// ownConnections returns a copy of a transport that closes each connection behind its first reply, and reads that reply even where the engine
// takes no more of the request. It does not tell the engine to close the connection, which would do so as early as it has answered: what
// is still on its way to it would reset the connection.
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

// answered is a connection to an engine that may answer and close before it has read all. A transport that can't write the rest gives up,
// and with it the answer that is there; here what the engine does not take counts as written, and reading tells how it went.
type answered struct{ net.Conn }

// Write implements net.Conn.
func (c answered) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return len(p), nil
	}
	return n, err
}

// grantKey returns a key for requests of the same client that the engine decides on alike: method, endpoint and index, as far as the path
// and the dialect tell them.
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

package proxy

import (
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// flushAfter is how long the client waits at most for a part of a reply that has arrived. Most replies end sooner, and go out in few pieces.
// A reply of known length, of no more than shortReply bytes, goes out when it is whole: an engine that knows the length has all of it ready.
// This saves a timer, a twentieth of the processor time of such a request.
const (
	flushAfter = time.Millisecond
	shortReply = 64 << 10
)

// errSwitched: the engine speaks another protocol from here on, which nobody asked it for.
var errSwitched = errors.New("the engine switched protocols")

// send sends a request to the engine and streams the reply to the client, less our fields. edit, if not nil, changes the reply first. If the
// reply breaks off, so does the client's connection.
//
// A request may create, change or drop an index. What is known of indices is then forgotten twice: for this client before the request goes out,
// and for all concerned when the engine answers, before any of that reaches the client.
func (h *Handler) send(u *underway, r *http.Request, edit func(*http.Response)) {
	if u.class.Alters {
		h.catalog.forgetFor(u.sender.client())
	}
	answered := false
	defer func() {
		if !answered && u.alters() { // it may have been done all the same
			h.catalog.altered(u.sender.client(), 0)
		}
	}()
	in := r.WithContext(r.Context())
	in.Header = onwards(r.Header)
	if u.cleansReply() && !signed(r) {
		acceptReadable(in.Header)
	}
	hider := &headerHider{RoundTripper: h.toEngine}
	proxy := httputil.ReverseProxy{Rewrite: asSent, Transport: hider, BufferPool: copyBuffers, ErrorLog: discard}
	proxy.ModifyResponse = func(resp *http.Response) error {
		resp.Header = hider.header
		if answered = true; u.alters() {
			h.catalog.altered(u.sender.client(), resp.StatusCode)
		}
		if u.class.NewIndex != "" && resp.StatusCode < 300 && !signed(r) { // a look-up under another request's signature would be refused
			h.catalog.ruleOfDocument(u, u.class.NewIndex, false) // has our field declared, before the client knows
		}
		if edit != nil {
			edit(resp)
		}
		if u.cleansReply() {
			h.clean(u, resp)
		}
		if resp.ContentLength < 0 || resp.ContentLength > shortReply {
			proxy.FlushInterval = flushAfter
		}
		if resp.ContentLength < 0 && len(resp.Header["Content-Length"]) == 0 {
			resp.Header["Transfer-Encoding"] = chunked // or net/http would count a short one
			resp.ContentLength = 0                     // or ReverseProxy would flush each piece
		}
		return nil
	}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) { h.answerError(w, r, err) }
	proxy.ServeHTTP(u, in)
}

var chunked = []string{"chunked"}

// discard is for what ReverseProxy logs: a reply that breaks off, which is counted already.
var discard = log.New(io.Discard, "", 0)

// asSent restores what ReverseProxy drops of a request: X-Forwarded-For and the like, parameters that it can't parse, the values of trailers, and
// headers that Connection names.
func asSent(p *httputil.ProxyRequest) {
	p.Out.URL, p.Out.Header, p.Out.Trailer = p.In.URL, p.In.Header, p.In.Trailer
}

// headerHider carries the request of a ReverseProxy to the engine, and hides the reply's headers from the ReverseProxy, which would drop
// Proxy-Authenticate (see hopHeaders). ModifyResponse in send puts them back.
type headerHider struct {
	http.RoundTripper
	header http.Header // of the reply
}

// RoundTrip implements http.RoundTripper.
func (p *headerHider) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close() // and with it the connection
		return nil, errSwitched
	}
	dropHops(resp.Header)
	p.header, resp.Header = resp.Header, nil
	return resp, nil
}

// pieceSize is how much is copied at once.
const pieceSize = 32 << 10

// pool keeps the buffers through which bodies and replies are copied.
type pool struct{ sync.Pool }

var copyBuffers = &pool{sync.Pool{New: func() any { return new([pieceSize]byte) }}}

// Get returns a buffer of pieceSize bytes, to be given back by Put.
func (p *pool) Get() []byte { return p.Pool.Get().(*[pieceSize]byte)[:] }

// Put takes back what Get returned.
func (p *pool) Put(piece []byte) { p.Pool.Put((*[pieceSize]byte)(piece)) }

// hopHeaders are the headers, in their canonical form, that concern one connection alone: those that RFC 9110, section 7.6.1, has every
// intermediary leave out. No request and no reply goes on with them, whichever way it goes.
//
// Proxy-Authorization and Proxy-Authenticate are not among them. They are between a client and a proxy that it was configured to use (section
// 11.7.2). To its clients a sidecar is the engine (a gateway, section 3.7). It asks for no such credentials and uses none, so they pass, as they do
// through nginx's proxy_pass.
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// hop reports whether a header, in its canonical form, concerns one connection alone.
func hop(key string) bool { return slices.Contains(hopHeaders, key) }

// onwards returns the headers of a request that go on: all but hopHeaders. Other headers that the client names in Connection go on: no engine obeys
// that, and without its key, its type or the user that it acts for, a request is another one. Upgrade does not go on: Typesense would switch the
// connection to HTTP/2. The lists of values are the request's own.
func onwards(header http.Header) http.Header {
	out := make(http.Header, len(header)+1)
	for key, values := range header {
		if !hop(key) {
			out[key] = values
		}
	}
	if te, ok := header["Te"]; ok && lists(te, "trailers") {
		out["Te"] = []string{"trailers"}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = noAgent
	}
	return out
}

// lists reports whether the values of a header list a word, in whichever case.
func lists(values []string, word string) bool {
	for _, line := range values {
		for each := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(textproto.TrimString(each), word) {
				return true
			}
		}
	}
	return false
}

// noAgent is what keeps net/http from naming an agent of its own. It is never written to.
var noAgent = []string{""}

// dropHops takes the headers of its connection out of a reply, and those that it says are such.
func dropHops(header http.Header) {
	for _, line := range header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			header.Del(textproto.TrimString(name))
		}
	}
	maps.DeleteFunc(header, func(key string, _ []string) bool { return hop(key) })
}

// answerError answers a request that can't go on: the client's body is at fault, or the engine can't be reached or does not answer. A client that
// broke off gets nothing.
func (h *Handler) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, errBrokenOff) {
		underwayOf(r.Context()).gone = true
		panic(http.ErrAbortHandler) // has net/http cut the connection
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
	h.Log.Warn("engine unreachable", "method", methodOf(r), "error", unquoted(errors.New(senderOf(r).hide(err.Error()))))
	status = http.StatusBadGateway
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !isDial(err) {
		status = http.StatusGatewayTimeout
	}
	h.refuse(w, r, status, "the search engine can't be reached: "+http.StatusText(status))
}

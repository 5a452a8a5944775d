package proxy

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"time"
)

// flushAfter is how long a reply may keep the client waiting for what has come of it. Most replies end sooner, and go out in few pieces.
// A reply of known length goes out when it is whole, if it has no more than shortReply bytes: an engine that knows the length has made all of
// it. This saves a timer, a twentieth of the processor time of such a request.
const (
	flushAfter = time.Millisecond
	shortReply = 64 << 10
)

// errSwitched: the engine speaks another protocol from here on, which nobody asked it for.
var errSwitched = errors.New("the engine switched protocols")

// send sends a request to the engine and streams the reply to the client. change, if not nil, edits the reply's head and body first. If the
// reply breaks off, so does the client's connection.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, change func(*http.Response)) {
	in := r.WithContext(r.Context())
	in.Header = onwards(r.Header)
	p := &passThrough{engine: h.engine}
	proxy := httputil.ReverseProxy{Rewrite: asSent, Transport: p, BufferPool: pieces, ErrorLog: discard}
	proxy.ModifyResponse = func(resp *http.Response) error {
		p.restore(resp)
		if change != nil {
			change(resp)
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
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) { h.unreachable(w, r, err) }
	proxy.ServeHTTP(w, in)
}

var chunked = []string{"chunked"}

// discard is for what ReverseProxy logs: a reply that breaks off, which is counted already.
var discard = log.New(io.Discard, "", 0)

// asSent undoes what ReverseProxy does to a request beyond what onwards does: it drops X-Forwarded-For and the like, parameters that it can't
// parse, the values of trailers, and headers that Connection names.
func asSent(p *httputil.ProxyRequest) {
	p.Out.URL, p.Out.Header, p.Out.Trailer = p.In.URL, p.In.Header, p.In.Trailer
}

// passThrough carries one request of a ReverseProxy to the engine, and hides the reply's headers from the ReverseProxy, which would drop
// Proxy-Authenticate: see hopHeaders.
type passThrough struct {
	engine http.RoundTripper
	header http.Header // of the reply
}

// RoundTrip implements http.RoundTripper.
func (p *passThrough) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.engine.RoundTrip(r)
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

// restore gives the reply its headers back.
func (p *passThrough) restore(resp *http.Response) { resp.Header = p.header }

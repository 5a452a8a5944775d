package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// NewTransport returns the transport that a Handler uses by default. It asks for no compression of its own, so that what the
// client and the engine agree on is what passes.
func NewTransport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		DisableCompression:    true,
		ForceAttemptHTTP2:     false,
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// forwarding are the headers that ReverseProxy takes away and that go on as the client sent them.
var forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

type responseChange struct{}

// newForward returns the reverse proxy through which everything goes that is not answered by us.
func (h *Handler) newForward() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     h.nodes,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.RawQuery = p.In.URL.RawQuery // as sent: ReverseProxy drops what it can't parse
			for _, key := range forwarding {
				if values, ok := p.In.Header[key]; ok {
					p.Out.Header[key] = values
				}
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if change, ok := resp.Request.Context().Value(responseChange{}).(func(*http.Response)); ok {
				change(resp)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { h.unreachable(w, r, err) },
	}
}

// changing returns the request with a function that gets the response before the client does.
func changing(r *http.Request, change func(*http.Response)) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), responseChange{}, change))
}

// unreachable answers as a proxy does whose engine can't be reached or does not answer. A client that broke off gets nothing.
func (h *Handler) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, errBrokenOff) {
		h.counts.add("broken_off", "")
		panic(http.ErrAbortHandler) // the way in which net/http is told to cut the connection
	}
	h.Log.Warn("engine unreachable", "method", r.Method, "error", err.Error())
	status := http.StatusBadGateway
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !isDial(err) {
		status = http.StatusGatewayTimeout
	}
	h.counts.add("unreachable", "")
	h.refuse(w, status, "the search engine can't be reached: "+http.StatusText(status))
}

// nodes sends each request to one of the engine's nodes, in turn, leaving out for a while those that could not be dialled. Where a
// node can't be dialled the next is tried: no byte was sent, so no request is sent twice.
type nodes struct {
	urls []*url.URL
	next http.RoundTripper
	turn atomic.Uint64
	mu   sync.Mutex
	down map[*url.URL]time.Time
}

// downFor is how long a node that could not be dialled is left out.
const downFor = 5 * time.Second

// RoundTrip implements http.RoundTripper. The request's URL gives path and query alone.
func (n *nodes) RoundTrip(r *http.Request) (*http.Response, error) {
	order := n.order()
	body := r.Body
	for i, node := range order {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host = node.Scheme, node.Host, node.Host
		if prefix := strings.TrimSuffix(node.EscapedPath(), "/"); prefix != "" {
			out.URL.RawPath = prefix + r.URL.EscapedPath()
			out.URL.Path = strings.TrimSuffix(node.Path, "/") + r.URL.Path
		}
		last := i == len(order)-1
		if body != nil && body != http.NoBody && !last {
			out.Body = io.NopCloser(body) // a transport closes the body even if it never read it
		}
		resp, err := n.next.RoundTrip(out)
		if err == nil || !isDial(err) {
			if err == nil {
				n.mark(node, false)
			}
			return resp, err
		}
		n.mark(node, true)
		if last {
			return nil, err
		}
	}
	return nil, errors.New("no node")
}

func (n *nodes) order() []*url.URL {
	if len(n.urls) == 1 {
		return n.urls
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	start := int(n.turn.Add(1)) % len(n.urls)
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

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Transport is an http.RoundTripper to an engine; [NewTransport] makes one. It writes a short request, and reads the reply, in the goroutine
// that asks. An [http.Transport] has two goroutines for each connection, and hands each request and each reply over to one of them. All that is
// not short, and so every write, goes to the http.Transport that it embeds.
//
// At saturation, a core-second of the sidecar answers 1.19 times as many searches that pass (45 kB; 1.05 to 1.25 in six rounds) as with an
// http.Transport for everything, and 1.12 times as many documents of 2 kB (1.06 to 1.23). Collapsed pages gain little: 1.03 (0.95 to 1.11).
// See docs/decisions/027.
type Transport struct {
	*http.Transport
	mu   sync.Mutex
	idle map[string][]*conn // by host; the one that was used last is at the end
	near atomic.Bool        // see dial
}

// NewTransport returns the transport that a Handler uses by default. It asks for no compression of its own, so that what the
// client and the engine agree on is what passes.
func NewTransport() *Transport {
	t := &Transport{}
	t.Transport = &http.Transport{
		DialContext:           t.dial,
		DisableCompression:    true,
		Protocols:             OnlyHTTP1(),
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	return t
}

// OnlyHTTP1 is what is spoken to clients and to engines, by TLS too. The engines listen with HTTP/1.1, and another version would have to be
// translated: a path or a header as sent, a reply cut short, an answer before the body's end. So what passes passes as it is.
func OnlyHTTP1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// shortBody is how long the body of a short request may be, in bytes: a connection takes that much at once, whether or not the engine reads.
const shortBody = 16 << 10

// short reports whether a request has no body, or a short one in memory, and asks nothing special of the connection. A request by TLS is never
// short: an unexpected reply could wait unseen inside the TLS connection, and become the next request's.
func (t *Transport) short(r *http.Request) bool {
	if !canProbe || r.URL.Scheme != "http" || r.URL.Hostname() == "" || t.ResponseHeaderTimeout > 0 {
		return false
	}
	if r.Method == http.MethodConnect || r.Close || len(r.TransferEncoding) > 0 || len(r.Trailer) > 0 {
		return false
	}
	for _, key := range []string{"Connection", "Expect", "Upgrade"} {
		if _, ok := r.Header[key]; ok {
			return false
		}
	}
	return bodiless(r) || r.GetBody != nil && r.ContentLength > 0 && r.ContentLength <= shortBody
}

func bodiless(r *http.Request) bool { return r.Body == nil || r.Body == http.NoBody }

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.short(r) {
		return t.Transport.RoundTrip(r)
	}
	request := requests.Get().(*bytes.Buffer)
	defer requests.Put(request)
	request.Reset()
	if err := write(request, r); err != nil {
		return nil, err
	}
	for {
		c, err := t.connection(r)
		if err != nil {
			return nil, err
		}
		resp, err := c.roundTrip(r, request.Bytes())
		if err == nil || !c.repeatable(r) {
			return resp, err
		}
	}
}

// write writes a request to a buffer. The body itself stays unread: the request may still go to another node.
func write(to *bytes.Buffer, r *http.Request) error {
	if bodiless(r) {
		return r.Write(to)
	}
	body, err := r.GetBody()
	if err != nil {
		return err
	}
	out := *r
	out.Body = body
	return out.Write(to)
}

// requests are buffers for short requests.
var requests = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// connection returns an idle connection to the host of a request, or a new one.
func (t *Transport) connection(r *http.Request) (*conn, error) {
	for c := t.get(r.URL.Host); c != nil; c = t.get(r.URL.Host) {
		if c.expiry.Stop() && c.silent() {
			c.reused = true
			return c, nil
		}
		c.cut()
	}
	address := r.URL.Host
	if r.URL.Port() == "" {
		address = net.JoinHostPort(r.URL.Hostname(), "80")
	}
	ctx := r.Context()
	to, err := t.DialContext(ctx, "tcp", address)
	if err != nil {
		if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
			<-ctx.Done() // a dialer may notice the deadline first; that is no failure of the node
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c := &conn{Conn: to, of: t, host: r.URL.Host, silent: silence(to)}
	c.expiry = time.AfterFunc(t.IdleConnTimeout, c.cut) // and connection finds it so
	c.expiry.Stop()
	c.reader = bufio.NewReaderSize(&c.reply, pieceSize)
	return c, nil
}

// conn is a connection to an engine, which carries one request after the other.
type conn struct {
	net.Conn
	of     *Transport
	host   string
	reply  io.LimitedReader // what may be read of the connection
	reader *bufio.Reader    // of reply, with room for most: each piece that goes to the client on its own wakes it
	expiry *time.Timer      // closes it where it is idle for long
	silent func() bool      // see silence

	reused bool // it has carried an earlier request
	wrote  bool // some of this request
}

// longestHead is how long the heads of a reply may be in all, in bytes: as long as for an http.Transport.
const longestHead = 10 << 20

// cut closes the connection.
func (c *conn) cut() { _ = c.Close() }

// roundTrip sends a request and returns the reply, whose body gives the connection back.
func (c *conn) roundTrip(r *http.Request, request []byte) (*http.Response, error) {
	ctx := r.Context()
	c.reply = io.LimitedReader{R: c.Conn, N: longestHead}
	stop := context.AfterFunc(ctx, c.cut)
	resp, err := c.writeAndReadHead(r, request)
	if err != nil {
		stop()
		c.cut()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c.reply.N = math.MaxInt64
	body := &connBody{ReadCloser: resp.Body, ctx: ctx, conn: c, stop: stop, keep: !resp.Close}
	if resp.Body == http.NoBody {
		body.end(io.EOF)
		return resp, nil
	}
	resp.Body = body
	return resp, nil
}

// writeAndReadHead sends a request and reads the head of the reply.
func (c *conn) writeAndReadHead(r *http.Request, request []byte) (*http.Response, error) {
	n, failed := c.Write(request)
	c.wrote = n > 0
	if failed != nil { // the engine has hung up, and may have said why
		if _, err := c.reader.Peek(1); err == io.EOF {
			return nil, failed
		} else if err != nil {
			return nil, err
		}
	}
	trace := httptrace.ContextClientTrace(r.Context())
	for {
		resp, err := http.ReadResponse(c.reader, r)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			resp.Close = resp.Close || failed != nil || resp.StatusCode < 200
			return resp, nil
		}
		if trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, err
			}
			c.reply.N = longestHead - 1 // less than all: some of the reply has come
		}
	}
}

// repeatable reports whether a request that failed on the connection may be sent on another one: the engine had closed this one before, and
// either nothing was sent, or it does no harm to send the request twice. (A body may do some: GET can ask for the next page of a scroll.)
func (c *conn) repeatable(r *http.Request) bool {
	if !c.reused || c.reply.N < longestHead || r.Context().Err() != nil {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return bodiless(r) || !c.wrote
	}
	return !c.wrote
}

// connBody is the body of a reply on its connection.
type connBody struct {
	io.ReadCloser
	ctx  context.Context // of the request
	conn *conn
	stop func() bool // ends the watch that cuts the connection with the context
	keep bool        // the engine keeps the connection open
	once sync.Once
}

// Read implements io.Reader.
func (b *connBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		if err != io.EOF && b.ctx.Err() != nil {
			err = context.Cause(b.ctx)
		}
		b.end(err)
	}
	return n, err
}

// Close implements io.Closer. It ends a Read of another goroutine. A connection with more of the reply to come is closed.
func (b *connBody) Close() error {
	b.end(http.ErrBodyReadAfterClose)
	return nil
}

// end gives the connection back, for another request if the reply has ended well.
func (b *connBody) end(err error) {
	b.once.Do(func() {
		stopped := b.stop()
		if err != io.EOF || b.conn.reader.Buffered() > 0 || !stopped || !b.keep {
			b.conn.cut()
			return
		}
		b.conn.of.put(b.conn)
	})
}

// put keeps a connection for another request. Where there are as many as the http.Transport may keep, it takes the place of the oldest.
func (t *Transport) put(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.idle[c.host]
	if len(list) > 0 && len(list) >= t.MaxIdleConnsPerHost {
		list[0].cut()
		list = slices.Delete(list, 0, 1)
	}
	if t.idle == nil {
		t.idle = map[string][]*conn{}
	}
	t.idle[c.host] = append(list, c)
	c.expiry.Reset(t.IdleConnTimeout)
}

// get returns the idle connection to a host that was used last, nil for none.
func (t *Transport) get(host string) (c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if list := t.idle[host]; len(list) > 0 {
		c = list[len(list)-1]
		t.idle[host] = slices.Delete(list, len(list)-1, len(list))
	}
	return c
}

// CloseIdleConnections closes the connections that no request is using.
func (t *Transport) CloseIdleConnections() {
	t.Transport.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, list := range t.idle {
		for _, c := range list {
			c.expiry.Stop()
			c.cut()
		}
	}
	t.idle = nil
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

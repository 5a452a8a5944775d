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
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Transport carries requests to an engine; [NewTransport] makes one. A short one is written, and its reply read, by the goroutine that asks;
// an [http.Transport] has two of its own for each connection, and each time that one hands something to another a thread may have to be
// woken. All that is not short is the http.Transport's.
type Transport struct {
	*http.Transport
	idle idle
}

// shortBody is how long the body of a short request may be, in bytes: a connection takes so much at once, whether or not the engine reads.
const shortBody = 16 << 10

// short reports whether a request is one: nothing but its bytes, which are at hand, and the reply's will go over the connection. By TLS none
// is: a reply that nobody asked for can wait there unseen.
func (t *Transport) short(r *http.Request) bool {
	if !tellsClosed || r.URL == nil || r.URL.Scheme != "http" || r.URL.Hostname() == "" || t.DialContext == nil || t.ResponseHeaderTimeout > 0 {
		return false
	}
	if r.Method == http.MethodConnect || r.Close || len(r.TransferEncoding) > 0 || len(r.Trailer) > 0 || !sound(r) {
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

// sound reports whether a request can be written as it is. Of others an http.Transport says what is wrong.
func sound(r *http.Request) bool {
	if !httpguts.ValidHeaderFieldName(r.Method) || r.Header == nil {
		return false
	}
	for key, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(key) || slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			return false
		}
	}
	return !strings.ContainsFunc(r.URL.Host, func(c rune) bool { return c >= 0x80 })
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.short(r) {
		return t.Transport.RoundTrip(r)
	}
	if r.Body != nil {
		defer r.Body.Close() // it is not read: whoever sends the request to another node may still do so
	}
	request := requests.Get().(*bytes.Buffer)
	defer requests.Put(request)
	request.Reset()
	if err := write(request, r); err != nil {
		return nil, err
	}
	for anew := false; ; anew = true {
		if r.Context().Err() != nil {
			return nil, context.Cause(r.Context())
		}
		c, err := t.connection(r, anew)
		if err != nil {
			return nil, err
		}
		resp, err := c.exchange(r, request.Bytes())
		if err == nil || !c.again(r) {
			return resp, err
		}
	}
}

// write writes a request to a buffer.
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

// CloseIdleConnections closes the connections that no request is using.
func (t *Transport) CloseIdleConnections() {
	t.Transport.CloseIdleConnections()
	t.idle.close()
}

// connection returns a connection to the host of a request: one that was used before and is still open, unless it is to be made anew.
func (t *Transport) connection(r *http.Request, anew bool) (*direct, error) {
	for !anew {
		c := t.idle.get(r.URL.Host)
		if c == nil {
			break
		}
		if c.open() {
			c.used = true
			return c, nil
		}
		c.cut()
	}
	return t.dial(r.Context(), r.URL)
}

// dial connects to a host. Who asks may give up before there is a connection: that is no fault of the host's, and another request gets it.
func (t *Transport) dial(ctx context.Context, u *url.URL) (*direct, error) {
	type dialled struct {
		*direct
		err error
	}
	address, age, done := u.Host, t.idle.age(), make(chan dialled)
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "80")
	}
	go func() {
		conn, err := t.DialContext(context.WithoutCancel(ctx), "tcp", address)
		d := dialled{&direct{Conn: conn, of: t, host: u.Host, age: age}, err}
		select {
		case done <- d:
		case <-ctx.Done():
			if err == nil {
				t.idle.put(d.direct)
			}
		}
	}()
	select {
	case d := <-done:
		return d.direct, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// direct is a connection to an engine for one request after the other.
type direct struct {
	net.Conn
	of       *Transport
	host     string
	age      int           // of the Transport's, when it was made
	buffered *bufio.Reader // during an exchange

	since   time.Duration // the end of its last exchange, as clock tells it
	used    bool          // it has had an earlier request
	wrote   bool          // something of the request
	arrived bool          // something of the reply
	left    int64         // how much may still be read
	quiet   func() bool
}

// longestHead is how long the heads of a reply may be in all, in bytes: as long as for an http.Transport.
const longestHead = 10 << 20

var errLongHead = errors.New("the head of the reply is too long")

// Read implements io.Reader.
func (c *direct) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHead
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	c.arrived = c.arrived || n > 0
	return n, err
}

// cut ends the connection, and with it what waits for it.
func (c *direct) cut() { _ = c.Close() }

// open reports whether the engine has neither closed the connection nor said anything unasked.
func (c *direct) open() bool {
	if c.quiet == nil {
		c.quiet = quiet(c.Conn)
	}
	return c.quiet()
}

// exchange sends a request and returns the reply, whose body gives the connection back.
func (c *direct) exchange(r *http.Request, request []byte) (*http.Response, error) {
	ctx := r.Context()
	c.wrote, c.arrived, c.left = false, false, longestHead
	c.buffered = readers.Get().(*bufio.Reader)
	c.buffered.Reset(c)
	stop := context.AfterFunc(ctx, c.cut)
	resp, err := c.ask(r, request)
	if err != nil {
		stop()
		c.done()
		c.cut()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c.left = math.MaxInt64
	body := &coming{ReadCloser: resp.Body, ctx: ctx, conn: c, stop: stop, keeps: !resp.Close, begun: c.buffered.Buffered() > 0}
	if resp.Body == http.NoBody {
		body.end(io.EOF, body.keeps)
		return resp, nil
	}
	resp.Body = body
	return resp, nil
}

// readers are what replies are read through. They have room for most whole: each piece of its own that goes on to the client wakes it.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, pieceSize) }}

// done ends an exchange. It reports whether nothing has come behind the reply.
func (c *direct) done() bool {
	nothing := c.buffered.Buffered() == 0
	c.buffered.Reset(nil)
	readers.Put(c.buffered)
	c.buffered = nil
	return nothing
}

// ask sends a request and returns the reply to it, of which the body is still to come.
func (c *direct) ask(r *http.Request, request []byte) (*http.Response, error) {
	n, failed := c.Write(request)
	c.wrote = n > 0
	if failed != nil { // the engine has hung up, and may have said why
		if _, err := c.buffered.Peek(1); err == io.EOF {
			return nil, failed
		} else if err != nil {
			return nil, err
		}
	}
	trace := httptrace.ContextClientTrace(r.Context())
	for {
		resp, err := http.ReadResponse(c.buffered, r)
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
			c.left = longestHead
		}
	}
}

// again reports whether a request that failed on the connection may be sent on another one: the engine had closed it before, and either
// nothing was sent or it does no harm to send that twice. (What a body says may do some: the next page of a scroll is asked for by GET too.)
func (c *direct) again(r *http.Request) bool {
	if !c.used || c.arrived || r.Context().Err() != nil {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return bodiless(r) || !c.wrote
	}
	return !c.wrote
}

// coming is the body of a reply on its connection.
type coming struct {
	io.ReadCloser
	ctx   context.Context // of the request
	conn  *direct
	stop  func() bool // the connection is no longer cut with the request
	keeps bool        // the engine keeps the connection open
	begun bool        // some of it was there with the head

	mu  sync.Mutex
	err error // of reading on, once it has ended

	own  sync.Mutex
	over bool // the connection is no longer this reply's
}

// Read implements io.Reader.
func (b *coming) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.end(io.EOF, b.keeps)
	case err != nil:
		if b.ctx.Err() != nil {
			err = context.Cause(b.ctx)
		}
		b.end(err, false)
	}
	return n, err
}

// Close implements io.Closer. A connection with more of the reply to come is closed.
func (b *coming) Close() error {
	if !b.mu.TryLock() { // someone waits for more: that ends first
		b.own.Lock()
		if !b.over {
			b.conn.cut()
		}
		b.own.Unlock()
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.err == nil {
		b.end(http.ErrBodyReadAfterClose, false)
	}
	return nil
}

// end gives the connection back, for another request if it is good for one.
func (b *coming) end(err error, good bool) {
	b.err = err
	nothing := b.conn.done()
	b.own.Lock()
	b.over = true
	b.own.Unlock()
	if !b.stop() || !good || !nothing {
		b.conn.cut()
		return
	}
	b.conn.of.idle.put(b.conn)
}

// begun reports whether some of a reply's body was there with its head, as far as that can be told.
func begun(body io.ReadCloser) bool {
	if a, ok := body.(*answer); ok {
		body = a.ReadCloser
	}
	b, ok := body.(*coming)
	return ok && b.begun
}

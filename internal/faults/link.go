package faults

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// link is a connection of a client's and the one to the server that belongs to it.
type link struct {
	relay  *Relay
	client net.Conn
	ended  chan struct{}
	once   sync.Once

	mu     sync.Mutex
	server net.Conn
}

// tap reads messages from a connection and keeps their bytes as they came.
type tap struct {
	*bufio.Reader
	raw bytes.Buffer
}

func newTap(conn net.Conn) *tap {
	t := &tap{}
	t.Reader = bufio.NewReader(io.TeeReader(conn, &t.raw))
	return t
}

// take returns what came since the last time.
func (t *tap) take() []byte {
	raw := bytes.Clone(t.raw.Bytes())
	t.raw.Reset()
	return raw
}

// lingering is for how long what still comes is read from a connection that ends by FIN: to close it with something unread would
// reset it.
const lingering = 500 * time.Millisecond

// close ends both connections.
func (l *link) close(reset bool) {
	l.once.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.ended)
		for _, conn := range []net.Conn{l.client, l.server} {
			tcp, ok := conn.(*net.TCPConn)
			if !ok {
				continue
			}
			if reset {
				_ = tcp.SetLinger(0)
				_ = tcp.Close()
				continue
			}
			_ = tcp.CloseWrite()
			_ = tcp.SetReadDeadline(time.Now().Add(lingering))
			go func() {
				_, _ = io.Copy(io.Discard, tcp)
				_ = tcp.Close()
			}()
		}
	})
}

// dial connects to the server.
func (l *link) dial() (*tap, error) {
	conn, err := net.DialTimeout("tcp", l.relay.target, 5*time.Second)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
		return nil, errors.Join(net.ErrClosed, conn.Close())
	default:
	}
	l.server = conn
	return newTap(conn), nil
}

// sleep waits, for ever if d is 0, and reports false if the link ended meanwhile.
func (l *link) sleep(d time.Duration) bool {
	if d <= 0 {
		d = math.MaxInt64
	}
	select {
	case <-l.ended:
		return false
	case <-time.After(d):
		return true
	}
}

// watch reports on the channel when something comes from the reader; the end of it ends the link.
func (l *link) watch(t *tap) <-chan struct{} {
	came := make(chan struct{})
	go func() {
		defer close(came)
		if _, err := t.Peek(1); err != nil {
			l.close(false)
		}
	}()
	return came
}

// serve relays one exchange after the other.
func (l *link) serve() {
	in := newTap(l.client)
	var back *tap
	var idle <-chan struct{} // closed when something has come from the server between exchanges
	for {
		request, err := http.ReadRequest(in.Reader)
		if err != nil {
			return
		}
		x, fault := l.relay.begin(Request{request.Method, request.RequestURI})
		body, err := io.ReadAll(io.LimitReader(request.Body, fault.reads(request)))
		raw := in.take()
		l.relay.note(func() { x.Body = body })
		if err == nil && fault.does(Answer) {
			if !l.give(x, fault.Reply) {
				return
			}
			continue
		}
		if back == nil {
			var failed error
			if back, failed = l.dial(); failed != nil {
				return
			}
		}
		if err != nil { // the client broke off
			_, _ = l.server.Write(raw)
			return
		}
		next := l.watch(in) // a client that goes away ends the link
		if l.send(l.server, raw, fault, x, RequestLine, len(request.TransferEncoding) > 0) != nil {
			return
		}
		l.relay.note(func() { x.Whole = true })
		if idle != nil {
			<-idle
		}
		if !l.reply(back, request, fault, x) {
			return
		}
		idle = l.watch(back)
		<-next
	}
}

// reply sends the server's reply back and reports whether another exchange may follow.
func (l *link) reply(back *tap, request *http.Request, fault *Fault, x *Exchange) bool {
	resp, err := http.ReadResponse(back.Reader, request)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(resp.Body)
	raw := back.take()
	if err == nil && fault.does(Alter) {
		head := raw[:bytes.Index(raw, []byte("\r\n\r\n"))+4]
		l.give(x, fault.Change(&Whole{Head: head, Body: body, Response: resp}))
		return false
	}
	if l.send(l.client, raw, fault, x, ReplyLine, len(resp.TransferEncoding) > 0) != nil {
		return false
	}
	return err == nil && !resp.Close
}

// give sends a reply that is not the server's.
func (l *link) give(x *Exchange, reply []byte) bool {
	l.relay.note(func() { x.Bit, x.Back = true, reply })
	_, err := l.client.Write(reply)
	return err == nil
}

func (f *Fault) does(h Harm) bool { return f != nil && f.Do == h }

// reads returns how much of a request's body is read: less than all where the connection ends within it, so that it does while the
// other side still sends.
func (f *Fault) reads(r *http.Request) int64 {
	switch {
	case !f.does(Cut) && !f.does(Reset) || f.At > RequestBodyMiddle:
		return math.MaxInt64
	case f.At < RequestBodyMiddle:
		return 1
	}
	return max(r.ContentLength/2, 64<<10)
}

// offset returns where in a message, whose places begin with first, the fault strikes, or -1.
func (f *Fault) offset(raw []byte, first Place, chunked bool) int {
	if f == nil || f.Do == Answer || f.Do == Alter {
		return -1
	}
	const lastChunk = "0\r\n\r\n"
	head, size := bytes.Index(raw, []byte("\r\n\r\n"))+4, len(raw)
	switch at := f.At; {
	case at == RequestWhole && first == ReplyLine:
		return 0
	case at == ReplyWhole && first == ReplyLine:
		return size
	case at == first:
		return 3
	case at == first+1:
		return head / 2
	case at == first+2 && size > head:
		return head
	case at == first+3 && size > head+1:
		return head + (size-head)/2
	case at == first+4 && size > head:
		return size - 1
	case at == first+5 && chunked && bytes.HasSuffix(raw, []byte(lastChunk)):
		return size - len(lastChunk)
	}
	return -1
}

// send sends a message with the fault's harm within it.
func (l *link) send(to io.Writer, raw []byte, fault *Fault, x *Exchange, first Place, chunked bool) error {
	n := fault.offset(raw, first, chunked)
	if n < 0 {
		_, err := to.Write(raw)
		return err
	}
	l.relay.note(func() { x.Bit = true })
	if _, err := to.Write(raw[:n]); err != nil {
		return err
	}
	pieces := slices.Values([][]byte{raw[n:]})
	switch fault.Do {
	case Cut, Reset:
		l.close(fault.Do == Reset)
	case Stall:
		l.sleep(fault.For)
	case Drip:
		pieces = slices.Chunk(raw[n:], fault.Size)
	}
	for piece := range pieces {
		if _, err := to.Write(piece); err != nil {
			return err
		}
		if fault.Do == Drip && !l.sleep(fault.For) {
			return net.ErrClosed
		}
	}
	select {
	case <-l.ended:
		return net.ErrClosed
	default:
		return nil
	}
}

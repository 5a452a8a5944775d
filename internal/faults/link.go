package faults

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// link is a connection of a client's and the one to the server that belongs to it.
type link struct {
	relay  *Relay
	client net.Conn
	from   *bufio.Reader // the client
	ended  chan struct{}
	once   sync.Once

	mu     sync.Mutex
	server net.Conn
	closed bool
	back   *bufio.Reader // the server

	idle <-chan struct{} // closed when something has come from the server between exchanges; nil before the first
}

func newLink(r *Relay, client net.Conn) *link {
	return &link{relay: r, client: client, from: bufio.NewReaderSize(client, 32<<10), ended: make(chan struct{})}
}

// lingering is for how long what still comes is read from a connection that ends by FIN: to close it with something unread would
// reset it.
const lingering = 500 * time.Millisecond

// close ends both connections.
func (l *link) close(reset bool) {
	l.once.Do(func() {
		close(l.ended)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.closed = true
		for _, conn := range []net.Conn{l.client, l.server} {
			if tcp, ok := conn.(*net.TCPConn); ok {
				end(tcp, reset)
			}
		}
	})
}

func end(tcp *net.TCPConn, reset bool) {
	if reset {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
		return
	}
	_ = tcp.CloseWrite()
	_ = tcp.SetReadDeadline(time.Now().Add(lingering))
	go func() {
		_, _ = io.Copy(io.Discard, tcp)
		_ = tcp.Close()
	}()
}

// dial connects to the server, once for a link.
func (l *link) dial() error {
	l.relay.mu.Lock()
	target := l.relay.target
	l.relay.mu.Unlock()
	conn, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return net.ErrClosed
	}
	l.server, l.back = conn, bufio.NewReaderSize(conn, 32<<10)
	return nil
}

// sleep waits, for ever if d is 0, and reports false if the link ended meanwhile.
func (l *link) sleep(d time.Duration) bool {
	if d <= 0 {
		<-l.ended
		return false
	}
	select {
	case <-l.ended:
		return false
	case <-time.After(d):
		return true
	}
}

// watch reports on the channel when something comes from the reader; the end of it ends the link.
func (l *link) watch(r *bufio.Reader) <-chan struct{} {
	came := make(chan struct{})
	go func() {
		defer close(came)
		if _, err := r.Peek(1); err != nil {
			l.close(false)
		}
	}()
	return came
}

// serve relays one exchange after the other.
func (l *link) serve() {
	for {
		head, err := readHead(l.from)
		if err != nil {
			return
		}
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err != nil {
			return
		}
		frame := requestFraming(request)
		x, fault := l.relay.begin(Request{
			Method: request.Method, Target: request.RequestURI, Header: request.Header, Length: frame.length,
		})
		e := &exchange{
			link: l, out: l.client, x: x, fault: fault, head: head, frame: frame, request: request, whole: make(chan struct{}),
		}
		if !e.run() {
			return
		}
	}
}

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// door is one address where clients come in. Its sockets stay open while what answers behind them changes: a connection is
// accepted here and handed to the server of the day, so that none is refused in between.
type door struct {
	// key finds the door again at a reload: the address to listen on, and whose it is where the address alone does not tell.
	key     string
	admin   bool
	sockets []net.Listener
	log     *slog.Logger
	failed  chan<- error

	answers atomic.Pointer[http.Handler]
	server  atomic.Pointer[server] // the server of the day; nil before the first
}

// server serves what a door hands it.
type server struct {
	http.Server
	door    *door
	manner  manner
	lease   *lease
	busy    atomic.Int64 // requests under way
	closing atomic.Bool  // replies tell clients to come no more on this connection
}

// manner is what a server is made with.
type manner struct {
	header, idle time.Duration
	tls          *tls.Config // nil for plain connections
}

// ServeHTTP implements http.Handler: it passes on to what answers at the moment.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer s.busy.Add(-1)
	if s.closing.Load() {
		w.Header().Set("Connection", "close")
	}
	(*s.door.answers.Load()).ServeHTTP(w, r)
}

// maxHeader is how long the first line and the header of a request may be together. Engines take 4 and 16 kB unless they are told otherwise. They
// are not counted in max_held, and reading them takes some 80 times as much.
const maxHeader = 128 << 10

// put sets what answers, and has it served in the given manner. Where that differs from before, a new server takes the
// connections that come from now on; the one before is given back, still serving its own.
func (d *door) put(h http.Handler, m manner) (before *server) {
	d.answers.Store(&h)
	before = d.server.Load()
	if before != nil && before.manner == m {
		return nil
	}
	next := &server{door: d, manner: m, lease: &lease{addr: d.addr(), conns: make(chan net.Conn), ended: make(chan struct{})}}
	next.Server = http.Server{
		Handler: guarded(next, d.log), Protocols: onlyHTTP1(), ReadHeaderTimeout: m.header, IdleTimeout: m.idle,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * is the engine's to answer
		ErrorLog:                     serverErrors(d.log),
	}
	go next.serve()
	d.server.Store(next)
	if before == nil {
		for _, socket := range d.sockets {
			go d.accept(socket)
		}
		return nil
	}
	before.closing.Store(true)
	before.lease.end()
	return before
}

// serve serves until the lease ends.
func (s *server) serve() {
	var l net.Listener = s.lease
	if s.manner.tls != nil {
		l = tls.NewListener(l, s.manner.tls)
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		s.door.fail(err)
	}
}

// quit closes idle connections, lets the requests under way end until ctx does, and then cuts them off; how many is returned.
func (s *server) quit(ctx context.Context) (cut int64) {
	if s.Shutdown(ctx) != nil {
		cut = s.busy.Load()
		_ = s.Close() // nothing is left to be done about it
	}
	return cut
}

func (d *door) addr() net.Addr { return d.sockets[0].Addr() }

func (d *door) fail(err error) {
	select {
	case d.failed <- fmt.Errorf("serve %s: %w", d.addr(), err):
	default: // one reason to end is enough
	}
}

// accept hands over what comes until the socket is closed.
func (d *door) accept(socket net.Listener) {
	var pause time.Duration
	for {
		conn, err := socket.Accept()
		switch {
		case err == nil:
			pause = 0
			d.hand(conn)
		case errors.Is(err, net.ErrClosed):
			return
		case passing(err):
			// Clients wait meanwhile: nothing is lost but time.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			d.log.Warn("connection not accepted", "addr", d.addr().String(), "error", err.Error(), "again_in", pause.String())
			time.Sleep(pause)
		default:
			d.fail(err)
			return
		}
	}
}

// passing reports whether an error of accepting a connection says nothing about the next one.
func passing(err error) bool {
	for _, code := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR,
		// What Linux tells of the connection at hand: see accept(2).
		syscall.EPERM, syscall.EPROTO, syscall.ENOPROTOOPT, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
		syscall.EOPNOTSUPP,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// hand gives a connection to the server of the day.
func (d *door) hand(conn net.Conn) {
	for {
		s := d.server.Load()
		select {
		case s.lease.conns <- conn:
			return
		case <-s.lease.ended:
			if d.server.Load() == s { // the last one
				_ = conn.Close()
				return
			}
		}
	}
}

// shut closes the sockets: who connects from now on is refused. Requests under way, and connections that are open, go on.
func (d *door) shut() {
	for _, socket := range d.sockets {
		_ = socket.Close() // what is wrong with it does not matter any more
	}
	if s := d.server.Load(); s != nil {
		s.closing.Store(true)
		s.lease.end()
	}
}

// lease is the listener of one server: what the door accepts while the server is that of the day.
type lease struct {
	addr  net.Addr
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func (l *lease) end() { l.once.Do(func() { close(l.ended) }) }

// Accept implements net.Listener.
func (l *lease) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *lease) Close() error {
	l.end()
	return nil
}

// Addr implements net.Listener.
func (l *lease) Addr() net.Addr { return l.addr }

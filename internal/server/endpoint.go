package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// endpoint is one address where clients connect. Its sockets stay open while the servers that accept connections on them change, so that a reload
// refuses nobody.
type endpoint struct {
	// key identifies the endpoint at a reload: the address, and the name of its engine where the address alone does not tell.
	key     string
	admin   bool
	sockets []net.Listener
	log     *slog.Logger
	failed  chan<- error

	handler atomic.Pointer[http.Handler]
	server  atomic.Pointer[server] // the one that accepts connections; nil before the first
}

// server accepts the connections of an endpoint until the next one does, and serves its own to their end.
type server struct {
	http.Server
	endpoint  *endpoint
	options   connOptions
	listeners []net.Listener
	busy      atomic.Int64 // requests under way
	closing   atomic.Bool  // replies tell clients to reconnect
}

// connOptions are what cannot change while a server runs.
type connOptions struct {
	header, idle time.Duration
	tls          *tls.Config // nil for plain connections
}

// onlyHTTP1 is what is spoken to clients and to engines. The engines listen with HTTP/1.1, and what one side may send the other
// may not in another version: a path or a header as sent, a reply cut short, an answer before the body's end would all have to be
// translated. So there is one grammar on both sides, and what passes passes as it is.
func onlyHTTP1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// maxHeader bounds the first line and the header of a request together. Engines allow 4 and 16 kB by default. These bytes do not count toward
// max_held, and reading them takes some 80 times as much memory.
const maxHeader = 128 << 10

// newServer returns a server with these options, or nil where the one at work has them. It accepts nothing before put.
func (d *endpoint) newServer(o connOptions) (*server, error) {
	if now := d.server.Load(); now != nil && now.options == o {
		return nil, nil
	}
	s := &server{endpoint: d, options: o}
	s.Server = http.Server{
		Handler: guarded(s, d.log), Protocols: onlyHTTP1(), ReadHeaderTimeout: o.header, IdleTimeout: o.idle,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * is the engine's to answer
		ErrorLog:                     serverErrors(d.log),
	}
	for _, socket := range d.sockets {
		l, err := duplicate(socket)
		if err != nil {
			s.stopAccepting()
			return nil, fmt.Errorf("listen: duplicate the socket of %s: %w", d.addr(), err)
		}
		if o.tls != nil {
			l = tls.NewListener(l, o.tls)
		}
		s.listeners = append(s.listeners, l)
	}
	return s, nil
}

// duplicate returns another listener on the same socket: closing one leaves the other open, and connections that wait stay.
func duplicate(socket net.Listener) (net.Listener, error) {
	original, ok := socket.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no file", socket)
	}
	file, err := original.File()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the listener has a descriptor of its own
	return net.FileListener(file)
}

// put sets the handler, and has next, if it is not nil, accept the connections from now on. It returns the server that did so before, which goes on
// serving its own.
func (d *endpoint) put(h http.Handler, next *server) (before *server) {
	d.handler.Store(&h)
	if next == nil {
		return nil
	}
	before = d.server.Swap(next)
	for _, l := range next.listeners {
		go next.serve(l)
	}
	if before != nil {
		before.stopAccepting()
	}
	return before
}

// ServeHTTP implements http.Handler: it calls the endpoint's present handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer s.busy.Add(-1)
	if s.closing.Load() {
		w.Header().Set("Connection", "close")
	}
	(*s.endpoint.handler.Load()).ServeHTTP(w, r)
}

func (s *server) serve(l net.Listener) {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		select {
		case s.endpoint.failed <- fmt.Errorf("serve %s: %w", s.endpoint.addr(), err):
		default: // one reason to end is enough
		}
	}
}

// stopAccepting closes the server's listeners. Its open connections go on.
func (s *server) stopAccepting() {
	s.closing.Store(true)
	for _, l := range s.listeners {
		_ = l.Close() // what is wrong with it does not matter any more
	}
}

// quit closes idle connections, lets the requests under way end until ctx does, and then cuts them off. It returns how many it cut off.
func (s *server) quit(ctx context.Context) (cut int64) {
	if s.Shutdown(ctx) != nil {
		cut = s.busy.Load()
		_ = s.Close() // nothing is left to be done about it
	}
	return cut
}

func (d *endpoint) addr() net.Addr { return d.sockets[0].Addr() }

// shut closes the sockets: new connections are refused. Those that are open go on.
func (d *endpoint) shut() {
	for _, socket := range d.sockets {
		_ = socket.Close() // what is wrong with it does not matter any more
	}
	if s := d.server.Load(); s != nil {
		s.stopAccepting()
	}
}

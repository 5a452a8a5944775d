package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/neardup/sidecar/proxy"
)

// endpoint serves one address that clients connect to. Its options cannot change while it serves. If a reload changes them, a new endpoint takes
// over the same sockets, so that no connection is refused, and this one serves its open connections to their end.
type endpoint struct {
	http.Server
	// key identifies the address at a reload, with the name of its engine if the address alone is ambiguous.
	key     string
	admin   bool
	options connOptions
	sockets []net.Listener
	log     *slog.Logger
	failed  chan<- error

	handler *atomic.Pointer[http.Handler] // shared by all endpoints at the address
	busy    atomic.Int64                  // requests in progress
	closing atomic.Bool                   // replies tell clients to reconnect
}

// connOptions are what cannot change while an endpoint serves.
type connOptions struct {
	header, idle time.Duration
	tls          *tls.Config // nil for plain connections
}

// maxHeader is the size limit of a request line and header together. Engines allow 4 and 16 kB by default. These bytes do not count toward
// max_held, and reading them takes about 80 times as much memory.
const maxHeader = 128 << 10

// prepare sets up the server. It accepts no connections before start.
func (d *endpoint) prepare() {
	d.Server = http.Server{
		Handler: logPanics(http.HandlerFunc(d.serveHTTP), d.log), Protocols: proxy.OnlyHTTP1(), ReadHeaderTimeout: d.options.header,
		IdleTimeout: d.options.idle, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, // the engine answers OPTIONS *
		ErrorLog:                     serverErrors(d.log),
	}
}

// duplicate returns new listeners on the same sockets. Closing one leaves the other open, and waiting connections stay.
func duplicate(sockets []net.Listener) (list []net.Listener, err error) {
	for _, socket := range sockets {
		original, ok := socket.(interface{ File() (*os.File, error) })
		if !ok {
			return list, fmt.Errorf("duplicate the socket of %s: %T has no file", socket.Addr(), socket)
		}
		file, err := original.File()
		if err != nil {
			return list, fmt.Errorf("duplicate the socket of %s: %w", socket.Addr(), err)
		}
		other, err := net.FileListener(file)
		_ = file.Close() // the listener has its own descriptor
		if err != nil {
			return list, fmt.Errorf("duplicate the socket of %s: %w", socket.Addr(), err)
		}
		list = append(list, other)
	}
	return list, nil
}

// start accepts connections.
func (d *endpoint) start() {
	for _, l := range d.sockets {
		if d.options.tls != nil {
			l = tls.NewListener(l, d.options.tls)
		}
		go func() {
			if err := d.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				select {
				case d.failed <- fmt.Errorf("serve %s: %w", d.addr(), err):
				default: // one error is enough
				}
			}
		}()
	}
}

// serveHTTP calls the current handler of the address.
func (d *endpoint) serveHTTP(w http.ResponseWriter, r *http.Request) {
	d.busy.Add(1)
	defer d.busy.Add(-1)
	if d.closing.Load() {
		w.Header().Set("Connection", "close")
	}
	(*d.handler.Load()).ServeHTTP(w, r)
}

// shut closes the sockets. New connections are refused unless another endpoint has the sockets too. Open connections stay.
func (d *endpoint) shut() {
	d.closing.Store(true)
	for _, socket := range d.sockets {
		_ = socket.Close() // an error does not matter any more
	}
}

func (d *endpoint) addr() net.Addr { return d.sockets[0].Addr() }

// has reports whether the endpoint listens on the socket.
func (d *endpoint) has(socket net.Listener) bool {
	return slices.ContainsFunc(d.sockets, func(own net.Listener) bool { return own.Addr().String() == socket.Addr().String() })
}

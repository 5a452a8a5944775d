package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

const (
	// readHeaderTimeout and idleTimeout are the only time limits on a connection: a write may stream its body for hours, and a
	// search takes as long as the engine lets it.
	readHeaderTimeout = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	// drain is how long requests under way may take to end after a signal.
	drain = 30 * time.Second
)

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Stand in front of the engines and serve until a signal comes",
		Long: `Serve listens at every engine's address and passes requests on to the engine. On SIGINT or SIGTERM it takes no new
connection, lets the requests under way end within 30 seconds, and ends.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := configOf(cmd)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), c, c.Log.logger(cmd.ErrOrStderr()))
		},
	}
}

// logger returns the logger of the section.
func (l LogConfig) logger(w io.Writer) *slog.Logger {
	level, _ := l.level() // validated
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// serve serves until ctx ends or a listener fails.
func serve(ctx context.Context, c *Config, log *slog.Logger) error {
	s := &servers{log: log, failed: make(chan error, 1)}
	if err := s.bind(c); err != nil {
		s.close()
		return err
	}
	if err := s.start(c); err != nil {
		s.close()
		return err
	}
	var failure error
	select {
	case <-ctx.Done():
		log.Info("draining", "at_most", drain.String())
	case failure = <-s.failed:
	}
	s.shutdown()
	return failure
}

// servers are the HTTP servers of one process.
type servers struct {
	log    *slog.Logger
	failed chan error

	listeners []net.Listener // one for each engine, in the order of the configuration
	admin     net.Listener   // nil without one
	status    status

	running []*http.Server // the engines' servers
	last    []*http.Server // what is needed until the last of those has ended
	closers []io.Closer    // embedded engines
}

// bind opens every listener, or reports all that can't be opened.
func (s *servers) bind(c *Config) error {
	var errs []error
	listen := func(key, address string) net.Listener {
		l, err := net.Listen("tcp", address)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: choose another address, or stop what holds this one", key, err))
		}
		return l
	}
	for i, e := range c.Engines {
		if l := listen(fmt.Sprintf("engines[%d].listen", i), e.Listen); l != nil {
			s.listeners = append(s.listeners, l)
		}
	}
	if c.Admin != "" {
		s.admin = listen("admin", c.Admin)
	}
	return errors.Join(errs...)
}

// start puts the engines together and begins to serve.
func (s *servers) start(c *Config) error {
	var handlers []*front
	for i := range c.Engines {
		e := &c.Engines[i]
		h, err := s.assemble(c, e)
		if err != nil {
			return fmt.Errorf("engines[%d]: %w", i, err)
		}
		handlers = append(handlers, h)
		s.status.probes = append(s.status.probes, probe{name: e.Name, urls: h.urls, transport: h.transport})
	}
	for i, h := range handlers {
		e, l := &c.Engines[i], s.listeners[i]
		s.running = append(s.running, s.serve(l, h.handler))
		s.log.Info("listening", "engine", e.Name, "addr", l.Addr().String(), "kind", e.Kind, "urls", strings.Join(e.URLs, ","), "rules", len(e.Indices))
	}
	if s.admin != nil {
		s.last = append(s.last, s.serve(s.admin, s.status.handler()))
		s.log.Info("admin listening", "addr", s.admin.Addr().String())
	}
	return nil
}

// serve begins to serve on a listener.
func (s *servers) serve(l net.Listener, h http.Handler) *http.Server {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		DisableGeneralOptionsHandler: true, // OPTIONS * is the engine's to answer
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			select {
			case s.failed <- fmt.Errorf("serve %s: %w", l.Addr(), err):
			default: // one reason to end is enough
			}
		}
	}()
	return server
}

// shutdown lets the requests under way end, and cuts off those that take longer than the drain.
func (s *servers) shutdown() {
	s.status.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	var wg sync.WaitGroup
	for _, server := range s.running {
		wg.Go(func() {
			if err := server.Shutdown(ctx); err != nil {
				s.log.Warn("requests cut off", "error", err.Error())
				_ = server.Close() // nothing is left to be done about it
			}
		})
	}
	wg.Wait()
	s.close()
}

// close frees everything at once.
func (s *servers) close() {
	for _, server := range append(s.running, s.last...) {
		_ = server.Close()
	}
	for _, l := range append(s.listeners, s.admin) {
		if l != nil {
			_ = l.Close()
		}
	}
	for _, c := range s.closers {
		if err := c.Close(); err != nil {
			s.log.Warn("embedded engine", "error", err.Error())
		}
	}
}

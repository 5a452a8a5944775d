package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// probeTimeout bounds how long an engine may take to show that it is there.
const probeTimeout = 2 * time.Second

// status answers on the admin listener.
type status struct {
	probes   []probe
	draining atomic.Bool
}

// handler returns the admin listener's pages: /livez says that the process runs, /readyz that every engine can be reached and
// nothing is being shut down, /version what is running.
func (s *status) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusOK, versionLine()) })
	mux.HandleFunc("GET /readyz", s.ready)
	return mux
}

func (s *status) ready(w http.ResponseWriter, r *http.Request) {
	code, lines := http.StatusOK, []string{}
	if s.draining.Load() {
		code, lines = http.StatusServiceUnavailable, append(lines, "draining")
	}
	for _, p := range s.probes {
		line := "engine " + p.name + ": ok"
		if err := p.reach(r.Context()); err != nil {
			code, line = http.StatusServiceUnavailable, fmt.Sprintf("engine %s: can't be reached: %v", p.name, err)
		}
		lines = append(lines, line)
	}
	page(w, code, strings.Join(lines, "\n"))
}

func page(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text) // a reader that has gone needs no answer
}

// probe finds out whether an engine can be reached.
type probe struct {
	name      string
	urls      []*url.URL
	transport http.RoundTripper
}

// reach returns nil if any node answers, whatever it says: without credentials most of them refuse.
func (p probe) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answers := make(chan error, len(p.urls))
	for _, u := range p.urls {
		go func() { answers <- p.ask(ctx, u) }()
	}
	var errs []error
	for range p.urls {
		err := <-answers
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (p probe) ask(ctx context.Context, u *url.URL) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	response, err := p.transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

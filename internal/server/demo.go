package server

import (
	"errors"
	"log/slog"
	"net"
	"net/http"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/playground"
)

// Demo is an embedded engine, a sidecar in front of it, and the playground.
type Demo struct {
	process
	// Engine, Sidecar and Page are their base URLs.
	Engine, Sidecar, Page string
}

// ServeDemo serves an embedded engine under one rule. An address that is taken gives way to a free port.
func ServeDemo(rule config.Index, listen, pageAt string, log *slog.Logger) (*Demo, error) {
	engine, err := startEmbedded()
	if err != nil {
		return nil, err
	}
	c, e := config.Default(), config.DefaultEngine()
	e.Name, e.Kind, e.Indices = "demo", kind.Embedded, []config.Index{rule}
	c.Engines = []config.Engine{e}
	d := &Demo{process: process{state: newState(&c), log: log, meters: newMeters(), tracing: newTracing(log), failed: make(chan error, 1)}}
	d.embedded[e.Name] = engine
	d.status.meters, d.status.plays = d.meters, playground.New()
	if err := d.serve(&c, engine, listen, pageAt); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *Demo) serve(c *config.Config, engine *embeddedEngine, listen, pageAt string) error {
	e := &c.Engines[0]
	u, err := d.newBackend(e, engine)
	if err != nil {
		return err
	}
	d.backends[e.Name], d.Engine = u, u.urls[0].String()
	if d.Sidecar, err = d.listenNear(listen, u); err != nil {
		return err
	}
	d.status.set([]probe{{name: e.Name, urls: u.urls, transport: u.transport}})
	d.play(c, d.backends)
	d.Page, err = d.listenNear(pageAt, d.status.handler())
	return err
}

// Close ends all of it.
func (d *Demo) Close() { d.close() }

// Failed returns where the error of a listener comes.
func (d *Demo) Failed() <-chan error { return d.failed }

// listenNear serves at the address, or at any free port of its host where that is taken, and returns the base URL.
func (s *process) listenNear(address string, h http.Handler) (string, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		host, _, splitErr := net.SplitHostPort(address)
		if splitErr != nil {
			return "", errors.Join(err, splitErr)
		}
		if l, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			return "", err
		}
	}
	at := l.Addr().String()
	d := &endpoint{key: at, sockets: []net.Listener{l}, log: s.log, failed: s.failed}
	next, err := d.newServer(connOptions{header: config.ReadHeaderTimeout, idle: config.IdleTimeout})
	if err != nil {
		d.shut()
		return "", err
	}
	d.put(h, next)
	s.endpoints[at] = d
	return "http://" + at, nil
}

package server

import (
	"io"
	"net"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
)

// Demo is an embedded engine, a sidecar in front of it, and the playground.
type Demo struct {
	process
	// Engine, Sidecar and Page are their base URLs.
	Engine, Sidecar, Page string
}

// ServeDemo serves an embedded engine under one rule, until Close. An address that is taken gives way to a free port. Warnings go to log.
func ServeDemo(rule config.Index, listen, page string, log io.Writer) (*Demo, error) {
	c, e := config.Default(), config.DefaultEngine()
	e.Name, e.Kind, e.Listen, e.Indices = "demo", kind.Embedded, freeNear(listen), []config.Index{rule}
	c.Log.Level, c.Admin, c.Engines = "warn", freeNear(page), []config.Engine{e}
	d := &Demo{}
	d.begin(&c, log)
	if err := d.start(&c); err != nil {
		d.close()
		return nil, err
	}
	d.Engine = d.backends[e.Name].urls[0].String()
	for _, at := range d.endpoints {
		if url := "http://" + at.addr().String(); at.admin {
			d.Page = url
		} else {
			d.Sidecar = url
		}
	}
	return d, nil
}

// freeNear returns the address, or any free port of its host if it is taken. An invalid address is left to start.
func freeNear(address string) string {
	host, _, err := net.SplitHostPort(address)
	l, taken := net.Listen("tcp", address)
	if taken == nil {
		_ = l.Close() // nobody came
	} else if err == nil {
		return net.JoinHostPort(host, "0")
	}
	return address
}

// Close ends all of it.
func (d *Demo) Close() { d.close() }

// Failed returns where the error of a listener comes.
func (d *Demo) Failed() <-chan error { return d.failed }

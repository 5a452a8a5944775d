package server

import (
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
)

// Demo is an embedded engine, a sidecar in front of it, and the playground.
type Demo struct {
	process
	// Engine, Sidecar and Page are their base URLs.
	Engine, Sidecar, Page string
}

// demoDeadline is the deadline of searches: the embedded engine is slow with many documents.
const demoDeadline = 5 * time.Second

// ServeDemo serves an embedded engine with one rule, until Close. If an address is taken it uses the next free port. Warnings go to log.
func ServeDemo(rule config.Index, listen, page string, log io.Writer) (*Demo, error) {
	c, e := config.Default(), config.DefaultEngine()
	e.Name, e.Kind, e.Listen, e.Indices = "demo", kind.Embedded, FreeNear(listen), []config.Index{rule}
	e.Limits.Deadline = config.Span(demoDeadline)
	c.Log.Level, c.Admin, c.Engines = "warn", FreeNear(page, e.Listen), []config.Engine{e}
	d := &Demo{}
	d.setUp(&c, log)
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

// FreeNear returns the address, or one with the next free port if it is taken, but none of the others. It returns an invalid address unchanged.
func FreeNear(address string, others ...string) string {
	const tries = 50
	host, port, _ := net.SplitHostPort(address)
	first, err := strconv.Atoi(port)
	for number := first; err == nil && number < first+tries; number++ {
		at := net.JoinHostPort(host, strconv.Itoa(number))
		if number != 0 && slices.Contains(others, at) { // with port 0 each gets one of its own
			continue
		}
		l, err := net.Listen("tcp", at)
		if err == nil {
			_ = l.Close() // nobody has connected
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return at
		}
	}
	return address
}

// Close stops the demo.
func (d *Demo) Close() { d.close() }

// Failed returns a channel that receives the error of a listener that fails.
func (d *Demo) Failed() <-chan error { return d.failed }

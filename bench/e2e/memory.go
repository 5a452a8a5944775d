package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/measured"
	"golang.org/x/sync/errgroup"
)

// memory measures what the sidecar and other proxies keep of the machine's memory: when nothing has been asked, with open
// connections, and after as many searches on them.
func (b *bench) memory() error {
	e, connections := b.engines[0], 1000
	if b.short {
		connections = 100
	}
	t := measured.Table{
		Name: "memory", Title: "Memory",
		Columns: []measured.Column{{Name: "idle", Unit: "MB"}, {Name: "file", Unit: "MB"}, {Name: "connected", Unit: "MB"}, {Name: "searched", Unit: "MB"}, {Name: "peak", Unit: "MB"}},
		Notes: []string{
			"Resident memory (VmRSS, in millions of bytes, what is read of the program's own file included; of several processes the sum) of " +
				"the sidecar as it is released, in front of " + e.name + ".",
			fmt.Sprintf("*idle*: two seconds after the start; *file*: of it, pages of files; *connected*: with %d open connections, two seconds after each "+
				"has asked for a document, 20 at a time; *searched*: two seconds after a search of ten hits on each of them; *peak*: the most until then. The sidecar gives no memory back "+
				"by itself: Go's runtime decides, by GOMEMLIMIT and GOGC.", connections),
		},
	}
	row := measured.Row{What: fmt.Sprintf("%d connections", connections), Engine: e.name}
	f, err := readFormula()
	if err == nil {
		err = b.fillStocks()
	}
	if err != nil {
		return err
	}
	index, s := e.stock.with, b.stocked()
	words := b.texts.queries(s, 50)
	for _, way := range []struct {
		name  string
		start func() (*process, error)
	}{
		{ours, func() (*process, error) { return b.sidecar(e, setup{}) }},
		{goes, func() (*process, error) { return b.bare(e.base, false) }},
		{nginx, func() (*process, error) { return b.nginx(e.base) }},
		{hap, func() (*process, error) { return b.haproxy(e.base) }},
	} {
		p, err := way.start()
		if err != nil && (way.name == nginx || way.name == hap) {
			row.Contenders = append(row.Contenders, measured.Contender{Name: way.name, Absent: err.Error()})
			continue
		}
		if err != nil {
			return err
		}
		figures, err := b.occupy(p, connections, e.read(index, b.texts.document(s, 1).ID), func(i int) request {
			return e.request(index, words[i%len(words)], search{size: 10})
		})
		if err = errors.Join(err, p.stop()); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		row.Contenders = append(row.Contenders, measured.Contender{Name: way.name, Figures: figures})
	}
	mine := row.Contenders[0].Figures
	row.Verdicts = []measured.Verdict{
		judged(within(measured.Verdict{Of: "idle", Unit: "MB", Value: mine["idle"]}, 20),
			fmt.Sprintf("%.1f MB of it are pages of the program's own file", mine["file"])),
		judged(within(measured.Verdict{Of: "peak", Unit: "MB", Value: mine["peak"]}, 80),
			fmt.Sprintf("%s takes %.0f MB", goes, row.Contenders[1].Figures["peak"])),
		judged(within(measured.Verdict{Of: "peak", Against: "the formula", Unit: "×", Value: mine["peak"] / (f.idle + f.connection*float64(connections))}, 1.2),
			"the formula promises too much"),
		{Of: "peak", Against: goes, Unit: "×", Value: mine["peak"] / row.Contenders[1].Figures["peak"]},
	}
	t.Rows = append(t.Rows, row)
	b.report.Tables = append(b.report.Tables, t)
	return nil
}

// occupy returns what memory a process takes before, with and after requests on a number of connections, in MB.
func (b *bench) occupy(p *process, connections int, first request, then func(i int) request) (figures map[string]float64, err error) {
	figures = map[string]float64{}
	note := func(name string) error {
		wait := 2 * time.Second
		if b.short {
			wait = 300 * time.Millisecond
		}
		select {
		case <-time.After(wait):
		case <-b.ctx.Done():
		}
		bytes, err := p.rss()
		figures[name] = float64(bytes) / 1e6
		return err
	}
	if err := note("idle"); err != nil {
		return nil, err
	}
	file, err := p.memory("RssFile:")
	if err != nil {
		return nil, err
	}
	figures["file"] = float64(file) / 1e6
	open := make([]*connection, connections)
	defer func() {
		for _, c := range open {
			if c != nil {
				c.Close()
			}
		}
	}()
	err = inTwenties(connections, func(i int) (err error) {
		if open[i], err = dial(p.base); err != nil {
			return err
		}
		return open[i].ask(first)
	})
	if err == nil {
		err = note("connected")
	}
	if err == nil {
		err = inTwenties(connections, func(i int) error { return open[i].ask(then(i)) })
	}
	if err == nil {
		err = note("searched")
	}
	if err != nil {
		return nil, err
	}
	peak, err := p.memory("VmHWM:")
	figures["peak"] = float64(peak) / 1e6
	return figures, err
}

// inTwenties calls a function many times, 20 at a time.
func inTwenties(times int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(20)
	for i := range times {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// connection is one that is kept.
type connection struct {
	net.Conn
	from *bufio.Reader
}

func dial(base string) (*connection, error) {
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		return nil, err
	}
	return &connection{c, bufio.NewReader(c)}, nil
}

// ask sends a request, which must succeed, and reads the reply.
func (c *connection) ask(q request) error {
	r, err := http.NewRequest(q.method, "http://"+c.RemoteAddr().String()+q.path, strings.NewReader(string(q.body)))
	if err != nil {
		return err
	}
	r.Header = q.header
	if err := r.Write(c); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.from, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", q.path, resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

package main

import (
	"fmt"

	"github.com/neardup/sidecar/internal/measured"
)

// passed measures a request that passes unchanged, through the sidecar and through other proxies, on each engine.
func (b *bench) passed() error {
	t := measured.Table{
		Name: "passed", Title: "Requests that pass", Columns: timeColumns,
		Notes: []string{
			"A request of an index without a rule, which the sidecar hands on as it came.",
			"ReverseProxy is a Go program of httputil.ReverseProxy and nothing else, and *tuned* the same with a BufferPool and the garbage collector " +
				"at 400 %, where the sidecar has it; nginx and HAProxy have as many workers as there are cores, " +
				"keep connections to the engine open and write no log.",
		},
	}
	if err := b.fillStocks(); err != nil {
		return err
	}
	for _, e := range b.engines {
		row, err := b.passedDocuments(e)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, row)
	}
	b.report.Tables = append(b.report.Tables, t)
	return nil
}

// passedDocuments compares the ways to a document of 2 kB.
func (b *bench) passedDocuments(e *engine) (measured.Row, error) {
	row := measured.Row{What: "a document of 2 kB", Engine: e.name}
	var requests []request
	for i := range 100 {
		requests = append(requests, e.read(e.stock.bare, b.texts.document(b.stocked(), i*7).ID))
	}
	list := []*contender{{name: direct, base: e.base, watch: []*process{e.process}}}
	for _, way := range []struct {
		name  string
		start func() (*process, error)
	}{
		{ours, func() (*process, error) { return b.sidecar(e, setup{}) }},
		{goes, func() (*process, error) { return b.bare(e.base, false) }},
		{tuned, func() (*process, error) { return b.bare(e.base, true) }},
		{nginx, func() (*process, error) { return b.nginx(e.base) }},
		{hap, func() (*process, error) { return b.haproxy(e.base) }},
	} {
		c := &contender{name: way.name}
		list = append(list, c)
		p, err := way.start()
		if err != nil {
			if way.name == nginx || way.name == hap {
				c.absent = err.Error()
				continue
			}
			return row, err
		}
		defer p.stop()
		c.base, c.watch = p.base, []*process{p, e.process}
	}
	for _, c := range list {
		c.requests, c.check = requests, func(r reply) error {
			if len(r.body) < 1500 {
				return fmt.Errorf("no document: %.300s", r.body)
			}
			return nil
		}
	}
	found, err := b.compare(list, b.pace(), goes)
	if err != nil {
		return row, err
	}
	row.Contenders = found.rows(list)
	limit := fmt.Sprintf("processor time a request: ours %.3f ms, %s %.3f ms", found.cpu(ours), goes, found.cpu(goes))
	frugal := found.ratio("requests per core-second", ours, goes, func(s sample) float64 { return 1 / s.proxy })
	row.Verdicts = []measured.Verdict{
		judged(within(found.ratio("p50", ours, goes, p50), 1.1), limit),
		judged(within(found.tailRatio(ours, goes), 1.1), limit),
		judged(reaching(frugal, 1), limit),
		found.ratio("p50", ours, tuned, p50),
		found.tailRatio(ours, tuned),
		found.ratio("requests per core-second", ours, tuned, func(s sample) float64 { return 1 / s.proxy }),
		found.ratio("requests per core-second", ours, nginx, func(s sample) float64 { return 1 / s.proxy }),
		found.ratio("requests per core-second", ours, hap, func(s sample) float64 { return 1 / s.proxy }),
		found.ratio("p50", ours, nginx, p50),
	}
	return row, nil
}

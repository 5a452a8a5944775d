package main

import (
	"fmt"
	"slices"

	"github.com/neardup/sidecar/internal/measured"
	"github.com/neardup/sidecar/sketch"
)

// million measures page 1 of a million documents. They are written to the engine with their sketches already in them, which is the quickest way.
func (b *bench) million() error {
	s := shelf{count: b.few(1_000_000, 1000), bytes: 1000, duplicates: .3}
	t := measured.Table{
		Name: million, Title: "A million documents", Columns: pageColumns,
		Notes: []string{fmt.Sprintf("%d documents of 1 kB, 30 %% of them near-duplicates of another one, in one shard with as many segments as the engine left; searches of two words each, "+
			"ten hits a page, asked for by one client that waits for its answer. The engine alone is asked of the same index, sketches in the sources and all.", s.count)},
	}
	for _, e := range b.engines {
		row, err := b.millionAt(e, s)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		b.add(t, row)
	}
	return nil
}

func (b *bench) millionAt(e *engine, s shelf) (measured.Row, error) {
	row := measured.Row{What: "page 1 of a million documents", Engine: e.name}
	p, err := b.sidecar(e, setup{limits: unhurried})
	if err != nil {
		return row, err
	}
	defer p.stop()
	g, index := &growing{bench: b, engine: e}, indexName(million)
	defer e.drop(index)
	if err := e.create(b.ctx, p.base, index); err != nil {
		return row, err
	}
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		return row, err
	}
	part := s.count / 10
	for from := 0; from < s.count; from += part {
		if err := g.store(e.base, index, s, from, from+part, sketcher); err != nil {
			return row, err
		}
		b.log("%s: %d documents", e.name, from+part)
	}
	if !e.typesense() {
		for _, step := range []string{"/_refresh", "/_flush"} {
			if err := e.do(b.ctx, e.base, request{method: "POST", path: "/" + index + step}, nil); err != nil {
				return row, err
			}
		}
	}
	words := b.texts.queries(s, b.few(20, 10))
	list := []*contender{
		g.page(direct, e.base, index, words, search{}), g.page(ours, p.base, index, words, search{}),
		g.page(ownCollapse, e.base, index, words, search{grouped: true}),
	}
	list[0].watch, list[1].watch, list[2].watch = []*process{e.process}, []*process{p, e.process}, []*process{e.process}
	list[1].clocks = p.admin
	how := b.pace()
	how.clients = 1
	found, err := b.compare(list, how, direct)
	if err != nil {
		return row, err
	}
	row.Contenders = found.rows(list)
	limit := fmt.Sprintf("processor time a request: the engine %.1f and, collapsed, %.1f ms, the sidecar %.1f ms",
		found.engineCPU(direct), found.engineCPU(ours), found.cpu(ours))
	row.Verdicts = slices.Concat(row.Verdicts, []measured.Verdict{
		judged(within(found.ratio("p50", ours, direct, p50), 1.2), limit), found.ratio("p50", ours, ownCollapse, p50),
	})
	return row, nil
}

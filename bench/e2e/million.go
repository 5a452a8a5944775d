package main

import (
	"fmt"
	"time"

	"github.com/neardup/sidecar/internal/measured"
)

var pageOfMillion = page{what: "page 1 of a million documents", search: search{size: 10}, most: 1.2, mostTypesense: 1.2, clients: 1}

// million measures page 1 of a million documents. They are written to the engine with their sketches already in them, which is the quickest way.
func (b *bench) million() error {
	s := shelf{Count: b.few(1_000_000, 1000), Bytes: 1000, Duplicates: .3}
	t := measured.Table{
		Name: million, Title: "A million documents", Columns: pageColumns,
		Notes: []string{fmt.Sprintf("%d documents of 1 kB, 30 %% of them near-duplicates of another one, in one shard with as many segments as the engine left; searches of two words each, "+
			"ten hits a page, asked for by one client that waits for its answer. The engine alone is asked of the same index, sketches in the sources and all.", s.Count)},
	}
	for _, e := range b.engines {
		index := indexName(million)
		err := b.store(e, index, s)
		if err == nil {
			var row measured.Row
			row, err = b.page(e, &stock{with: index, bare: index}, b.texts.queries(s, b.few(30, 10)), pageOfMillion)
			b.add(t, row)
		}
		e.drop(index)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

// store makes an index of a shelf's documents, with their sketches in them, and waits until the engine has merged what it wants to merge.
func (b *bench) store(e *engine, index string, s shelf) error {
	p, err := b.sidecar(e, setup{})
	if err != nil {
		return err
	}
	defer p.stop()
	if err := e.create(b.ctx, p.base, index); err != nil {
		return err
	}
	r, err := sketching()
	if err != nil {
		return err
	}
	g, part := &growing{bench: b, engine: e}, s.Count/10
	for from := 0; from < s.Count; from += part {
		if err := g.store(e.base, index, s, from, from+part, r); err != nil {
			return err
		}
		b.log("%s: %d documents", e.name, from+part)
	}
	if e.typesense() {
		return nil
	}
	if err := e.do(b.ctx, e.base, request{method: "POST", path: "/" + index + "/_refresh"}, nil); err != nil {
		return err
	}
	for {
		var stats struct {
			All struct {
				Total struct{ Merges struct{ Current int } }
			} `json:"_all"`
		}
		if err := e.do(b.ctx, e.base, request{method: "GET", path: "/" + index + "/_stats/merge"}, &stats); err != nil || stats.All.Total.Merges.Current == 0 {
			return err
		}
		time.Sleep(time.Second)
	}
}

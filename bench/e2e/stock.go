package main

import (
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// stock is what most parts ask for: the same documents in two indices of an engine.
type stock struct {
	with string // written through a sidecar: with sketches
	bare string // what a client would have otherwise; no rule of a sidecar's matches its name
}

// stocked is the shelf of every engine's stock.
func (b *bench) stocked() shelf {
	return shelf{Count: b.few(20_000, 1000), Bytes: 2000, Duplicates: .3}
}

// fillStocks fills the stocks of all engines at the same time, once in a run.
func (b *bench) fillStocks() error {
	var group errgroup.Group
	for _, e := range b.engines {
		if e.stock != nil {
			continue
		}
		group.Go(func() (err error) {
			if e.stock, err = b.twice(e, "stock", b.stocked()); err == nil {
				err = b.warm(e, e.stock)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// warm asks the engine for pages, once in a run: a Java server takes twice the time for a search until its code is compiled.
func (b *bench) warm(e *engine, made *stock) error {
	if e.warm {
		return nil
	}
	e.warm = true
	p, err := b.sidecar(e, setup{limits: unhurried})
	if err != nil {
		return err
	}
	defer p.stop()
	length := 6 * time.Second
	if b.short {
		length = 0
	}
	plain, ours := &contender{name: direct, base: e.base}, &contender{name: ours, base: p.base}
	for _, words := range b.texts.queries(b.stocked(), 50) {
		plain.requests = append(plain.requests, e.request(made.bare, words, search{size: 10}))
		ours.requests = append(ours.requests, e.request(made.with, words, search{size: 10}))
	}
	for _, c := range []*contender{plain, ours} {
		if _, err := c.closed(b.ctx, 4, length); err != nil {
			return err
		}
	}
	return nil
}

// twice fills two indices with the documents of a shelf, through a sidecar and without.
func (b *bench) twice(e *engine, name string, s shelf) (*stock, error) {
	p, err := b.sidecar(e, setup{})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	made := &stock{with: indexName(name), bare: without(indexName(name))}
	if err = e.fill(b.ctx, p.base, made.with, b.texts, s); err == nil {
		err = e.fill(b.ctx, e.base, made.bare, b.texts, s)
	}
	if err != nil {
		e.dropStock(made)
		return nil, err
	}
	return made, nil
}

// dropStock deletes both indices.
func (e *engine) dropStock(s *stock) {
	if s != nil {
		e.drop(s.with)
		e.drop(s.bare)
	}
}

// without names the index of the same documents without sketches.
func without(index string) string { return "without-" + index }

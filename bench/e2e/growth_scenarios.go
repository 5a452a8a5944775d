package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/neardup/sidecar/internal/measured"
)

// patient are limits under which everything is collapsed, however long it takes and however much it is.
const patient = unhurried + ", max_window: 10000, max_held: 2GB, max_reply: 256MB"

// side is a sidecar and an index that was written through it.
type side struct {
	before  bool // whether it is the older one
	sidecar *process
	index   string
	stock   bool // whether the index is the engine's stock, which stays
}

// opened starts the sidecar, and the older one if there is one, and fills an index through each; the stock of an engine is taken as it is. What ends
// all of it is to be called in any case.
func (g *growing) opened(s shelf) (sides []side, end func(), err error) {
	end = func() {
		for _, one := range sides {
			if !one.stock {
				g.engine.drop(one.index)
			}
			if err := one.sidecar.stop(); err != nil {
				g.log("%v", err)
			}
		}
	}
	for _, before := range []bool{false, true} {
		b, one := *g.bench, side{before: before, index: indexName("growth"), stock: !before && s == g.stocked()}
		if before {
			b.program, one.index = g.before, indexName("growth-before")
		}
		if b.program == "" {
			continue
		}
		if one.sidecar, err = b.sidecar(g.engine, setup{limits: patient}); err != nil {
			return sides, end, err
		}
		if one.stock {
			err = g.fillStocks()
		} else {
			err = g.engine.fill(g.ctx, one.sidecar.base, one.index, g.texts, s)
		}
		if one.stock && err == nil {
			one.index = g.engine.stock.with
		}
		if sides = append(sides, one); err != nil {
			return sides, end, err
		}
	}
	return sides, end, nil
}

// byWindow has the window grow: over a list that is longer, page 1 as it is, and with totals of the collapsed list, which read all of it.
var byWindow = scenario{[]measured.Curve{{
	Name: "window", Title: "Page 1, by the ranks of the window", Across: "ranks in the window", Up: "p50, ms",
	Notes: []string{"Searches whose list is longer than the largest window, in 20,000 documents of 2 kB, 30 % of them near-duplicates. " +
		"Totals of the collapsed list (`neardup_totals=collapsed`) read the sketches of the whole window for each page; a page alone reads what it needs."},
}}, func(g *growing) error {
	sides, end, err := g.opened(g.stocked())
	defer end()
	if err != nil {
		return err
	}
	words := g.texts.common(g.stocked())[:2]
	for _, window := range g.steps(10, 100, 1000, 10_000) {
		control := fmt.Sprintf("neardup_window=%.0f", window)
		list := append(g.pages(through, sides, words, control), g.page(plain, g.engine.base, sides[0].index, words, search{}))
		if err := g.alone(window, append(list, g.pages("collapsed, the whole window read", sides, words, control, "neardup_totals=collapsed")...)...); err != nil {
			return err
		}
	}
	return nil
}}

// bySource has the documents grow, which are in each hit.
var bySource = scenario{[]measured.Curve{{
	Name: "source", Title: "Page 1, by the size of a hit's source", Across: "size of a source, kB", Up: "p50, ms",
	Notes: []string{"Ten hits with their whole source, all of it text that is sketched and searched; 60 to 2,000 documents in an " +
		"index, 30 % of them near-duplicates."},
}}, func(g *growing) error {
	for _, size := range g.steps(1, 10, 100, 1000) {
		s := shelf{Count: max(60, min(g.few(2000, 150), int(10_000/size))), Bytes: int(size) * 1000, Duplicates: .3}
		sides, end, err := g.opened(s)
		if err == nil {
			words := g.texts.common(s)[:2]
			err = g.alone(size, append(g.pages(through, sides, words), g.page(plain, g.engine.base, sides[0].index, words, search{}))...)
		}
		end()
		if err != nil {
			return err
		}
	}
	return nil
}}

// byDuplicates has the share of near-duplicates grow.
var byDuplicates = scenario{[]measured.Curve{{
	Name: "duplicates", Title: "Page 1, by the share of near-duplicates", Across: "near-duplicates, %", Up: "p50, ms",
	Notes: []string{"Ten hits, in 3,000 documents of 2 kB. The more folds, the further is read for a page of ten. The engine collapses " +
		"by a stored id of the group. The plain search and the engine's own go to the same index, sketches in the sources and all."},
}}, func(g *growing) error {
	for _, share := range g.steps(0, 30, 60, 90) {
		s := shelf{Count: g.few(3000, 600), Bytes: 2000, Duplicates: share / 100}
		sides, end, err := g.opened(s)
		if err == nil {
			words := g.texts.queries(s, 10)
			err = g.alone(share, append(g.pages(through, sides, words), g.page(plain, g.engine.base, sides[0].index, words, search{}),
				g.page(grouped, g.engine.base, sides[0].index, words, search{grouped: true}))...)
		}
		end()
		if err != nil {
			return err
		}
	}
	return nil
}}

// byClients has the number of clients grow that wait for their answers.
var byClients = scenario{[]measured.Curve{{
	Name: "concurrency", Title: "Searches a second, by the number of clients", Across: "clients at the same time", Up: "searches a second",
	Notes: []string{"Page 1 of ten hits, in 20,000 documents of 2 kB, 30 % of them near-duplicates. Each client waits for its answer and " +
		"asks again. Clients, sidecar and engine share the machine's cores: from some clients on all of these are busy."},
}, {
	Name: "latency", Title: "Time of a search, by the number of clients", Across: "clients at the same time", Up: "ms",
	Notes: []string{"The same run: medians. Once all cores are busy a search waits in proportion to " +
		"the number of clients."},
}}, func(g *growing) error {
	sides, end, err := g.opened(g.stocked())
	defer end()
	if err != nil {
		return err
	}
	words := g.texts.queries(g.stocked(), g.few(forTail, 10))
	list := append(g.pages(through, sides, words), g.page(plain, g.engine.base, sides[0].index, words, search{}))
	for _, clients := range g.steps(1, 3, 10, 100) {
		medians, err := g.turns(list, int(clients), 2, 500*time.Millisecond)
		if err != nil {
			return err
		}
		for i, m := range medians {
			g.add(0, list[i], false, clients, m.rate)
			g.add(1, list[i], false, clients, m.p50)
			if g.before == "" {
				g.add(1, list[i], true, clients, m.p99)
			}
		}
	}
	return nil
}}

// byDocuments has the index grow.
var byDocuments = scenario{[]measured.Curve{{
	Name: "index", Title: "Page 1, by the documents in the index", Across: "documents", Up: "p50, ms",
	Notes: []string{"Ten hits, documents of 250 bytes, 30 % of them near-duplicates, written through the sidecar; the same searches at all " +
		"sizes, so their lists grow with the index. Asked at once after the writes, while engines may still merge their segments."},
}}, func(g *growing) error {
	steps := []float64{10_000, 30_000, 100_000}
	if g.short {
		steps = []float64{500, 1000}
	}
	s := shelf{Count: int(steps[len(steps)-1]), Bytes: g.few(250, 500), Duplicates: .3}
	sides, end, err := g.opened(shelf{}) // empty
	defer end()
	if err != nil {
		return err
	}
	words, stored := g.texts.queries(s, g.few(6, 20)), 0
	for _, documents := range steps {
		for _, one := range sides {
			err := g.store(one.sidecar.base, one.index, s, stored, int(documents), nil)
			if err == nil && !g.engine.typesense() {
				err = g.engine.do(g.ctx, g.engine.base, request{method: "POST", path: "/" + one.index + "/_refresh"}, nil)
			}
			if err != nil {
				return err
			}
		}
		stored = int(documents)
		if err := g.alone(documents, append(g.pages(through, sides, words), g.page(plain, g.engine.base, sides[0].index, words, search{}),
			g.page(grouped, g.engine.base, sides[0].index, words, search{grouped: true}))...); err != nil {
			return err
		}
	}
	return nil
}}

// bySidecars measures a growing number of sidecars behind one balancer, each with one core.
var bySidecars = scenario{[]measured.Curve{{
	Name: "sidecars", Title: "Requests a second, by the number of sidecars behind HAProxy", Across: "sidecars", Up: "requests a second",
	Notes: []string{"32 clients ask HAProxy, which hands requests to sidecars that may use one core each (`GOMAXPROCS=1`). Passed through is " +
		"a request that costs the engine next to nothing (`GET /`, `GET /health`). Clients, HAProxy, sidecars and engine share the " +
		"machine's cores, so their number is the limit."},
}, {
	Name: "sidecars-cpu", Title: "Processor time of a request, by the number of sidecars", Across: "sidecars",
	Up: "ms of processor time a request",
	Notes: []string{"The same run: sidecars share nothing, so what a request costs them all together does not depend on how " +
		"many there are."},
}}, func(g *growing) error {
	if err := g.fillStocks(); err != nil {
		return err
	}
	words := g.texts.queries(g.stocked(), 20)
	var sidecars []*process
	defer func() {
		for _, p := range sidecars {
			if err := p.stop(); err != nil {
				g.log("%v", err)
			}
		}
	}()
	for _, count := range g.steps(1, 2, 4) {
		for len(sidecars) < int(count) {
			p, err := g.oneCore()
			if err != nil {
				return err
			}
			sidecars = append(sidecars, p)
			p.name = fmt.Sprintf("sidecar %d", len(sidecars))
		}
		if err := g.balanced(sidecars, g.engine.stock.with, words); err != nil {
			return err
		}
	}
	return nil
}}

// oneCore starts a sidecar that may use one core.
func (g *growing) oneCore() (*process, error) {
	b := *g.bench
	b.program = filepath.Join(g.folder, "one-core")
	script := fmt.Sprintf("#!/bin/sh\nGOMAXPROCS=1 exec %q \"$@\"\n", g.program)
	if err := os.WriteFile(b.program, []byte(script), 0o755); err != nil {
		return nil, err
	}
	return b.sidecar(g.engine, setup{limits: patient})
}

// balanced measures a number of sidecars behind a balancer.
func (g *growing) balanced(sidecars []*process, index string, words []string) error {
	var to []string
	for _, p := range sidecars {
		to = append(to, p.base)
	}
	balancer, err := g.haproxy(to...)
	if err != nil {
		for i := range g.panels {
			g.panels[i].Absent = err.Error()
		}
		return nil
	}
	defer func() {
		if err := balancer.stop(); err != nil {
			g.log("%v", err)
		}
	}()
	pass := &contender{name: "passed through", base: balancer.base, watch: sidecars}
	path := "/"
	if g.engine.typesense() {
		path = "/health"
	}
	pass.requests = []request{{method: "GET", path: path, header: g.engine.header()}}
	page := g.page(through, balancer.base, index, words, search{})
	page.watch = sidecars
	list := []*contender{page, pass}
	medians, err := g.turns(list, 32, 2, 500*time.Millisecond)
	for i, m := range medians {
		spent := 0.0
		for _, each := range m.cpu {
			spent += each
		}
		g.add(0, list[i], false, float64(len(sidecars)), m.rate)
		g.add(1, list[i], false, float64(len(sidecars)), spent)
	}
	return err
}

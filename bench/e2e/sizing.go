package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/measured"
	"golang.org/x/sync/errgroup"
)

// formula is that of docs/sizing.md.
type formula struct {
	each map[string]float64 // how many of a kind one core does in a second: pages, compressed, deep, passing, documents
	// idle and connection are MB: of a sidecar that has nothing to do, and of each connection.
	idle, connection float64
}

// readFormula takes the formula from the page, so that what is checked is what operators read.
func readFormula() (f formula, err error) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "sizing.md"))
	if err != nil {
		return f, err
	}
	number := func(digits string) float64 {
		v, wrong := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
		err = errors.Join(err, wrong)
		return v
	}
	f.each = map[string]float64{}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "cores ") {
			for _, term := range regexp.MustCompile(`(\w+) / ([\d,]+)`).FindAllStringSubmatch(line, -1) {
				f.each[term[1]] = number(term[2])
			}
		}
		if m := regexp.MustCompile(`^memory = ([\d.]+) MB \+ ([\d.]+) MB × connections`).FindStringSubmatch(line); m != nil {
			f.idle, f.connection = number(m[1]), number(m[2])
		}
	}
	if err == nil && (len(f.each) != 5 || f.idle == 0) {
		err = fmt.Errorf("docs/sizing.md has no formula of five kinds and of memory: %v", f)
	}
	return f, err
}

// sizing has clients do everything at the same time, and compares what the sidecar takes for it with the formula.
func (b *bench) sizing() error {
	f, err := readFormula()
	if err == nil {
		err = b.fillStocks()
	}
	if err != nil {
		return err
	}
	t := measured.Table{
		Name: "sizing", Title: "The formula for planning", Columns: []measured.Column{{Name: "cores", Unit: "cores"}},
		Notes: []string{"First pages, the same with gzip, pages 50, documents of 2 kB read and documents of 2 kB in bulks of 100, all at the same time and at constant rates, " +
			"in front of one engine; beside it what [sizing](../sizing.md) says of these rates."},
	}
	for _, e := range b.engines {
		row, err := b.sizingAt(e, f)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		b.add(t, row)
	}
	return nil
}

func (b *bench) sizingAt(e *engine, f formula) (measured.Row, error) {
	row, index := measured.Row{What: "all at the same time", Engine: e.name}, indexName("sizing")
	p, err := b.sidecar(e, setup{limits: unhurried})
	if err != nil {
		return row, err
	}
	defer p.stop()
	defer e.drop(index)
	if err := e.create(b.ctx, p.base, index); err != nil {
		return row, err
	}
	const bulk = 100
	written, _, err := b.bulks(e, index, shelf{Count: 20 * bulk, Bytes: 2000, Duplicates: .3}, bulk)
	if err != nil {
		return row, err
	}
	list := map[string]*contender{"pages": {}, "compressed": {}, "deep": {}, "passing": {}, "documents": {requests: written}}
	for i, words := range b.texts.queries(b.stocked(), b.few(50, 10)) {
		for kind, s := range map[string]search{"pages": {size: 10}, "compressed": {size: 10, gzip: true}, "deep": {from: b.few(490, 10), size: 10}} {
			list[kind].requests = append(list[kind].requests, e.request(e.stock.with, words, s))
		}
		list["passing"].requests = append(list["passing"].requests, e.read(e.stock.bare, b.texts.document(b.stocked(), i*7).ID))
	}
	rates := map[string]float64{"pages": 40, "compressed": 20, "deep": 4, "passing": 200, "documents": 5}
	said := 0.0
	for kind, c := range list {
		c.name, c.base, c.collapsed = kind, p.base, kind == "pages" || kind == "compressed" || kind == "deep"
		rate := rates[kind]
		if kind == "documents" {
			rate *= bulk
		}
		said += rate / f.each[kind]
	}
	rounds, length := leastRounds+1, 1500*time.Millisecond
	if b.short {
		rounds, length = 2, 300*time.Millisecond
	}
	var taken, ratios []float64
	for round := range rounds {
		before, err := p.cpu()
		if err != nil {
			return row, err
		}
		began := time.Now()
		var group errgroup.Group
		for kind, c := range list {
			group.Go(func() error {
				_, err := c.attack(b.ctx, rates[kind], length)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return row, err
		}
		after, err := p.cpu()
		if err != nil {
			return row, err
		}
		if round > 0 { // the first warms up
			cores := (after - before).Seconds() / time.Since(began).Seconds()
			taken, ratios = append(taken, cores), append(ratios, cores/said)
		}
	}
	b.log("%s: %.3f cores, %.3f by the formula", e.name, median(taken), said)
	row.Contenders = []measured.Contender{
		{Name: ours, Figures: map[string]float64{"cores": median(taken)}}, {Name: "the formula", Figures: map[string]float64{"cores": said}},
	}
	v := over("processor time, at most", "the formula", "×", ratios)
	row.Verdicts = []measured.Verdict{judged(within(v, 1.2), "the formula promises too much")}
	v.Of = "processor time, at least"
	row.Verdicts = append(row.Verdicts, judged(reaching(v, .8), "the formula asks for too much"))
	return row, nil
}

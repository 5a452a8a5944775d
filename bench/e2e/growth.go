package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/internal/measured"
	"github.com/neardup/sidecar/internal/rule"
)

// The lines of the curves.
const (
	through = "collapsed, through the sidecar"
	plain   = "the plain search, direct"
	grouped = "the engine's own collapse, direct"
)

// scenario lets one thing grow at one engine, and adds to the panels of its curves.
type scenario struct {
	curves []measured.Curve
	grow   func(g *growing) error
}

// growing is a scenario under way at one engine.
type growing struct {
	*bench
	engine *engine
	panels []measured.Panel // one for each of the scenario's curves
}

// run lets the thing grow at every engine, and adds the curves to the report.
func (s scenario) run(b *bench) error {
	for _, e := range b.engines {
		b.log("growth: %s, %s", s.curves[0].Name, e.name)
		g := &growing{bench: b, engine: e, panels: make([]measured.Panel, len(s.curves))}
		if err := s.grow(g); err != nil {
			return fmt.Errorf("%s, %s: %w", s.curves[0].Name, e.name, err)
		}
		for i := range s.curves {
			g.panels[i].Name = e.name
			s.curves[i].Panels = append(s.curves[i].Panels, g.panels[i])
		}
	}
	b.report.Curves = append(b.report.Curves, s.curves...)
	return nil
}

// steps are the values that a scenario goes through; the short form has the first two.
func (b *bench) steps(values ...float64) []float64 {
	if b.short {
		return values[:2]
	}
	return values
}

// add puts a point at the end of a contender's line of a panel.
func (g *growing) add(curve int, c *contender, tail bool, x, y float64) {
	p := &g.panels[curve]
	i := slices.IndexFunc(p.Lines, func(l measured.Line) bool { return l.Name == c.name && l.Tail == tail && l.Before == c.before })
	if i < 0 {
		i = len(p.Lines)
		p.Lines = append(p.Lines, measured.Line{Name: c.name, Tail: tail, Before: c.before})
	}
	p.Lines[i].Points = append(p.Lines[i].Points, measured.Point{X: x, Y: y})
}

// turns checks every reply once, if that was not done before, then has the contenders take turns, each with so many clients that wait for
// their answers, and returns for each the medians of the rounds.
func (b *bench) turns(list []*contender, clients, rounds int, length time.Duration) ([]sample, error) {
	if b.short {
		rounds, length = 1, 200*time.Millisecond
	}
	samples := make([][]sample, len(list))
	for _, c := range list {
		if c.checked {
			continue
		}
		if err := c.checkAll(b.ctx); err != nil {
			return nil, err
		}
		c.checked = true
	}
	for round := range rounds {
		for i := range list {
			i := (i + round) % len(list)
			s, err := list[i].closed(b.ctx, clients, length)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], s)
		}
	}
	var medians []sample
	for _, rounds := range samples {
		of := func(figure func(sample) float64) float64 {
			var all []float64
			for _, s := range rounds {
				all = append(all, figure(s))
			}
			return median(all)
		}
		m := sample{p50: of(p50), p95: of(p95), p99: of(p99), rate: of(func(s sample) float64 { return s.rate })}
		m.cpu = map[string]float64{}
		for name := range rounds[0].cpu {
			m.cpu[name] = of(func(s sample) float64 { return s.cpu[name] })
		}
		medians = append(medians, m)
	}
	return medians, nil
}

// alone has the contenders take turns with one client, and adds the median time of each to its line.
func (g *growing) alone(x float64, list ...*contender) error {
	rounds := 3
	if g.before != "" { // two that are near one another
		rounds = leastRounds
	}
	medians, err := g.turns(list, 1, rounds, 300*time.Millisecond)
	for i, m := range medians {
		g.add(0, list[i], false, x, m.p50)
	}
	return err
}

// pages are contenders that ask for page 1 through each sidecar.
func (g *growing) pages(name string, sides []side, words []string, controls ...string) (list []*contender) {
	for _, s := range sides {
		c := g.page(name, s.sidecar.base, s.index, words, search{}, controls...)
		c.before = s.before
		list = append(list, c)
	}
	return list
}

// page is a contender that asks for page 1 of ten hits, with controls of the sidecar such as neardup_window=10 or members of the search.
func (g *growing) page(name, base, index string, words []string, s search, controls ...string) *contender {
	s.size = 10
	mark := "?"
	if g.engine.typesense() {
		mark = "&"
	}
	if len(controls) > 0 {
		s.more += mark + strings.Join(controls, "&")
	}
	c := &contender{name: name, base: base, collapsed: base != g.engine.base}
	for _, w := range words {
		c.requests = append(c.requests, g.engine.request(index, w, s))
	}
	c.check = func(r reply) error {
		if n, err := g.engine.hits(r); err != nil || n != s.size {
			return fmt.Errorf("%d hits: %w", n, cmp.Or(err, errors.New("a page has ten")))
		}
		return nil
	}
	return c
}

// store stores the documents of a shelf from one number to another, through an address, several requests at the same time: with sketches
// in them where a rule is given.
func (g *growing) store(base, index string, s shelf, from, to int, r *rule.Rule) error {
	each := max(1, min(1000, 4<<20/(s.Bytes+200))) // documents to a write
	var next atomic.Int64
	next.Store(int64(from))
	group, ctx := errgroup.WithContext(g.ctx)
	for range loaders {
		group.Go(func() error {
			for {
				last := int(next.Add(int64(each)))
				if last-each >= to || ctx.Err() != nil {
					return ctx.Err()
				}
				var part []document
				for i := last - each; i < min(last, to); i++ {
					d := g.texts.document(s, i)
					if r != nil {
						d = d.sketched(r)
					}
					part = append(part, d)
				}
				r, err := send(ctx, base, g.engine.write(index, part))
				if err == nil {
					err = g.engine.written(r)
				}
				if err != nil {
					return fmt.Errorf("store in %s: %w", index, err)
				}
			}
		})
	}
	return group.Wait()
}

// common are words that nearly every document has.
func (t *texts) common(s shelf) []string {
	const sampled = 100
	found := map[string]int{}
	for i := range min(s.Count, sampled) {
		words := strings.Fields(t.document(s, i).Body)
		slices.Sort(words)
		for _, w := range slices.Compact(words) {
			if strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" {
				found[w]++
			}
		}
	}
	var words []string
	for w := range found {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(found[b]-found[a], strings.Compare(a, b)) })
	return words[:min(5, len(words))]
}

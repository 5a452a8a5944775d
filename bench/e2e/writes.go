package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/neardup/sidecar/internal/measured"
	"golang.org/x/sync/errgroup"
)

// writers is how many clients write at once, each waiting for its answers.
const writers = 4

// load is what a way of writing took for the documents of one turn.
type load struct {
	perSecond     float64 // documents
	proxy, engine float64 // processor time in ms for a thousand documents
}

// prepared names the contender whose documents come with their sketches.
const prepared = "direct, sketches in the documents"

// way is a way of writing: to which process, into an index that was made at which address.
type way struct {
	name  string
	by    *process
	made  string
	bulks []request
}

// writeColumns are those of tables of writes.
var writeColumns = []measured.Column{
	{Name: "documents", Unit: "a second"}, {Name: "CPU", Unit: "ms for 1,000 documents"}, {Name: "engine CPU", Unit: "ms for 1,000 documents"},
}

// writes measures how fast documents are stored through the sidecar, and what it takes for that.
func (b *bench) writes() error {
	t := measured.Table{
		Name: "writes", Title: "Writes", Columns: writeColumns,
		Notes: []string{fmt.Sprintf("Documents of 2 kB in bulks (`_bulk`, `import`), by %d clients that each wait for the answer, into an index made anew for each turn; "+
			"nothing is refreshed meanwhile. `on_duplicate: index`. “"+prepared+"” shows what the engine itself pays for storing them; it and the bare proxy write bulks of 200 alone.", writers)},
	}
	for _, e := range b.engines {
		for _, w := range []writing{{"bulks of 200", 200, .92, true}, {"bulks of 1000", 1000, .92, false}} {
			if err := b.written(e, t, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// pinned measures the same where the engine has half of the cores to itself, and all else the others.
func (b *bench) pinned() error {
	t := measured.Table{
		Name: "pinned", Title: "Writes, engine on cores of its own", Columns: writeColumns,
		Notes: []string{"The engine is pinned to one half of the cores (`taskset`), clients and proxies to the other. All else as above."},
	}
	for _, e := range b.engines {
		together, err := e.apart()
		if err == nil {
			err = b.written(e, t, writing{"bulks of 200, engine on cores of its own", 200, .98, false})
		}
		if err = errors.Join(err, together()); err != nil {
			return err
		}
	}
	return nil
}

// apart gives the engine one half of the cores and this process, with those that it starts, the other, until together is called.
func (e *engine) apart() (together func() error, err error) {
	cores, itself := runtime.NumCPU(), &process{name: "e2e", pid: os.Getpid()}
	if cores < 2 {
		return func() error { return nil }, errors.New("the machine has one core")
	}
	together = func() error {
		all := fmt.Sprintf("0-%d", cores-1)
		return errors.Join(e.process.pin(all), itself.pin(all))
	}
	return together, errors.Join(itself.pin(fmt.Sprintf("0-%d", (cores-1)/2)), e.process.pin(fmt.Sprintf("%d-%d", (cores+1)/2, cores-1)))
}

// writing is a way of writing that is compared with the engine alone.
type writing struct {
	what string
	each int // documents in a bulk
	// least is how many documents a second are wanted, as a part of those of the engine alone.
	least float64
	// explained says that the bare proxy and documents with sketches take turns, too: once for each engine is enough.
	explained bool
}

// written adds the row of one way of writing.
func (b *bench) written(e *engine, t measured.Table, w writing) error {
	row, err := b.writesOf(e, w)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", e.name, w.what, err)
	}
	b.add(t, row)
	return nil
}

// writesOf has the contenders write in turn, round after round, until it is known how fast ours is beside the engine alone.
func (b *bench) writesOf(e *engine, w writing) (measured.Row, error) {
	row := measured.Row{What: w.what, Engine: e.name}
	s := shelf{Count: 8000, Bytes: 2000, Duplicates: .3}
	if e.typesense() {
		s.Count = 3000
	}
	if b.short {
		s.Count = 2 * w.each
	}
	index := indexName("writes")
	defer e.drop(index)
	bulks, sketched, err := b.bulks(e, index, s, w.each)
	if err != nil {
		return row, err
	}
	sidecar, err := b.sidecar(e, setup{})
	if err != nil {
		return row, err
	}
	defer sidecar.stop()
	ways := []way{{direct, e.process, e.base, bulks}, {ours, sidecar, sidecar.base, bulks}}
	if w.explained {
		bare, err := b.bare(e.base, false)
		if err != nil {
			return row, err
		}
		defer bare.stop()
		ways = append(ways, way{goes, bare, e.base, bulks}, way{prepared, e.process, sidecar.base, sketched})
	}
	turns := make([][]load, len(ways))
	rate := func(l load) float64 { return l.perSecond }
	for round := 0; len(turns[0]) == 0 || !b.known(quotients(turns[1], turns[0], rate)); round++ {
		for i := range ways {
			i := (i + round) % len(ways)
			if round > leastRounds && i > 1 { // the others are there to explain
				continue
			}
			l, err := b.write(e, ways[i], index, s.Count)
			if err != nil {
				return row, fmt.Errorf("%s: %w", ways[i].name, err)
			}
			if round > 0 || b.short { // the first warms up
				turns[i] = append(turns[i], l)
			}
		}
	}
	b.log("%s, %s: %d rounds, %.2f times as fast as direct", e.name, w.what, len(turns[0]), median(quotients(turns[1], turns[0], rate)))
	for i, way := range ways {
		figures := map[string]float64{
			"documents": medianOf(turns[i], rate), "engine CPU": medianOf(turns[i], func(l load) float64 { return l.engine }),
		}
		if way.by != e.process {
			figures["CPU"] = medianOf(turns[i], func(l load) float64 { return l.proxy })
		}
		row.Contenders = append(row.Contenders, measured.Contender{Name: way.name, Figures: figures})
	}
	limit := fmt.Sprintf("processor time for 1,000 documents: the sidecar %.0f ms, the engine %.0f ms, for documents without sketches %.0f ms",
		row.Contenders[1].Figures["CPU"], row.Contenders[1].Figures["engine CPU"], row.Contenders[0].Figures["engine CPU"])
	if w.explained {
		limit = fmt.Sprintf("direct with sketches already in the documents, which the engine stores alike, %.2f×; through %s %.2f×; %s",
			median(quotients(turns[3], turns[0], rate)), goes, median(quotients(turns[2], turns[0], rate)), limit)
	}
	var shares []float64
	for round, l := range turns[1] { // what the engine takes for our field does not count
		shares = append(shares, 100*l.proxy/turns[0][round].engine)
	}
	row.Verdicts = []measured.Verdict{
		judged(reaching(over("documents a second", direct, "×", quotients(turns[1], turns[0], rate)), w.least), limit),
		judged(within(over("the sidecar's processor time", "the engine's, direct", "%", shares), 7), limit),
	}
	if w.explained {
		row.Verdicts = append(row.Verdicts, over("documents a second", goes, "×", quotients(turns[1], turns[2], rate)),
			over("documents a second", prepared, "×", quotients(turns[1], turns[3], rate)))
	}
	return row, nil
}

// bulks are the writes of a shelf's documents, without and with sketches in them.
func (b *bench) bulks(e *engine, index string, s shelf, each int) (plain, sketched []request, err error) {
	r, err := sketching()
	if err != nil {
		return nil, nil, err
	}
	for from := 0; from < s.Count; from += each {
		var part []document
		for i := from; i < min(from+each, s.Count); i++ {
			part = append(part, b.texts.document(s, i))
		}
		plain = append(plain, e.write(index, part))
		for i := range part {
			part[i] = part[i].sketched(r)
		}
		sketched = append(sketched, e.write(index, part))
	}
	return plain, sketched, nil
}

// write stores the documents of one turn in a new index.
func (b *bench) write(e *engine, w way, index string, documents int) (l load, err error) {
	by := w.by
	if err := e.create(b.ctx, w.made, index); err != nil {
		return l, err
	}
	before, err := by.cpu()
	if err != nil {
		return l, err
	}
	engineBefore, err := e.process.cpu()
	if err != nil {
		return l, err
	}
	began := time.Now()
	var next atomic.Int64
	var group errgroup.Group
	for range writers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(w.bulks) {
					return nil
				}
				r, err := send(b.ctx, by.base, w.bulks[i])
				if err == nil {
					err = e.written(r)
				}
				if err != nil {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return l, err
	}
	took := time.Since(began).Seconds()
	after, err := by.cpu()
	if err != nil {
		return l, err
	}
	engineAfter, err := e.process.cpu()
	thousands := float64(documents) / 1000
	return load{
		perSecond: float64(documents) / took,
		proxy:     (after - before).Seconds() * 1000 / thousands, engine: (engineAfter - engineBefore).Seconds() * 1000 / thousands,
	}, err
}

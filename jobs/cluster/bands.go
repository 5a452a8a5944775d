package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// MostPaired is how many texts of a bucket are compared each with each; the rest is compared with the first alone.
const MostPaired = 50

// Pairs visits the candidates of a bucket of texts, as places in the order of their numbers: all pairs among the first
// MostPaired, and the first with each of the rest. It ends where yield returns false.
func Pairs(texts int, yield func(a, b int) bool) {
	for a := range min(texts, MostPaired) {
		for b := a + 1; b < texts; b++ {
			if b >= MostPaired && a > 0 {
				break
			}
			if !yield(a, b) {
				return
			}
		}
	}
}

// chooseBands sets the bands and rows where the rule has none, or says that there can't be any.
func (c *Corpus) chooseBands() error {
	r, scheme := *c.options.Rule, c.options.Rule.Sketcher.Scheme()
	if c.listed() {
		return fmt.Errorf("algorithm bands: sketches of family %s have no bands: use broder, which goes by their values", scheme.Family)
	}
	if scheme.Family == sketch.Hamming {
		c.masks = masksFor(r.Profile.Threshold)
		r.Bands, r.Rows = len(c.masks), bits.OnesCount64(c.masks[0])
		c.options.Rule = &r
		return nil
	}
	positions, threshold := scheme.Positions, r.Profile.Threshold
	if r.Bands == 0 {
		switch {
		case scheme.Features == sketch.Vectors:
			threshold = sketch.SideShare(threshold)
		case scheme.Family == sketch.SimHash: // of two sets as large as one another (Charikar)
			threshold = sketch.SideShare(2 * threshold / (1 + threshold))
		}
		r.Bands, r.Rows = rule.ChooseBands(positions, threshold)
		c.options.Rule = &r
	}
	if r.Bands < 1 || r.Rows < 1 || r.Bands*r.Rows > positions {
		const misfit = "algorithm bands: %d bands of %d rows don't fit into the %d positions of a sketch: set bands: auto"
		return fmt.Errorf(misfit, r.Bands, r.Rows, positions)
	}
	return nil
}

// Shape returns how many bands of how many rows Bands goes by; of ready values in how many tables by how many bits they are
// looked up.
func (c *Corpus) Shape() (bands, rows int) { return c.options.Rule.Bands, c.options.Rule.Rows }

// keys appends the keys of the first bands of a sketch: those of [sketch.Sketch.AppendBands], of which the high halves
// count, as rule.Rule.BandKeys stores them but for the sign.
func (c *Corpus) keys(room []uint64, s *sketch.Sketch, bands int) ([]uint64, error) {
	if s.Form == sketch.Ready && c.masks != nil {
		return c.readyKeys(room, s.Payload, bands), nil
	}
	keys, ok := s.AppendBands(room, bands, c.options.Rule.Rows)
	if !ok {
		return keys, errors.New("a sketch has no bands")
	}
	return keys, nil
}

// inChunk is how many records are read in one go.
const inChunk = 1 << 9

// chunks is in how many parts the sketches are read.
func (c *Corpus) chunks() int { return (c.documents + inChunk - 1) / inChunk }

// sketchesIn returns the sketches of the texts in a chunk, each with the number of the text. A sketch is good until the next one.
func (r *reader) sketchesIn(chunk int) (texts iter.Seq2[uint32, *sketch.Sketch], err error) {
	c, s := r.c, &r.sketches[0]
	from, to, scheme := chunk*inChunk, min((chunk+1)*inChunk, c.documents), c.options.Rule.Sketcher.SchemeID()
	r.rooms[0], err = c.records.read(from, to, r.rooms[0])
	return func(yield func(uint32, *sketch.Sketch) bool) {
		for i, start := from, c.records.start(from); i < to; i++ {
			if c.firsts[i/64]>>(i%64)&1 == 0 {
				continue
			}
			decode(r.rooms[0][c.records.start(i)-start:], scheme, s)
			if !yield(c.number[i], s) {
				return
			}
		}
	}, err
}

// parallel does n pieces of work on all cores. It ends at the first error or with ctx.
func parallel(ctx context.Context, n int, work func(int) error) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := 0; i < n && within.Err() == nil; i++ {
		group.Go(func() error { return work(i) })
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

// entry is a text in a band: its key in the high half and its number in the low half of the first number, then its sign.
type entry = [3]uint64

// entrySize is how many bytes an entry takes.
const entrySize = 24

// joinBands joins the near-duplicates among the candidates of all buckets. As many bands are gone through at a time as there is memory for, and if the
// records are in a file, as many as take a third of its size; one at least. What of their entries does not fit into memory goes to files too.
func (c *Corpus) joinBands(ctx context.Context) error {
	texts, memory := c.Room()
	if texts < 2 {
		return nil
	}
	bands, size := c.options.Rule.Bands, entrySize*int64(texts)
	together := int(min(int64(bands), max(1, memory/size, c.records.stored/3/size)))
	room := max(leastHeld, min(memory/int64(together), size)/entrySize)
	rooms := make([][]entry, together)
	for i := range rooms {
		rooms[i] = make([]entry, 0, room)
	}
	signer, cores := c.signer(), runtime.GOMAXPROCS(0)
	for done := c.bandsDone(); done < bands; {
		c.progress("comparing within bands", done, bands)
		first, lists := done, make([]*bandList, min(together, bands-done))
		for i := range lists {
			lists[i] = &bandList{sorter: newSorter[entry](&c.scratch, room*entrySize, false)}
			lists[i].sorter.held = rooms[i]
		}
		err := parallel(ctx, cores, func(core int) error {
			r, room := reader{c: c}, make([][]entry, len(lists))
			for chunk := core; chunk < c.chunks() && ctx.Err() == nil; chunk += cores {
				if err := r.listChunk(chunk, first, lists, signer, room); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for len(lists) > 0 {
			some := len(lists)
			if c.work != nil { // to save what these bands join
				some = min(some, cores)
			}
			if err := c.joinLists(ctx, lists[:some], signer); err != nil {
				return err
			}
			lists, done = lists[some:], done+some
			if err := c.saveForest(done); err != nil {
				return err
			}
		}
	}
	return nil
}

// bandList takes the entries of one band from several goroutines.
type bandList struct {
	mu     sync.Mutex
	sorter *sorter[entry]
}

// add adds entries.
func (l *bandList) add(list []entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range list {
		if err := l.sorter.add(e); err != nil {
			return err
		}
	}
	return nil
}

// listChunk adds the texts of a chunk to the lists of some bands. entries is room for those of each.
func (r *reader) listChunk(chunk, first int, lists []*bandList, signer signer, entries [][]entry) error {
	c := r.c
	texts, err := r.sketchesIn(chunk)
	if err != nil {
		return err
	}
	for i := range entries {
		entries[i] = entries[i][:0]
	}
	var keys []uint64
	for number, s := range texts {
		if keys, err = c.keys(keys[:0], s, first+len(lists)); err != nil {
			return err
		}
		low, high := signer.sign(s)
		long := c.options.Rule.Profile.Long(s)
		for i := range lists {
			if !long { // it is a near-duplicate of the same words alone
				if first+i > 0 {
					break
				}
				keys[0] = s.WordsKey()
			}
			entries[i] = append(entries[i], entry{keys[first+i]&^math.MaxUint32 | uint64(number), low, high})
		}
	}
	for i, list := range lists {
		if err := list.add(entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// joinLists goes through the buckets of some bands.
func (c *Corpus) joinLists(ctx context.Context, lists []*bandList, signer signer) error {
	var mu sync.Mutex
	return parallel(ctx, len(lists), func(i int) error {
		cut, inCut, err := c.joinBuckets(ctx, lists[i].sorter, signer)
		mu.Lock()
		defer mu.Unlock()
		c.left.CutBuckets += cut
		c.left.CutTexts += inCut
		return err
	})
}

// joinBuckets goes through the buckets of one band. Its pairs are those of [Pairs].
func (c *Corpus) joinBuckets(ctx context.Context, list *sorter[entry], signer signer) (cut, inCut int, err error) {
	r := reader{c: c}
	first, texts := make([]entry, 0, MostPaired), 0 // those of the bucket
	end := func() {
		if texts > MostPaired {
			cut, inCut = cut+1, inCut+texts
		}
		first, texts = first[:0], 0
	}
	err = list.each(ctx, func(e entry) error {
		if texts > 0 && e[0]>>32 != first[0][0]>>32 {
			end()
		}
		with := first
		if texts >= MostPaired {
			with = first[:1]
		}
		for i := range with {
			if signer.apart(&with[i], &e) {
				continue
			}
			if err := r.try(uint32(with[i][0]), uint32(e[0])); err != nil {
				return err
			}
		}
		if texts++; texts <= MostPaired {
			first = append(first, e)
		}
		return nil
	})
	end()
	return cut, inCut, err
}

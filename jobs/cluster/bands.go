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
	"slices"
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
			number := c.number[i]
			if number == none || c.at[number] != uint32(i) {
				continue
			}
			decode(r.rooms[0][c.records.start(i)-start:], scheme, s)
			if !yield(number, s) {
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

// joinBands joins the near-duplicates among the candidates of all buckets. As many bands are gone through at a time as there is
// memory for, one at least; each takes 8 bytes for every text, and as much again while it is sorted.
func (c *Corpus) joinBands(ctx context.Context) error {
	count, memory := c.Room()
	texts, workers := int64(count), int64(runtime.GOMAXPROCS(0))
	if texts < 2 {
		return nil
	}
	bands := c.options.Rule.Bands
	fit := memory / (8 * texts)
	workers = max(1, min(workers, fit/2))
	together := int(min(max(1, fit-workers), int64(bands)))
	lists := make([][]uint64, together)
	for i := range lists {
		lists[i] = make([]uint64, texts)
	}
	rooms := make(chan []uint64, workers)
	for range workers {
		rooms <- nil
	}
	for done := c.bandsDone(); done < bands; {
		c.progress("comparing within bands", done, bands)
		first, lists := done, lists[:min(together, bands-done)]
		for _, list := range lists {
			for number := range list {
				list[number] = math.MaxUint64
			}
		}
		cores := runtime.GOMAXPROCS(0)
		err := parallel(ctx, cores, func(core int) error {
			r, keys := reader{c: c}, []uint64(nil)
			for chunk := core; chunk < c.chunks() && ctx.Err() == nil; chunk += cores {
				texts, err := r.sketchesIn(chunk)
				if err != nil {
					return err
				}
				for number, s := range texts {
					if keys, err = c.keys(keys[:0], s, first+len(lists)); err != nil {
						return err
					}
					for i, list := range lists {
						if !c.options.Rule.Profile.Long(s) { // it is a near-duplicate of the same words alone, and takes no place in the buckets of long texts
							if first+i > 0 {
								continue
							}
							keys[0] = s.WordsKey()
						}
						list[number] = keys[first+i]&^math.MaxUint32 | uint64(number)
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for len(lists) > 0 {
			some := len(lists)
			if c.work != nil { // to keep what these bands join
				some = min(some, int(workers))
			}
			if err := c.joinLists(ctx, lists[:some], rooms); err != nil {
				return err
			}
			lists, done = lists[some:], done+some
			if err := c.keepForest(done); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinLists goes through the buckets of some bands, which are lists of ⟨key, number⟩.
func (c *Corpus) joinLists(ctx context.Context, lists [][]uint64, rooms chan []uint64) error {
	var mu sync.Mutex
	return parallel(ctx, len(lists), func(i int) error {
		list := slices.DeleteFunc(lists[i], func(x uint64) bool { return x == math.MaxUint64 })
		room := <-rooms
		if room == nil {
			room = make([]uint64, len(lists[i]))
		}
		sortKeys(list, room[:len(list)])
		lists[i], room = room, lists[i]
		cut, inCut, err := c.joinBuckets(ctx, lists[i][:len(list)])
		rooms <- room
		mu.Lock()
		defer mu.Unlock()
		c.left.CutBuckets += cut
		c.left.CutTexts += inCut
		return err
	})
}

// joinBuckets goes through the buckets of one sorted list.
func (c *Corpus) joinBuckets(ctx context.Context, list []uint64) (cut, inCut int, err error) {
	r := reader{c: c}
	for start, looked := 0, 0; start < len(list); {
		end := start + 1
		for end < len(list) && list[end]>>32 == list[start]>>32 {
			end++
		}
		if bucket := list[start:end]; len(bucket) > 1 {
			if len(bucket) > MostPaired {
				cut, inCut = cut+1, inCut+len(bucket)
			}
			Pairs(len(bucket), func(a, b int) bool {
				if looked++; looked%looksEvery == 0 && ctx.Err() != nil {
					err = ctx.Err()
				} else {
					err = r.try(uint32(bucket[a]), uint32(bucket[b]))
				}
				return err == nil
			})
			if err != nil {
				return cut, inCut, err
			}
		}
		start = end
	}
	return cut, inCut, ctx.Err()
}

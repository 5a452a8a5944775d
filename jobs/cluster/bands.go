package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// MostPaired is how many texts of a bucket are compared each with each; the rest is compared with the first alone.
const MostPaired = 50

// Pairs visits the candidates of a bucket of so many texts, as places in the order of their numbers: all pairs among the first
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
	r := *c.options.Rule
	if c.form == sketch.Ready {
		c.masks = masksFor(r.Profile.Threshold)
		r.Bands, r.Rows = len(c.masks), bits.OnesCount64(c.masks[0])
		c.options.Rule = &r
		return nil
	}
	positions, threshold := 8*c.size/int(c.bits), r.Profile.Threshold
	if r.Bands == 0 {
		if c.form == sketch.Sides { // how many sides are equal of two sets as large as one another (Charikar)
			threshold = 1 - math.Acos(min(1, 2*threshold/(1+threshold)))/math.Pi
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

// keys appends the keys of the first so many bands of a sketch: those of [sketch.Sketch.AppendBands], of which the high halves
// count, as rule.Rule.BandKeys stores them but for the sign.
func (c *Corpus) keys(room []uint64, s *sketch.Sketch, bands int) ([]uint64, error) {
	if s.Form == sketch.Ready {
		return c.readyKeys(room, s.Payload, bands), nil
	}
	keys, ok := s.AppendBands(room, bands, c.options.Rule.Rows)
	if !ok {
		return keys, errors.New("a sketch has no bands")
	}
	return keys, nil
}

// eachSketch visits the sketches of all texts on all cores, in no order. work is called for each of so many goroutines at its
// beginning, and what it returns for each text, with a sketch that is good until the next call.
func (c *Corpus) eachSketch(ctx context.Context, work func() func(number uint32, s *sketch.Sketch) error) error {
	return parallel(ctx, c.sketches.length(), func() func(int) error { return c.scanner(work()) })
}

// scanner returns what visits the texts of a chunk of sketches.
func (c *Corpus) scanner(visit func(number uint32, s *sketch.Sketch) error) func(chunk int) error {
	var room []byte
	if !c.sketches.whole() {
		room = make([]byte, c.sketches.chunk)
	}
	var s sketch.Sketch
	return func(chunk int) error {
		raw, err := c.sketches.read(int64(chunk)*int64(c.sketches.chunk), c.sketches.chunk, room)
		if err != nil {
			return err
		}
		for i := chunk * recordsInChunk; len(raw) >= c.stride && i < c.documents; i++ {
			if number := c.number[i]; number != none && c.at[number] == uint32(i) {
				c.decode(raw, &s)
				if err := visit(number, &s); err != nil {
					return err
				}
			}
			raw = raw[c.stride:]
		}
		return nil
	}
}

// parallel does n pieces of work on all cores. It ends at the first error or with ctx.
func parallel(ctx context.Context, n int, work func() func(int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wait.Go(func() {
			do := work()
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wait.Wait()
	return context.Cause(ctx)
}

// compared reports whether a text can be joined to another one by agreement; what is too short goes into no bucket.
func (c *Corpus) compared(s *sketch.Sketch) bool {
	return s.Form == sketch.Ready || int64(s.Shingles) >= int64(c.options.Rule.Profile.MinShingles)
}

// joinBands joins the near-duplicates among the candidates of all buckets. As many bands are gone through at a time as there is
// memory for, one at least; each takes 8 bytes for every text, and as much again while it is sorted.
func (c *Corpus) joinBands(ctx context.Context) error {
	memory := c.options.Memory / 4
	if !c.sketches.whole() {
		memory = c.options.Memory / 2
	}
	texts, workers := int64(len(c.at)), int64(runtime.GOMAXPROCS(0))
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
	for first := 0; first < bands; first += together {
		c.progress("comparing within bands", first, bands)
		lists := lists[:min(together, bands-first)]
		err := c.eachSketch(ctx, func() func(uint32, *sketch.Sketch) error {
			var keys []uint64
			return func(number uint32, s *sketch.Sketch) (err error) {
				if !c.compared(s) {
					for i := range lists {
						lists[i][number] = math.MaxUint64
					}
					return nil
				}
				if keys, err = c.keys(keys[:0], s, first+len(lists)); err != nil {
					return err
				}
				for i, list := range lists {
					list[number] = keys[first+i]&^math.MaxUint32 | uint64(number)
				}
				return nil
			}
		})
		if err != nil {
			return err
		}
		if err := c.joinLists(ctx, lists, rooms); err != nil {
			return err
		}
	}
	return nil
}

// joinLists goes through the buckets of some bands, which are lists of ⟨key, number⟩.
func (c *Corpus) joinLists(ctx context.Context, lists [][]uint64, rooms chan []uint64) error {
	var mu sync.Mutex
	return parallel(ctx, len(lists), func() func(int) error {
		reader := c.Reader()
		return func(i int) error {
			room := <-rooms
			if room == nil {
				room = make([]uint64, len(lists[i]))
			}
			list := slices.DeleteFunc(lists[i], func(x uint64) bool { return x == math.MaxUint64 })
			sorted := sortKeys(list, room[:len(list)])
			lists[i], room = room, lists[i] // in which of the two the sorted list is makes no difference
			cut, inCut, err := c.joinBuckets(ctx, reader, sorted)
			rooms <- room
			mu.Lock()
			defer mu.Unlock()
			c.left.CutBuckets += cut
			c.left.CutTexts += inCut
			return err
		}
	})
}

// joinBuckets goes through the buckets of one sorted list.
func (c *Corpus) joinBuckets(ctx context.Context, r *Reader, list []uint64) (cut, inCut int, err error) {
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
					err = c.try(r, uint32(bucket[a]), uint32(bucket[b]))
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

// try joins two texts if they are near-duplicates. Where they are joined already it makes no difference.
func (c *Corpus) try(r *Reader, a, b uint32) error {
	if c.forest.Of(a) == c.forest.Of(b) {
		return nil
	}
	near, _, err := r.Near(a, b)
	if near {
		c.forest.Join(a, b)
	}
	return err
}

package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// joinShared joins near-duplicates in Broder's way.
func (c *Corpus) joinShared(ctx context.Context) error {
	part := c.options.Memory / 8
	triplets := newSorter(&c.scratch, 2*part, true)
	defer triplets.free()
	omitted := newSorter(&c.scratch, part, false)
	defer omitted.free()
	if err := c.listPairs(ctx, triplets, omitted); err != nil {
		return err
	}
	rest := common{c: c, spool: newSpool(&c.scratch, chunkSize, part)}
	defer rest.spool.free()
	if c.stride > 0 && c.left.CommonShingles > 0 {
		if err := rest.fill(ctx, omitted); err != nil {
			return err
		}
	}
	reader, counted := c.Reader(), 0
	return triplets.each(ctx, func(p pair) error {
		if counted++; counted%looksEvery == 1 {
			c.progress("counting what pairs share", counted, 0)
		}
		near, a, b := false, uint32(p.hi>>32), uint32(p.hi)
		if c.forest.Of(a) == c.forest.Of(b) {
			return nil
		}
		var err error
		if c.stride == 0 { // the sketches' own values
			near, _, err = reader.Near(a, b)
		} else {
			near, err = rest.near(a, b, p.lo)
		}
		if near {
			c.forest.Join(a, b)
		}
		return err
	})
}

// listPairs turns ⟨shingle, document⟩ into ⟨a, b, 1⟩ for each pair of texts that share a shingle, and ⟨a, shingle⟩ for the
// shingles of which no pairs are listed because too many texts have them.
func (c *Corpus) listPairs(ctx context.Context, triplets, omitted *sorter) error {
	var group []uint32 // the texts that have the shingle
	shingle, over := uint64(0), 0
	if c.options.Rule.Sketcher.Scheme().Features == sketch.Tags {
		c.surprise = make([]float32, len(c.at))
	}
	close := func() error {
		if over > 0 {
			c.left.CommonShingles++
			c.left.CommonTexts = max(c.left.CommonTexts, over)
		} else {
			slices.Sort(group)
			c.astonish(group)
			if err := c.listGroup(group, triplets); err != nil {
				return err
			}
		}
		group, over = group[:0], 0
		return nil
	}
	listed := 0
	err := c.shingles.each(ctx, func(p pair) error {
		if listed++; listed%looksEvery == 1 {
			c.progress("listing pairs that share a shingle", listed, c.all)
		}
		if p.hi != shingle {
			if err := close(); err != nil {
				return err
			}
			shingle = p.hi
		}
		document := uint32(p.lo)
		number := c.number[document]
		short := c.stride > 0 && int64(c.sizes[document]) < int64(c.options.Rule.Profile.MinShingles)
		if number == none || c.at[number] != document || short {
			return nil
		}
		switch {
		case over > 0:
			over++
			return omitted.add(uint64(number), p.hi)
		case len(group) == c.options.Common:
			over = len(group) + 1
			for _, other := range append(group, number) {
				if err := omitted.add(uint64(other), p.hi); err != nil {
					return err
				}
			}
		default:
			group = append(group, number)
		}
		return nil
	})
	c.shingles = nil
	return errors.Join(err, close())
}

// astonish adds what one element tells of the texts that have it.
func (c *Corpus) astonish(group []uint32) {
	if c.surprise == nil || len(group) == 0 {
		return
	}
	information := float32(math.Log2(float64(len(c.at)) / float64(len(group))))
	for _, number := range group {
		c.surprise[number] += information
	}
}

// listGroup lists the pairs of one group, but for those whose sizes alone keep them apart.
func (c *Corpus) listGroup(group []uint32, triplets *sorter) error {
	profile := &c.options.Rule.Profile
	bySize := c.stride > 0 && profile.Measure != rerank.Containment
	for i, a := range group {
		size := float64(c.sizes[c.at[a]])
		for _, b := range group[i+1:] {
			if other := float64(c.sizes[c.at[b]]); bySize && min(size, other)/max(size, other) < profile.Threshold {
				continue
			}
			if err := triplets.add(uint64(a)<<32|uint64(b), 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// common holds the common shingles of each text, so that no count is short of them.
type common struct {
	c     *Corpus
	spool *spool
	// ends are where each text's end, in shingles; nil where there are none.
	ends        []uint64
	first, last []uint64
	room        []byte
}

// fill takes ⟨text, shingle⟩.
func (l *common) fill(ctx context.Context, omitted *sorter) error {
	l.ends = make([]uint64, len(l.c.at))
	number, written := 0, uint64(0)
	err := omitted.each(ctx, func(p pair) error {
		for ; number < int(p.hi); number++ {
			l.ends[number] = written
		}
		var raw [8]byte
		binary.LittleEndian.PutUint64(raw[:], p.lo)
		_, err := l.spool.add(raw[:])
		written++
		return err
	})
	for ; number < len(l.ends); number++ {
		l.ends[number] = written
	}
	l.room = make([]byte, chunkSize)
	return errors.Join(err, l.spool.seal())
}

// span is where a text's common shingles are.
func (l *common) span(number uint32) (from, to uint64) {
	if l.ends == nil {
		return 0, 0
	}
	if number > 0 {
		from = l.ends[number-1]
	}
	return from, l.ends[number]
}

// near reports whether two texts that share so many shingles, not counting the common ones, are near-duplicates.
func (l *common) near(a, b uint32, shared uint64) (bool, error) {
	c := l.c
	fromA, toA := l.span(a)
	fromB, toB := l.span(b)
	is := func(shared uint64) bool {
		m, n := uint64(c.sizes[c.at[a]]), uint64(c.sizes[c.at[b]])
		of := m + n - shared
		if c.options.Rule.Profile.Measure == rerank.Containment {
			of = min(m, n)
		}
		return float64(shared)/float64(of) >= c.options.Rule.Profile.Threshold
	}
	if is(shared) || !is(shared+min(toA-fromA, toB-fromB)) {
		return is(shared), nil
	}
	var err error
	if l.first, err = l.list(l.first[:0], fromA, toA); err != nil {
		return false, err
	}
	if l.last, err = l.list(l.last[:0], fromB, toB); err != nil {
		return false, err
	}
	return is(shared + uint64(inBoth(l.first, l.last))), nil
}

// list reads some common shingles.
func (l *common) list(list []uint64, from, to uint64) ([]uint64, error) {
	for from < to {
		inChunk := chunkSize/8 - from%(chunkSize/8)
		raw, err := l.spool.read(int64(8*from), int(8*min(inChunk, to-from)), l.room)
		if err != nil {
			return list, err
		}
		for ; len(raw) >= 8; raw = raw[8:] {
			list = append(list, binary.LittleEndian.Uint64(raw))
			from++
		}
	}
	return list, nil
}

// inBoth counts what two sorted lists have in common.
func inBoth(a, b []uint64) (n int) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			n, i, j = n+1, i+1, j+1
		}
	}
	return n
}

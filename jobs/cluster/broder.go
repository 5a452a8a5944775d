package cluster

import (
	"cmp"
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
	triplets := newSorter[pair](&c.scratch, 2*part, true)
	defer triplets.free()
	omitted := newSorter[pair](&c.scratch, part, false)
	defer omitted.free()
	if err := c.listPairs(ctx, triplets, omitted); err != nil {
		return err
	}
	rest := common{c: c, records: spool{scratch: &c.scratch, limit: int(part)}}
	defer rest.records.free()
	if !c.listed() {
		if err := rest.fill(ctx, omitted); err != nil {
			return err
		}
	}
	r, counted := reader{c: c}, 0
	return triplets.each(ctx, func(p pair) error {
		if counted++; counted%looksEvery == 1 {
			c.progress("counting what pairs share", counted, 0)
		}
		a, b := uint32(p[0]>>32), uint32(p[0])
		if c.listed() { // the sketches' own values
			return r.try(a, b)
		}
		if c.forest.Of(a) == c.forest.Of(b) {
			return nil
		}
		alike, err := rest.alike(a, b, p[1])
		if err != nil || alike < c.options.Rule.Profile.Threshold {
			return err
		}
		return r.join(a, b, alike)
	})
}

// listPairs turns ⟨shingle, document⟩ into ⟨a, b, 1⟩ for each pair of texts that share a shingle, and ⟨a, shingle⟩ for the
// shingles of which no pairs are listed because too many texts have them.
func (c *Corpus) listPairs(ctx context.Context, triplets, omitted *sorter[pair]) error {
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
			c.addSurprise(group)
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
		if p[0] != shingle {
			if err := close(); err != nil {
				return err
			}
			shingle = p[0]
		}
		document := uint32(p[1])
		number := c.number[document]
		if number == none || c.at[number] != document {
			return nil
		}
		switch {
		case over > 0:
			over++
			return omitted.add(pair{uint64(number), p[0]})
		case len(group) == c.options.Common:
			over = len(group) + 1
			for _, other := range append(group, number) {
				if err := omitted.add(pair{uint64(other), p[0]}); err != nil {
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

// addSurprise adds to each text of a group how improbable the element is that they share.
func (c *Corpus) addSurprise(group []uint32) {
	if c.surprise == nil || len(group) == 0 {
		return
	}
	information := float32(math.Log2(float64(len(c.at)) / float64(len(group))))
	for _, number := range group {
		c.surprise[number] += information
	}
}

// listGroup lists the pairs of one group, but for those whose sizes alone keep them apart.
func (c *Corpus) listGroup(group []uint32, triplets *sorter[pair]) error {
	profile := &c.options.Rule.Profile
	bySize := !c.listed() && profile.Measure != rerank.Containment
	for i, a := range group {
		size := float64(c.sizes[c.at[a]])
		for _, b := range group[i+1:] {
			if other := float64(c.sizes[c.at[b]]); bySize && min(size, other)/max(size, other) < profile.Threshold {
				continue
			}
			if err := triplets.add(pair{uint64(a)<<32 | uint64(b), 1}); err != nil {
				return err
			}
		}
	}
	return nil
}

// common holds the common shingles of each text, so that no count is short of them.
type common struct {
	c       *Corpus
	records spool
	rooms   [2][]byte
}

// fill takes ⟨text, shingle⟩.
func (l *common) fill(ctx context.Context, omitted *sorter[pair]) error {
	var record []byte
	err := omitted.each(ctx, func(p pair) (err error) {
		for err == nil && l.records.records < int(p[0]) {
			err, record = l.records.add(record), record[:0]
		}
		record = binary.BigEndian.AppendUint64(record, p[1])
		return err
	})
	for err == nil && l.records.records < len(l.c.at) {
		err, record = l.records.add(record), record[:0]
	}
	return cmp.Or(err, l.records.seal())
}

// alike returns the rule's exact measure of two texts. shared is how many shingles they share besides the common ones. A value below the threshold
// may leave out the common ones.
func (l *common) alike(a, b uint32, shared uint64) (float64, error) {
	c := l.c
	share := func(shared uint64) float64 {
		m, n := uint64(c.sizes[c.at[a]]), uint64(c.sizes[c.at[b]])
		of := m + n - shared
		if c.options.Rule.Profile.Measure == rerank.Containment {
			of = min(m, n)
		}
		return float64(shared) / float64(of)
	}
	sets := [2]uint32{a, b}
	most := uint64(math.MaxUint64)
	for _, number := range sets {
		most = min(most, uint64(l.records.start(int(number)+1)-l.records.start(int(number)))/8)
	}
	if most == 0 || share(shared+most) < c.options.Rule.Profile.Threshold {
		return share(shared), nil
	}
	for i, number := range sets {
		var err error
		if l.rooms[i], err = l.records.read(int(number), int(number)+1, l.rooms[i]); err != nil {
			return 0, err
		}
	}
	return share(shared + inBoth(values(l.rooms[0]), values(l.rooms[1]))), nil
}

// inBoth counts what two sorted lists have in common.
func inBoth(a, b []uint64) (n uint64) {
	for _, x := range a {
		if _, both := slices.BinarySearch(b, x); both {
			n++
		}
	}
	return n
}

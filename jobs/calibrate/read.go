package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// storedShare is which share of the documents of a sample must hold their bands for these to be gone by.
const storedShare = 0.95

// read reads the documents, and decides how candidates are found.
func (c *calibration) read(ctx context.Context) error {
	r := &c.report
	err := c.store.Scan(ctx, c.index, c.rule, adapters.Selection{Limit: 1, Brief: true}, func(p adapters.Page) error {
		r.Documents = p.Total
		return nil
	})
	if err != nil {
		return err
	}
	if r.Documents > c.options.Documents && c.rule.Bands > 0 {
		held, err := c.scan(ctx, adapters.Selection{Random: true, Limit: c.options.Sample})
		if err != nil {
			return err
		}
		if float64(held) >= storedShare*float64(len(c.docs)) && len(c.docs) > 0 {
			r.Way, r.Bands, r.Rows = ByStored, c.rule.Bands, c.rule.Rows
			c.takeSample()
			return nil
		}
		r.Notes = append(r.Notes, "Bands are not stored with all documents yet (run: sidecar reindex), so they were not gone by.")
		c.docs, r.Read, r.Textless = nil, 0, 0
	}
	selected := adapters.Selection{}
	if r.Documents > c.options.Documents {
		selected = adapters.Selection{Random: true, Limit: c.options.Documents}
	}
	if _, err := c.scan(ctx, selected); err != nil {
		return err
	}
	r.Documents = max(r.Documents, r.Read)
	r.Whole = !selected.Random
	c.takeSample()
	return nil
}

// scan keeps the sketches of the documents selected, and returns how many of these have their bands stored.
func (c *calibration) scan(ctx context.Context, s adapters.Selection) (held int, err error) {
	seen := map[string]bool{}
	err = c.store.Scan(ctx, c.index, c.rule, s, func(p adapters.Page) error {
		for _, stored := range p.Documents {
			if seen[stored.ID] { // a scan that was taken up again
				continue
			}
			seen[stored.ID] = true
			c.report.Read++
			computed, _ := c.rule.SketchOf(stored.Source)
			if computed == nil {
				c.report.Textless++
				continue
			}
			d := document{id: stored.ID, rank: c.rank(stored.ID), sketch: computed.Sketch}
			if c.rule.Bands > 0 {
				d.bands = c.rule.BandKeys(&computed.Sketch)
				if slices.Equal(d.bands, rule.OursOf(stored.Source).Bands) {
					held++
				}
			}
			c.docs = append(c.docs, d)
		}
		if c.options.Progress != nil {
			c.options.Progress.Read(c.report.Read, p.Total)
		}
		return ctx.Err()
	})
	return held, err
}

// rank returns a document's place in the order of all choices: a hash under the seed, whatever the order of reading.
func (c *calibration) rank(id string) uint64 {
	h := xxhash.NewWithSeed(c.options.Seed)
	_, _ = h.WriteString(id) // which never fails
	return h.Sum64()
}

// takeSample orders the documents and takes the sample: the first of them.
func (c *calibration) takeSample() {
	slices.SortFunc(c.docs, func(a, b document) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id)) })
	c.report.Sample = min(c.options.Sample, len(c.docs))
	var shingles []uint32
	for _, d := range c.docs[:c.report.Sample] {
		shingles = append(shingles, d.sketch.Shingles)
	}
	c.precision = NewPrecision(c.rule.Sketcher.Scheme(), shingles)
}

const (
	// lookedUp is how many documents are looked up in one request.
	lookedUp = 16
	// maxLooked is how many documents all look-ups may read: where bands bring more together, fewer are looked up.
	maxLooked = 200_000
	// maxOne is how many one request may find: as many as engines grant in one. To go by a part of what there is would miss partners.
	maxOne = 10_000
)

// lookUp compares the documents of the sample with those of the whole index that share a stored band.
func (c *calibration) lookUp(ctx context.Context) error {
	sample := c.docs
	for i := range sample {
		c.units = append(c.units, unit{first: i, size: 1, judged: true})
	}
	places := map[string]int{}
	for i, d := range sample {
		places[d.id] = i
	}
	for at := 0; at < len(sample); at += lookedUp {
		if c.looked >= maxLooked {
			for i := at; i < len(sample); i++ {
				c.units[i].judged = false
			}
			c.report.Sample = at
			c.report.Notes = append(c.report.Notes, fmt.Sprintf("Bands bring so many documents together that %d of the sample were looked up, "+
				"not %d: more rows bring fewer together (bands: BxR).", at, len(sample)))
			break
		}
		to := min(at+lookedUp, len(sample))
		if err := c.lookUpSome(ctx, at, to, places); err != nil {
			return err
		}
		if c.options.Progress != nil {
			c.options.Progress.Read(to, len(sample))
		}
	}
	return nil
}

// lookUpSome looks up the documents of the sample from one place to another.
func (c *calibration) lookUpSome(ctx context.Context, from, to int, places map[string]int) error {
	byKey := map[int64][]int{}
	var keys []int64
	for i := from; i < to; i++ {
		for _, key := range c.docs[i].bands {
			byKey[key] = append(byKey[key], i)
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var found []adapters.Stored
	s := adapters.Selection{Bands: slices.Compact(keys), Brief: true, Limit: maxOne}
	err := c.store.Scan(ctx, c.index, c.rule, s, func(p adapters.Page) error {
		found = append(found, p.Documents...)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	c.looked += len(found)
	if len(found) >= maxOne && to-from > 1 { // there may be more: each half has fewer
		middle := (from + to) / 2
		if err := c.lookUpSome(ctx, from, middle, places); err != nil {
			return err
		}
		return c.lookUpSome(ctx, middle, to, places)
	}
	c.report.Capped = c.report.Capped || len(found) >= maxOne
	seen := map[[2]int]bool{}
	for _, stored := range found {
		c.compareFound(stored, byKey, places, seen)
	}
	return nil
}

// compareFound compares a document that was found by a stored band with those of the sample that have the band too.
func (c *calibration) compareFound(stored adapters.Stored, byKey map[int64][]int, places map[string]int, seen map[[2]int]bool) {
	ours := rule.OursOf(stored.Source)
	decoded := c.rule.Decode(ours.Sketch)
	if decoded == nil {
		return
	}
	place, known := places[stored.ID]
	for _, key := range ours.Bands {
		for _, i := range byKey[key] {
			if known && place == i {
				continue
			}
			if !known {
				place, known = len(c.docs), true
				places[stored.ID] = place
				c.docs = append(c.docs, document{id: stored.ID, rank: c.rank(stored.ID), sketch: *decoded})
				c.units = append(c.units, unit{first: place, size: 1})
			}
			if seen[[2]int{i, place}] {
				continue
			}
			seen[[2]int{i, place}] = true
			value := c.value(&c.docs[i].sketch, &c.docs[place].sketch)
			if place > i { // else the other one of the sample was looked up too, or will be
				c.report.Compared++
				c.countCandidate(i, place, value)
			}
			c.countPartner(i, place, value)
		}
	}
}

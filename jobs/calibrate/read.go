package calibrate

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/adapters"
)

// storedShare is which share of the documents of a sample must hold their bands for these to be gone by.
const storedShare = 0.95

var errEnough = errors.New("enough documents")

// read reads the documents, and decides how candidates are found.
func (c *calibration) read(ctx context.Context) error {
	r := &c.report
	err := c.store.Scan(ctx, c.index, c.rule, adapters.Selection{Limit: 1, Brief: true}, func(p adapters.Page) error {
		r.Documents = p.Total
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if r.Documents > c.options.Documents && c.rule.Bands > 0 {
		held, err := c.scan(ctx, adapters.Selection{Random: true, Limit: c.options.Sample})
		if err != nil {
			return err
		}
		if float64(held) >= storedShare*float64(len(c.docs)) && len(c.docs) > 0 {
			r.Way, r.Bands, r.Rows = ByStored, c.rule.Bands, c.rule.Rows
			c.choose()
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
	c.choose()
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
				if slices.Equal(d.bands, adapters.OursOf(stored.Source).Bands) {
					held++
				}
			}
			c.docs = append(c.docs, d)
		}
		if c.options.Progress != nil {
			c.options.Progress(c.report.Read, p.Total)
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

// choose orders the documents and takes the sample: the first of them.
func (c *calibration) choose() {
	slices.SortFunc(c.docs, func(a, b document) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id)) })
	c.report.Sample = min(c.options.Sample, len(c.docs))
}

// lookedUp is how many documents are looked up in one request.
const lookedUp = 16

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
		batch := sample[at:min(at+lookedUp, len(sample))]
		byKey := map[int64][]int{}
		var keys []int64
		for i, d := range batch {
			for _, key := range d.bands {
				byKey[key] = append(byKey[key], at+i)
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		seen := map[[2]int]bool{}
		s := adapters.Selection{Bands: slices.Compact(keys), Brief: true, Limit: lookedUp * maxBucket}
		err := c.store.Scan(ctx, c.index, c.rule, s, func(p adapters.Page) error {
			for _, stored := range p.Documents {
				c.meet(stored, byKey, places, seen)
			}
			c.report.Capped = c.report.Capped || p.Total > lookedUp*maxBucket
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		if c.options.Progress != nil {
			c.options.Progress(at+len(batch), len(sample))
		}
	}
	return nil
}

// meet compares a document that was found by a stored band with those of the sample that have the band too.
func (c *calibration) meet(stored adapters.Stored, byKey map[int64][]int, places map[string]int, seen map[[2]int]bool) {
	ours := adapters.OursOf(stored.Source)
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
			f := c.reach(c.value(&c.docs[i].sketch, &c.docs[place].sketch))
			if place > i { // else the other one of the sample was looked up too, or will be
				c.report.Compared++
				c.tell(i, place, f)
			}
			c.partner(i, place, f.value)
		}
	}
}

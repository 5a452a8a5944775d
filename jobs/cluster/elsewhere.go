package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/neardup/sidecar/sketch"
)

// Seeker finds pairs of near-duplicates, or of candidates, among texts. The Fingerprint of each sketch is the text's number, so
// that the order of the numbers is that of the true fingerprints; a sketch is good until the next one comes. The pairs are of
// numbers. It may go through the texts more than once.
type Seeker func(ctx context.Context, texts iter.Seq2[*sketch.Sketch, error]) (iter.Seq2[[2]uint64, error], error)

// ClusterBy is [Corpus.Cluster] by Bands where the pairs are found elsewhere, by the rule of the package's description. What the
// seeker finds is compared again before it is joined. It gets the texts alone that are long enough to be compared.
func (c *Corpus) ClusterBy(ctx context.Context, seek Seeker) error {
	if c.options.Algorithm != Bands {
		return fmt.Errorf("algorithm %s: only the pairs of bands can be found elsewhere", c.options.Algorithm)
	}
	if c.masks != nil {
		return errors.New("ready values have no bands that could be looked for elsewhere")
	}
	if err := c.Number(ctx); err != nil {
		return err
	}
	pairs, err := seek(ctx, c.texts(ctx))
	if err != nil {
		return err
	}
	r := reader{c: c}
	for p, err := range pairs {
		if err == nil && max(p[0], p[1]) >= uint64(len(c.at)) {
			err = fmt.Errorf("a pair names the text %d, of %d", max(p[0], p[1]), len(c.at))
		}
		if err == nil && p[0] != p[1] {
			err = r.try(uint32(min(p[0], p[1])), uint32(max(p[0], p[1])))
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(ctx.Err(), c.decide(ctx))
}

// Room returns how many texts there are, once they are numbered, and how much of [Options.Memory] the search for pairs may take, here or in a [Seeker].
func (c *Corpus) Room() (texts int, memory int64) {
	if c.records.stored > 0 {
		return len(c.at), c.options.Memory / 2
	}
	return len(c.at), c.options.Memory / 4
}

// texts visits the texts that are long enough to be compared, from the caller's goroutine, in no order.
func (c *Corpus) texts(ctx context.Context) iter.Seq2[*sketch.Sketch, error] {
	return func(yield func(*sketch.Sketch, error) bool) {
		r := reader{c: c}
		for chunk := range c.chunks() {
			texts, err := r.sketchesIn(chunk)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				yield(nil, err)
				return
			}
			for number, s := range texts {
				s.Fingerprint = uint64(number)
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}

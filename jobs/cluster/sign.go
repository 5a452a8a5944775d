package cluster

import (
	"encoding/binary"
	"math/bits"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// signer tells from 128 bits of two sketches that they can't agree at the threshold, so that their records need not be read. Most candidates of a large corpus
// share their band by chance: a band of 3 rows has 24 bits. No pair is lost: each bit belongs to a position, and two that differ are of positions that
// differ.
//
// The bits are the lowest bit of each position; where there is room left, the bit above it of the first positions.
type signer struct {
	// positions is how many a sketch has, in whole groups of 8; 0 leaves all to the sketches.
	positions int
	// most is how many positions of near-duplicates may differ.
	most int
}

// signer returns that of the corpus' scheme.
func (c *Corpus) signer() signer {
	scheme, profile := c.options.Rule.Sketcher.Scheme(), c.options.Rule.Profile
	k := scheme.Positions
	positional := scheme.Family == sketch.FastSimilarity || scheme.Family == sketch.Permutations
	if !positional || scheme.Features == sketch.Vectors || scheme.Bits != 8 || k < 64 || k%8 != 0 || profile.Measure == rerank.Containment {
		return signer{}
	}
	a := sketch.Sketch{Form: sketch.Positions, Bits: 8, Shingles: 1, Payload: make([]byte, k)}
	b := a
	b.Payload = make([]byte, k)
	s := signer{positions: k}
	for ; s.most < k; s.most++ {
		b.Payload[s.most] = 1
		if agreement, _ := a.Agreement(&b); agreement < profile.Threshold {
			break
		}
	}
	return s
}

// sign returns the bits of a sketch.
func (g signer) sign(s *sketch.Sketch) (low, high uint64) {
	if g.positions == 0 || len(s.Payload) != g.positions {
		return 0, 0
	}
	var sum [2]uint64
	for group := range min(16, g.positions/4) { // of 8 positions
		at, bit := group, uint(0)
		if groups := g.positions / 8; group >= groups {
			at, bit = group-groups, 1
		}
		word := binary.LittleEndian.Uint64(s.Payload[8*at:]) >> bit & 0x0101010101010101
		sum[group/8] |= word * 0x0102040810204080 >> 56 << (8 * (group % 8))
	}
	return sum[0], sum[1]
}

// apart reports whether two texts can't be near-duplicates.
func (g signer) apart(a, b *entry) bool {
	low, high := a[1]^b[1], a[2]^b[2]
	differ := bits.OnesCount64(low) + bits.OnesCount64(high)
	if g.positions < 128 { // a position with two bits counts once
		differ -= bits.OnesCount64(low & (high >> (g.positions % 64)))
	}
	return g.positions > 0 && differ > g.most
}

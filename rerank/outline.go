package rerank

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/neardup/sidecar/sketch"
)

// outline is a quick first comparison of sketches: the two lowest bits of each position. Positions that differ in these bits differ, and of
// four that differ three do so in these bits. So two unrelated sketches are seen to differ in about 96 positions of 128, far more than
// near-duplicates may.
type outline struct {
	low, high   [outlined / 64]uint64 // the lowest and the next bit of each position; 0 for other forms of sketches
	fingerprint uint64
}

// outlined is how many positions fit into an outline: as many as a sketch has by default.
const outlined = 128

// outlines reports whether a sketch has an outline.
func outlines(s *sketch.Sketch) bool {
	return s.Form == sketch.Positions && s.Bits == 8 && len(s.Payload) <= outlined
}

// outlineOf returns a sketch's outline.
func outlineOf(s *sketch.Sketch) outline {
	o := outline{fingerprint: s.Fingerprint}
	if !outlines(s) {
		return o
	}
	var payload [outlined]byte
	copy(payload[:], s.Payload)
	for i := 0; i < outlined; i += 8 {
		eight := binary.LittleEndian.Uint64(payload[i:])
		o.low[i/64] |= lowest(eight) << (i % 64)
		o.high[i/64] |= lowest(eight>>1) << (i % 64)
	}
	return o
}

// lowest returns the lowest bits of eight bytes.
func lowest(eight uint64) uint64 { return (eight & 0x0101010101010101) * 0x0102040810204080 >> 56 }

// probe is a hit that is compared with many others.
type probe struct {
	outline
	most int // an upper bound of the positions in which near-duplicates by the hit's profile differ; without one, all
}

func newProbe(hit *Hit) probe {
	p := probe{outline: outlineOf(hit.Sketch), most: outlined}
	if outlines(hit.Sketch) && hit.profile().Measure != Containment && hit.profile().Vector.Combine != Either {
		k := len(hit.Sketch.Payload)
		p.most = k - leastEqual(k, hit.profile().Threshold)
	}
	return p
}

// leastEqual returns how many of k positions of 8 bits must be equal for the agreement to reach a threshold. The agreement of e equal
// positions is (256e - k) / 255k: see [sketch.Sketch.Agreement].
func leastEqual(k int, threshold float64) int {
	if !(threshold > 0) {
		return 0
	}
	return int(math.Ceil((255*float64(k)*threshold+float64(k))/256 - 1e-6))
}

// rulesOut reports whether the outlines show that the hit does not fold into another one. It is called for each pair, and is small enough to be
// inlined: with a call for each pair a page behind 700 hits takes a quarter longer.
func (p *probe) rulesOut(o *outline) bool {
	differ := bits.OnesCount64((p.low[0] ^ o.low[0]) | (p.high[0] ^ o.high[0]))
	if differ <= p.most {
		differ += bits.OnesCount64((p.low[1] ^ o.low[1]) | (p.high[1] ^ o.high[1]))
	}
	return differ > p.most && p.fingerprint != o.fingerprint
}

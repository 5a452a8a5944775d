package unseen

import (
	"math"
	"math/bits"
)

// filter is a Bloom filter: a set of 64-bit hashes that finds every key that was added, and, by chance, a few that were not. (Bloom: "Space/time
// trade-offs in hash coding with allowable errors", CACM 1970.)
type filter struct {
	bits []uint64
	// probes is how many bits a key sets.
	probes int
}

// sizeOf returns how many words of 64 bits a filter must have, and how many bits a key must set, so that it finds a share rate of other keys once it holds this number of keys.
func sizeOf(keys, rate float64) (words uint64, probes int) {
	perKey := -math.Log2(rate)
	return uint64(math.Ceil(keys * perKey / math.Ln2 / 64)), max(1, int(math.Round(perKey)))
}

// has reports whether the key was added.
//
// The places of a key are an arithmetic sequence that begins with the key and has the key with its halves exchanged for its step: double hashing (Kirsch
// and Mitzenmacher: "Less hashing, same performance", 2006).
func (f *filter) has(key uint64) bool {
	step, size := bits.RotateLeft64(key, 32), uint64(len(f.bits))*64
	for range f.probes {
		at, _ := bits.Mul64(key, size)
		if f.bits[at/64]&(1<<(at%64)) == 0 {
			return false
		}
		key += step
	}
	return true
}

// add adds a key.
func (f *filter) add(key uint64) {
	step, size := bits.RotateLeft64(key, 32), uint64(len(f.bits))*64
	for range f.probes {
		at, _ := bits.Mul64(key, size)
		f.bits[at/64] |= 1 << (at % 64)
		key += step
	}
}

// rate returns the share of keys that were not added and are found all the same.
func (f *filter) rate() float64 {
	ones := 0
	for _, word := range f.bits {
		ones += bits.OnesCount64(word)
	}
	return math.Pow(float64(ones)/float64(64*len(f.bits)), float64(f.probes))
}

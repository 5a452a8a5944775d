package flink

import "math/bits"

// filter says which keys come at least twice. It never misses such a key. It says so of a few others as well: of fewer the
// more room it has. It is two Bloom filters (1970), of the keys that came and of those that came again, each cut into blocks of
// 64 bytes, so that a look-up costs one read of the memory (Putze, Sanders, Singler 2007).
type filter struct{ once, twice []block }

type block [8]uint64

const (
	blockBytes = 64
	// probes is how many bits of its block a key sets. Of the keys that come once, 1 in 350 is kept where there are 16 bits for a
	// key, 1 in 60 with 10, 1 in 7 with 5 (TestFilter).
	probes = 4
	// spread makes the high bits of a key, which choose its block, depend on all of it (Knuth's multiplicative hash). The low
	// 32 bits are those of a hash already.
	spread = 0x9e3779b97f4a7c15
	// leastBlocks is how large each part is at least.
	leastBlocks = 1 << 6
)

// newFilter returns a filter that takes this many bytes. Most keys come once, so three quarters of the bytes are for once.
func newFilter(memory int64) *filter {
	n := max(memory/blockBytes/4, leastBlocks)
	return &filter{once: make([]block, 3*n), twice: make([]block, n)}
}

// add notes that a key comes.
func (f *filter) add(key uint64) {
	if set(f.once, key) {
		set(f.twice, key)
	}
}

// set sets the bits of a key and reports whether all of them were set.
func set(blocks []block, key uint64) bool {
	key *= spread
	at, _ := bits.Mul64(key, uint64(len(blocks)))
	b, had := &blocks[at], uint64(1)
	for range probes {
		word, bit := key>>6&7, key&63
		had &= b[word] >> bit
		b[word] |= 1 << bit
		key >>= 9
	}
	return had == 1
}

// again reports whether a key comes at least twice.
func (f *filter) again(key uint64) bool {
	key *= spread
	at, _ := bits.Mul64(key, uint64(len(f.twice)))
	b, has := &f.twice[at], uint64(1)
	for range probes {
		has &= b[key>>6&7] >> (key & 63)
		key >>= 9
	}
	return has == 1
}

package cluster

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// mostTables is how many tables ready values are looked up in at most.
const mostTables = 100

// masksFor returns masks of 64 bits such that any two values with a share of equal bits of at least the threshold are equal under
// one of them: of m blocks, values that differ in d bits have m-d that are equal, whichever these are (Manku, Jain, Das Sarma:
// "Detecting Near-Duplicates for Web Crawling", WWW 2007). More blocks make longer masks, under which fewer others meet, and more
// of them.
func masksFor(threshold float64) []uint64 {
	differ := int(math.Floor(64*(1-threshold) + 1e-9))
	best := []uint64{0} // all values in one bucket
	for blocks := differ + 1; blocks <= 64; blocks++ {
		masks := choose(blocks, blocks-differ)
		if masks == nil {
			break
		}
		best = masks
		if bits.OnesCount64(masks[0]) >= 32 {
			break
		}
	}
	return best
}

// choose returns the masks of all choices of some of the blocks that 64 bits are cut into, or nil where they are too many.
func choose(blocks, chosen int) (masks []uint64) {
	var pick func(from, left int, mask uint64) bool
	pick = func(from, left int, mask uint64) bool {
		if left == 0 {
			masks = append(masks, mask)
			return len(masks) <= mostTables
		}
		for block := from; block+left <= blocks; block++ {
			start, end := 64*block/blocks, 64*(block+1)/blocks
			if !pick(block+1, left-1, mask|(1<<(end-start)-1)<<start) {
				return false
			}
		}
		return true
	}
	if !pick(0, chosen, 0) {
		return nil
	}
	return masks
}

// readyKeys appends the keys of a ready value, as [Corpus.keys] does.
func (c *Corpus) readyKeys(room []uint64, payload []byte, tables int) []uint64 {
	value := binary.BigEndian.Uint64(payload)
	for i, mask := range c.masks[:tables] {
		key := (value&mask + uint64(i)) * 0x9e3779b97f4a7c15
		key = (key ^ key>>29) * 0xbf58476d1ce4e5b9
		room = append(room, key^key>>32)
	}
	return room
}

package sketch

import "math/bits"

// rounds is how often Fast Similarity Sketching throws every shingle at a random position before the positions that are still
// empty take a minimum of their own. The paper proves its bound for k rounds of throwing; the minimum of one's own makes any
// number correct, and beyond a dozen rounds nothing is gained.
const rounds = 12

const golden = 0x9e3779b97f4a7c15 // 2^64 / golden ratio: multiples of it are evenly spread

// positions fills slots with the minima of the shingle set under the family. Slots stay comparable across sets: the slot of a
// union is the smaller of the two slots, which is what makes the share of equal slots an unbiased estimate of resemblance.
func (s *Sketcher) positions(slots []uint64, shingles []uint64) {
	if s.scheme.Family == Permutations {
		permutations(slots, shingles)
		return
	}
	fastSimilarity(slots, shingles)
}

// permutations keeps for every position the minimum of an independent hash over all shingles: "row hashing" in the one-pass form
// of the Stanford slides.
func permutations(slots []uint64, shingles []uint64) {
	for i := range slots {
		least, key := ^uint64(0), mix(uint64(i+1)*golden)
		for _, x := range shingles {
			least = min(least, mix(x^key))
		}
		slots[i] = least
	}
}

// fastSimilarity throws every shingle at one position in each round and keeps the least ⟨round, rank⟩ that each position saw. The
// round stands in the high byte, so a later round never displaces an earlier one and the loop may end as soon as every
// position is taken.
func fastSimilarity(slots []uint64, shingles []uint64) {
	const untaken = ^uint64(0)
	for i := range slots {
		slots[i] = untaken
	}
	free, k := len(slots), uint64(len(slots))
	for round := uint64(0); round < rounds && free > 0; round++ {
		for _, x := range shingles {
			position, rank := bits.Mul64(mix(x+round*golden), k)
			if slots[position] == untaken {
				free--
			}
			slots[position] = min(slots[position], round<<56|rank>>8)
		}
	}
	if free == 0 {
		return
	}
	for i := range slots {
		if slots[i] != untaken {
			continue
		}
		key := mix(uint64(i+1) * golden)
		for _, x := range shingles {
			slots[i] = min(slots[i], rounds<<56|mix(x^key)>>8)
		}
	}
}

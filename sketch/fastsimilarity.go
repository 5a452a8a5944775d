package sketch

import "slices"

// Fast Similarity Sketching throws every shingle at one position in each round. A slot holds the least ⟨round, rank⟩ that its position
// saw, with the round in the high byte: a later round never displaces an earlier one, so it may be left out where every
// position is taken, and the slot of a union is the lesser of two slots, which makes the share of equal slots an unbiased
// estimate of resemblance. The paper goes on for k rounds and then lets each position choose; here the positions that are still
// free after a dozen rounds take the least of a hash of their own over all shingles. That is min-hash for those few, so it is
// unbiased as well, and its cost is bounded.
const rounds = 12

const untaken = ^uint64(0)

var (
	// roundKeys are odd numbers by which round r multiplies; round 0 takes the shingle's hash as it is.
	roundKeys [rounds]uint64
	// ownKeys are odd numbers by which the position's own hash multiplies.
	ownKeys [maxPositions]uint64
)

func init() {
	for r := range roundKeys {
		roundKeys[r] = mix(uint64(r+1)*golden) | 1
	}
	for i := range ownKeys {
		ownKeys[i] = mix(uint64(i+1)*base) | 1
	}
}

// throw returns where a shingle falls in a round, and the slot's value there. The position comes from the high half of the hash and
// the rank is what is left when the round takes the high byte; within one position ranks are as evenly spread as hashes are.
func throw(x, round, positions uint64) (position, slot uint64) {
	return (x >> 32) * positions >> 32, round<<56 | x&(1<<56-1)
}

// spread prepares a hash to be multiplied: its high bits reach the low ones, from which a product's high bits are made.
func spread(x uint64) uint64 { return x ^ x>>29 }

// slotArray has room for the slots of any scheme; its size lets the compiler leave out bounds checks.
type slotArray struct {
	slots [maxPositions]uint64
	// spread holds the hashes of the set, each spread.
	spread []uint64
}

// fill fills the slots with the minima of a set of distinct, well mixed hashes.
func (a *slotArray) fill(positions int, set []uint64) {
	slots := a.slots[:positions]
	for i := range slots {
		slots[i] = untaken
	}
	if cap(a.spread) < len(set) {
		a.spread = make([]uint64, len(set)+len(set)/2)
	}
	all := a.spread[:len(set)]
	for i, x := range set {
		position, slot := throw(x, 0, uint64(positions))
		position &= maxPositions - 1
		a.slots[position] = min(a.slots[position], slot)
		all[i] = spread(x)
	}
	for round := uint64(1); round < rounds && slices.Contains(slots, untaken); round++ {
		throwAll(&a.slots, all, roundKeys[round], round<<56, uint64(positions))
	}
	for i, slot := range slots {
		if slot == untaken {
			for _, x := range all {
				slot = min(slot, x*ownKeys[i])
			}
			slots[i] = rounds<<56 | slot>>8
		}
	}
}

// throwAll tries every throw of one round. It is a function of its own, never inlined, so that all it needs stays in registers.
//
//go:noinline
func throwAll(slots *[maxPositions]uint64, all []uint64, key, round, k uint64) {
	for _, x := range all {
		y := x * key
		slot := &slots[y>>32*k>>32&(maxPositions-1)]
		*slot = min(*slot, round|y&(1<<56-1))
	}
}

package sketch

import "slices"

// Fast Similarity Sketching throws every shingle at one position in each round. A slot keeps the least ⟨round, rank⟩ of its position,
// with the round in the high byte. A later round never displaces an earlier one, so rounds end once every position is taken. The slot
// of a union is the lesser of two slots, so the share of equal slots is an unbiased estimate of resemblance. The paper has k rounds,
// and then each position chooses a shingle. Here there are twelve; a position that is still free takes the least of a separate hash
// over all shingles. That is min-hash for those few, so it is unbiased too, and its cost is bounded.
const rounds = 12

const untaken = ^uint64(0)

var (
	// roundKeys are odd: round r multiplies by one. Round 0 takes the shingle's hash unchanged.
	roundKeys [rounds]uint64
	// freeKeys are odd: the hash of a free position multiplies by one.
	freeKeys [maxPositions]uint64
)

func init() {
	for r := range roundKeys {
		roundKeys[r] = mix(uint64(r+1)*golden) | 1
	}
	for i := range freeKeys {
		freeKeys[i] = mix(uint64(i+1)*base) | 1
	}
}

// throw returns the position of a shingle in a round, and the slot's value there. The position is computed from the high half of the hash.
// The rank is the hash without its high byte, which holds the round; within one position ranks are as evenly spread as hashes are.
func throw(x, round, positions uint64) (position, slot uint64) {
	return (x >> 32) * positions >> 32, round<<56 | x&(1<<56-1)
}

// spread prepares a hash to be multiplied: its high bits reach the low ones, from which a product's high bits are made.
func spread(x uint64) uint64 { return x ^ x>>29 }

// slotArray has room for the slots of any scheme; its size lets the compiler leave out bounds checks.
type slotArray struct {
	slots [maxPositions]uint64
	// spread has the hashes of the set, each spread.
	spread []uint64
	// hits has the throws of one round at open positions.
	hits [hitsMost]uint64
}

const (
	// few is the number of shingles up to which every throw of a round is made: to list some of them costs more than it saves.
	few = 64
	// hitsMost is the same for large sets, which leave hardly any position open. It is a power of two.
	hitsMost = 1024
)

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
		if len(all) <= few || len(all) > hitsMost {
			throwAll(&a.slots, all, roundKeys[round], round<<56, uint64(positions))
		} else {
			a.throwOpen(all, round, uint64(positions))
		}
	}
	for i, slot := range slots {
		if slot == untaken {
			for _, x := range all {
				slot = min(slot, x*freeKeys[i])
			}
			slots[i] = rounds<<56 | slot>>8
		}
	}
}

// throwAll makes every throw of one round. It is never inlined, so that all its variables stay in registers.
//
//go:noinline
func throwAll(slots *[maxPositions]uint64, all []uint64, key, round, k uint64) {
	for _, x := range all {
		y := x * key
		slot := &slots[y>>32*k>>32&(maxPositions-1)]
		*slot = min(*slot, round|y&(1<<56-1))
	}
}

// throwOpen does what throwAll does. It first lists the throws at open positions, without a branch, because nearly all others miss.
//
//go:noinline
func (a *slotArray) throwOpen(all []uint64, round, k uint64) {
	slots, hits, key, n := &a.slots, &a.hits, roundKeys[round], 0
	for _, x := range all {
		y := x * key
		hits[n&(hitsMost-1)] = y
		n += int(slots[y>>32*k>>32&(maxPositions-1)] >> 63) // 1 if open
	}
	for _, y := range hits[:n] {
		position, slot := throw(y, round, k)
		position &= maxPositions - 1
		slots[position] = min(slots[position], slot)
	}
}

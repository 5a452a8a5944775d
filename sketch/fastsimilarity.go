package sketch

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

// fastSimilarity fills slots with the minima of a set of distinct, well mixed hashes. This is the plain form, the oracle of
// [slotArray.fill].
func fastSimilarity(slots []uint64, set []uint64) {
	for i := range slots {
		slots[i] = untaken
	}
	for round := range uint64(rounds) {
		for _, x := range set {
			if round > 0 {
				x = spread(x) * roundKeys[round]
			}
			position, slot := throw(x, round, uint64(len(slots)))
			slots[position] = min(slots[position], slot)
		}
	}
	for i, slot := range slots {
		if slot == untaken {
			for _, x := range set {
				slots[i] = min(slots[i], rounds<<56|spread(x)*ownKeys[i]>>8)
			}
		}
	}
}

// slotArray has room for the slots of any scheme; its size lets the compiler leave out bounds checks.
type slotArray struct {
	slots [maxPositions]uint64
	// spread holds the hashes of the set, each spread.
	spread []uint64
	// late holds the throws of one round that fall on open positions.
	late []uint64
	// at holds the positions that no throw has reached.
	at [maxPositions]uint16
}

// few is the number of shingles up to which every throw of every round is tried: to find out which positions are open costs more
// than it saves.
const few = 64

// fill does what [fastSimilarity] does, at about a third of its cost.
func (a *slotArray) fill(positions int, set []uint64) {
	slots := a.slots[:positions]
	for i := range slots {
		slots[i] = untaken
	}
	if cap(a.spread) < len(set) {
		a.spread = make([]uint64, len(set)+len(set)/2)
		a.late = make([]uint64, len(set)+len(set)/2)
	}
	a.fillFirst(uint64(positions), set)
	all := a.spread[:len(set)]
	free := 1
	if len(set) <= few {
		a.fillAll(uint64(positions), all)
	} else if free = a.countOpen(positions); free > 0 {
		free = a.fillOpen(uint64(positions), free, all)
	}
	if free > 0 {
		a.fillOwn(positions, all)
	}
}

// fillFirst makes the throws of the first round and spreads the hashes for the next.
func (a *slotArray) fillFirst(k uint64, set []uint64) {
	slots, all := &a.slots, a.spread[:len(set)]
	for i, x := range set {
		position, slot := throw(x, 0, k)
		position &= maxPositions - 1
		slots[position] = min(slots[position], slot)
		all[i] = spread(x)
	}
}

// fillAll tries every throw of the rounds after the first.
func (a *slotArray) fillAll(k uint64, all []uint64) {
	for round := uint64(1); round < rounds; round++ {
		throwAll(&a.slots, all, roundKeys[round], round<<56, k)
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

// countOpen returns how many positions are still untaken. Of a slot that is taken the round does not reach up to the top bit.
func (a *slotArray) countOpen(positions int) int {
	free := uint64(0)
	slots := a.slots[:positions]
	for i := 0; i+8 <= len(slots); i += 8 {
		s := slots[i : i+8 : i+8]
		free += s[0]>>63 + s[1]>>63 + s[2]>>63 + s[3]>>63 + s[4]>>63 + s[5]>>63 + s[6]>>63 + s[7]>>63
	}
	return int(free)
}

// fillOpen goes through the rounds while any position is open and returns how many still are. The throws at open positions are first
// listed without a branch, since nearly all others miss.
func (a *slotArray) fillOpen(k uint64, free int, all []uint64) int {
	slots, late := &a.slots, a.late
	for round := uint64(1); round < rounds && free > 0; round++ {
		for _, y := range late[:list(slots, late, all, roundKeys[round], k)] {
			position, slot := throw(y, round, k)
			position &= maxPositions - 1
			free -= int(slots[position] >> 63)
			slots[position] = min(slots[position], slot)
		}
	}
	return free
}

// list fills late with the throws of one round at open positions and returns how many they are.
func list(slots *[maxPositions]uint64, late, all []uint64, key, k uint64) (n int) {
	late = late[:len(all)]
	for _, x := range all {
		y := x * key
		late[n] = y
		n += int(slots[y>>32*k>>32&(maxPositions-1)] >> 63)
	}
	return n
}

// fillOwn gives each position that is still open the least of a hash of its own.
func (a *slotArray) fillOwn(positions int, all []uint64) {
	n := 0
	for i, slot := range a.slots[:positions] {
		a.at[n&(maxPositions-1)] = uint16(i)
		n += int(slot >> 63)
	}
	at := a.at[:n]
	for ; len(at) >= 4; at = at[4:] { // four share each hash that is read
		p0, p1, p2, p3 := at[0]%maxPositions, at[1]%maxPositions, at[2]%maxPositions, at[3]%maxPositions
		k0, k1, k2, k3 := ownKeys[p0], ownKeys[p1], ownKeys[p2], ownKeys[p3]
		m0, m1, m2, m3 := untaken, untaken, untaken, untaken
		for _, x := range all {
			m0, m1, m2, m3 = min(m0, x*k0), min(m1, x*k1), min(m2, x*k2), min(m3, x*k3)
		}
		a.slots[p0], a.slots[p1], a.slots[p2], a.slots[p3] = own(m0), own(m1), own(m2), own(m3)
	}
	for _, p := range at {
		least := untaken
		for _, x := range all {
			least = min(least, x*ownKeys[p%maxPositions])
		}
		a.slots[p%maxPositions] = own(least)
	}
}

// own returns the slot of a position whose own hash has the given minimum.
func own(least uint64) uint64 { return rounds<<56 | least>>8 }

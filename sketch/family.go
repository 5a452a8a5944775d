package sketch

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
)

// permutations keeps for every position the least of an independent hash over all shingles: the row hashing of the Stanford slides,
// with the shingles as rows. A slot stays ^0 where there is no shingle.
func permutations(slots []uint64, set []uint64) {
	for i := range slots {
		least, key := ^uint64(0), mix(uint64(i+1)*golden)
		for _, x := range set {
			least = min(least, mix(x^key))
		}
		slots[i] = least
	}
}

// lowBit is the lowest bit that is kept of a slot. The bits below it hardly differ between the rounds of one shingle, since the low bits of
// a product depend on the low bits of its factors alone. Two sketches of one shingle each that kept them would agree by chance in many
// positions or in none.
const lowBit = 24

// pack appends some bits of each slot, the first slot in the low bits of the first byte.
func pack(payload []byte, slots []uint64, width int) []byte {
	if width == 8 {
		for _, slot := range slots {
			payload = append(payload, byte(slot>>lowBit))
		}
		return payload
	}
	each, mask := 8/width, uint64(1)<<width-1
	for i := 0; i < len(slots); i += each {
		var b uint64
		for j, slot := range slots[i : i+each] {
			b |= slot >> lowBit & mask << (j * width)
		}
		payload = append(payload, byte(b))
	}
	return payload
}

// mSmallest appends the m smallest hashes of the set in rising order, 8 bytes each, big-endian; all of them where there are no
// more than m. It sorts the set in place. It reports whether any was left out.
func mSmallest(payload []byte, set []uint64, m int) (_ []byte, cut bool) {
	slices.Sort(set)
	kept := set[:min(m, len(set))]
	for _, x := range kept {
		payload = binary.BigEndian.AppendUint64(payload, x)
	}
	return payload, len(kept) < len(set)
}

// zeroModM appends the hashes that are 0 mod m under each of several independent hash functions, in rising order, 8 bytes each,
// big-endian, and at most the given number of them. Hashes of different functions are equal with a chance of 2^-64, so one list has them
// all. It leaves the set unchanged and reports whether any hash was left out.
func zeroModM(payload []byte, set []uint64, modulus, repeats, most int) (_ []byte, cut bool) {
	var kept []uint64
	for i := range repeats {
		key := mix(uint64(i+1) * golden)
		for _, x := range set {
			if h := mix(x ^ key); h%uint64(modulus) == 0 {
				kept = append(kept, h)
			}
		}
	}
	return mSmallest(payload, kept, most)
}

// simHash appends one bit for each hyperplane: the side on which the sum of the set's elements lies. Every element is a separate axis, so a
// hyperplane is one normally distributed number for each element. The number of one bits among 64 random bits is close to normal (its
// kurtosis is 3 - 2/64). It is an integer: a random fraction is added, so that no sum is zero. The sums are integers, so they are the same
// in any order of the set and on every machine.
func simHash(payload []byte, set []uint64, positions int) []byte {
	for i := 0; i < positions; i += 8 {
		var b byte
		for j := range 8 {
			key, sum := mix(uint64(i+j+1)*golden), int64(0)
			for _, x := range set {
				h := mix(x ^ key)
				sum += int64(bits.OnesCount64(h)-32)<<20 + int64(h*golden>>44) - 1<<19
			}
			if sum > 0 {
				b |= 1 << j
			}
		}
		payload = append(payload, b)
	}
	return payload
}

// merge goes through the smallest values of the union of two rising lists. It returns how many values it looked at and how many of them are
// in both. A list that was cut has only the smallest values of its set, so no more of the union than its length is known.
func merge(a, b []byte, cutA, cutB bool) (looked, both int) {
	most := len(a) + len(b)
	if cutA {
		most = min(most, len(a))
	}
	if cutB {
		most = min(most, len(b))
	}
	for ; looked < most/valueSize && len(a)+len(b) > 0; looked++ {
		order := 0
		switch {
		case len(b) == 0:
			order = -1
		case len(a) == 0:
			order = 1
		default:
			if order = bytes.Compare(a[:valueSize], b[:valueSize]); order == 0 {
				both++
			}
		}
		if order <= 0 {
			a = a[valueSize:]
		}
		if order >= 0 {
			b = b[valueSize:]
		}
	}
	return looked, both
}

// overlap goes through the values of a as far as b is known: a list that was cut, up to its last value, which does not count. Where the list ends
// depends on that value, so it is in b every time: with it the share would be a little too high. It returns how many there are and how many of
// them are in b.
func overlap(a, b []byte, cutB bool) (looked, both int) {
	if cutB {
		last := b[max(0, len(b)-valueSize):]
		a = a[:valueSize*sort.Search(len(a)/valueSize, func(i int) bool { return bytes.Compare(a[i*valueSize:(i+1)*valueSize], last) >= 0 })]
	}
	_, both = merge(a, b, false, false)
	return len(a) / valueSize, both
}

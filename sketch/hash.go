package sketch

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// keys are what a scheme's seed turns into: everything that is hashed is hashed with them.
type keys struct{ word, rest, shingle, text uint64 }

func keysOf(seed uint64) keys {
	var k [4]uint64
	for i := range k {
		k[i] = mix(seed + uint64(i+1)*golden)
	}
	return keys{word: k[0], rest: k[1], shingle: k[2], text: k[3]}
}

// golden is 2^64 divided by the golden ratio: multiples of it are evenly spread.
const golden = 0x9e3779b97f4a7c15

// base is the odd number whose powers weigh the tokens of a shingle.
const base = 0x9fb21c651e98df25

// mix is the finaliser of MurmurHash3 (Appleby, public domain): a bijection of 64-bit numbers in which each bit of the input
// changes each bit of the output with probability near one half.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// foldMul multiplies to 128 bits and folds them to 64 by xor: one instruction that mixes two words well if neither factor is
// known to whoever chooses the other (the step of wyhash, Wang Yi, public domain).
func foldMul(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// hash returns the hash of a token from its bytes.
func (k *keys) hash(token string) uint64 {
	return k.hashPadded(append([]byte(token), make([]byte, 16)...), len(token))
}

// The low bits of a token's hash say what it is: numberFlag a number or a sign, halfWord and quarterWord a character by itself, and how much
// of a word it is. A sign has them all: it counts nothing.
const (
	numberFlag  = 1
	halfWord    = 2
	quarterWord = 4
	flags       = numberFlag | halfWord | quarterWord
	signFlags   = flags
)

// quartersOf returns how many quarters of a word the token with this hash counts.
func quartersOf(hash uint64) uint64 { return 4 >> (hash >> 1 & 3) }

// flagged returns the hash of a word with its flags.
func flagged(hash uint64, number bool) uint64 {
	if number {
		return hash&^flags | numberFlag
	}
	return hash &^ flags
}

// flag returns the hash of the token with its flags.
func (t *token) flag(hash uint64) uint64 {
	if t.sign {
		return hash | signFlags
	}
	hash = flagged(hash, t.number)
	if t.character {
		r, _ := utf8.DecodeRuneInString(t.text)
		hash |= characterFlag(r)
	}
	return hash
}

// characterFlag returns the flag of a character: those of China and Japan are half a word, all others a quarter.
func characterFlag(r rune) uint64 {
	if r >= 0x2e80 {
		return halfWord
	}
	return quarterWord
}

// fingerprint hashes the base texts of a document: case and white space folded; punctuation, digits and accents count ("C++" is not
// "C#"). Both factors of every multiplication are keyed. A seeded xxHash64 would be faster by half. However, texts can be found that
// collide in it under every other seed, and equal fingerprints fold at any threshold.
func (k *keys) fingerprint(text []byte) uint64 {
	first, second, length := k.text, k.shingle, uint64(len(text))
	for len(text) >= 32 {
		first = foldMul(binary.LittleEndian.Uint64(text)^first, binary.LittleEndian.Uint64(text[8:])^k.word)
		second = foldMul(binary.LittleEndian.Uint64(text[16:])^second, binary.LittleEndian.Uint64(text[24:])^k.rest)
		text = text[32:]
	}
	var last [32]byte
	copy(last[:], text)
	first = foldMul(binary.LittleEndian.Uint64(last[:])^first, binary.LittleEndian.Uint64(last[8:])^k.word)
	second = foldMul(binary.LittleEndian.Uint64(last[16:])^second, binary.LittleEndian.Uint64(last[24:])^k.rest)
	return mix(foldMul(first^k.rest, second^k.text) ^ length)
}

package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"unicode"

	"github.com/cespare/xxhash/v2"
)

// This file is min-hash as one writes it on the first day: clear, correct for most texts, and the yardstick for what the work on
// speed has gained.

// multipliers and addends of the 128 multiply-shift hashes (Dietzfelbinger and others, 1997): h(x) = (a·x + b) mod 2^64 with an
// odd a, of which only the order of the high bits matters to a minimum.
var multipliers, addends = func() (a, b [positions]uint64) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range a {
		a[i], b[i] = r.Uint64()|1, r.Uint64()
	}
	return a, b
}()

func idiomaticWords(text string) []string {
	list := strings.Fields(strings.ToLower(text))
	kept := list[:0]
	for _, w := range list {
		if w = strings.TrimFunc(w, notOfAWord); w != "" {
			kept = append(kept, w)
		}
	}
	return kept
}

func notOfAWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }

func idiomaticShingles(text string) []string {
	list := idiomaticWords(text)
	w := min(shingleWords, len(list))
	if w == 0 {
		return nil
	}
	shingles := make([]string, 0, len(list)-w+1)
	for i := 0; i+w <= len(list); i++ {
		shingles = append(shingles, strings.Join(list[i:i+w], " "))
	}
	return shingles
}

func idiomaticSignature(text string) []uint64 {
	shingles := idiomaticShingles(text)
	hashes := make([]uint64, len(shingles))
	for i, shingle := range shingles {
		hashes[i] = xxhash.Sum64String(shingle)
	}
	var signature [positions]uint64
	multiplyShift(&signature, hashes)
	return signature[:]
}

// multiplyShift fills a signature of 128 positions with the minima over ready hashes. Position by position it keeps the minimum in
// a register: a third faster than hash by hash.
func multiplyShift(signature *[positions]uint64, hashes []uint64) {
	for i := range signature {
		a, b, least := multipliers[i], addends[i], uint64(math.MaxUint64)
		for _, h := range hashes {
			if v := a*h + b; v < least {
				least = v
			}
		}
		signature[i] = least
	}
}

func idiomaticAll(documents []string) {
	for _, d := range documents {
		sink += idiomaticSignature(d)[0]
	}
}

package sketch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Family names the way in which a set of shingles becomes the positions of a sketch.
type Family string

const (
	// FastSimilarity is Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup: "Fast Similarity Sketching", FOCS 2017): one pass
	// over the shingles, with an error no worse than that of independent permutations even for few shingles.
	FastSimilarity Family = "fast_similarity"
	// Permutations is min-hash over one random permutation for each position (Broder; CS124 lecture 12; Manning and Raghavan's
	// slides), each permutation being an independent hash of the shingle.
	Permutations Family = "permutations"
)

const (
	// DefaultWords is w, the number of words in a shingle, as in Broder's and the Stanford lectures' examples.
	DefaultWords = 4
	// DefaultPositions is k, the number of positions of a sketch: a standard error of at most 0.044 at 128.
	DefaultPositions = 128

	maxWords     = 32
	maxPositions = 1024
)

// textVersion changes with whatever changes a sketch and is not an option of Scheme: normalisation, word borders, hashes.
//
//	1  NFKC, full case folding, UAX #29 words, xxhash64 of each word, 8 bits a position
const textVersion = 1

// Scheme is all that two sketches must share to be comparable.
type Scheme struct {
	// Family is FastSimilarity (the default) or Permutations.
	Family Family
	// Words is w, the number of consecutive words in a shingle, 1 to 32.
	Words int
	// Positions is k, the number of positions, 8 to 1024. Each takes one byte in the stored form; the standard error of an
	// agreement is at most sqrt(J(1-J)/k) plus what one byte a position adds (under 1 %).
	Positions int
	// Seed keys every hash. It is the operator's secret: who knows it can craft texts that collide.
	Seed string
}

// DefaultScheme returns Fast Similarity Sketching of 128 positions over 4-word shingles, without a seed.
func DefaultScheme() Scheme {
	return Scheme{Family: FastSimilarity, Words: DefaultWords, Positions: DefaultPositions}
}

// Validate reports, joined, every value of the scheme that can't be used.
func (s Scheme) Validate() error {
	var errs []error
	if s.Family != FastSimilarity && s.Family != Permutations {
		errs = append(errs, fmt.Errorf("family: %q is unknown: use %s or %s", s.Family, FastSimilarity, Permutations))
	}
	if s.Words < 1 || s.Words > maxWords {
		errs = append(errs, fmt.Errorf("words: %d is out of range: use 1 to %d (4 is usual)", s.Words, maxWords))
	}
	if s.Positions < 8 || s.Positions > maxPositions {
		errs = append(errs, fmt.Errorf("positions: %d is out of range: use 8 to %d (128 is usual)", s.Positions, maxPositions))
	}
	return errors.Join(errs...)
}

// ID returns the identity of the scheme as it stands in a stored sketch. It covers everything that changes a sketch.
func (s Scheme) ID() uint32 {
	var b strings.Builder
	fmt.Fprintf(&b, "neardup text=%d family=%s words=%d positions=%d bits=8 seed=", textVersion, s.Family, s.Words, s.Positions)
	b.WriteString(s.Seed)
	h := xxhash.Sum64String(b.String())
	return uint32(h ^ h>>32)
}

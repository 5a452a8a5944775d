package sketch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Family is the algorithm that turns a set of shingles into a sketch. Each has its own estimator ([Sketch.Agreement]).
type Family string

const (
	// FastSimilarity is Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup: "Fast Similarity Sketching", FOCS 2017): one pass
	// over the shingles, with an error no worse than that of independent permutations even for few shingles. The default.
	FastSimilarity Family = "fast_similarity"
	// Permutations is min-hash over P random permutations (Broder; CS124 lecture 12), computed by the row hashing of Manning and
	// Raghavan's slides: for each row and each hash, keep the least.
	Permutations Family = "permutations"
	// MSmallest keeps the m smallest hashes of the set: F_m of the same slides, the "bottom-m" sketch of Broder 1997.
	MSmallest Family = "m_smallest"
	// ZeroModM keeps the hashes that are 0 mod m: V_m of the same slides. Its size grows with the document; a short document may
	// keep none, which several independent sketches ([Scheme.Repeats]) make rarer.
	ZeroModM Family = "zero_mod_m"
	// SimHash keeps the side of each of P random hyperplanes on which the set lies (Charikar: "Similarity Estimation Techniques
	// from Rounding Algorithms", STOC 2002). It estimates the angle between two sets, and from it their resemblance.
	SimHash Family = "simhash"
	// Hamming takes ready 64-bit values, such as perceptual hashes of images or simhashes made elsewhere, and compares them by the
	// share of equal bits. Its features must be Value64.
	Hamming Family = "hamming"
)

// Features is what a document's set consists of.
type Features string

const (
	// Auto makes word shingles where spaces part words, and character shingles in runs of scripts written without spaces (Han, kana,
	// Thai, Lao, Khmer, Burmese and the like). The default.
	Auto Features = "auto"
	// WordShingles makes shingles of w words in every script; in scripts without spaces UAX #29 makes nearly every character a word.
	WordShingles Features = "words"
	// CharacterShingles makes shingles of n characters in every script, with one blank between two words.
	CharacterShingles Features = "characters"
	// Tags takes each text as one element of the set: tags of goods, users of a link, links of a page.
	Tags Features = "tags"
	// Value64 takes the text as one 64-bit number: 16 hexadecimal digits (an 0x in front is allowed).
	Value64 Features = "value64"
	// Vectors takes the text as one vector: a list of numbers in JSON, or base64 of big-endian numbers of 32 bits. Its family must be SimHash, and the
	// agreement is the cosine. See [Sketcher.SketchVector].
	Vectors Features = "vector"
)

// Sets reports whether documents are sets of such features. Ready values and vectors are not sets: they have no shingles, words or containment.
func (f Features) Sets() bool { return f != Value64 && f != Vectors }

// Boilerplate reports whether passages can be left out: they are runs of words.
func (f Features) Boilerplate() bool { return f == Auto || f == WordShingles }

// Content is the part of a text that is sketched.
type Content string

const (
	// ContentAll is all of the text; where it is HTML, all that is visible of it. The default.
	ContentAll Content = "all"
	// ContentUseful leaves out the boilerplate of an HTML page: menus, side bars, footers. Other texts are taken whole.
	ContentUseful Content = "useful"
	// ContentRaw is the text unchanged: markup counts as text.
	ContentRaw Content = "raw"
)

// Keep says which differences between texts count. By default all of them are folded.
type Keep struct {
	// Case keeps capitals apart from small letters.
	Case bool
	// Accents keeps letters with accents, vowel points and the like apart from those without.
	Accents bool
	// Punctuation makes every mark of punctuation and every symbol a word, and keeps those inside of words ("don't").
	Punctuation bool
}

const (
	// defaultWords is w, the number of words in a shingle.
	defaultWords = 2
	// defaultCharacters is n, the number of characters in a shingle.
	defaultCharacters = 6
	// defaultPositions is k, the number of positions of a sketch: a standard error of at most 0.051 at 96.
	defaultPositions = 96
	// defaultBits is b, the number of bits that are kept of each position.
	defaultBits = 8
	// defaultModulus is m of [ZeroModM].
	defaultModulus = 16
	// defaultRepeats is the number of independent sketches of [ZeroModM].
	defaultRepeats = 4

	maxWords      = 32
	maxCharacters = 64
	maxPositions  = 1024
	maxModulus    = 1 << 16
	maxRepeats    = 64
)

// textVersion is raised when anything but an option of Scheme changes a sketch: normalisation, word borders, hashes, constants, or the
// version of a library for Unicode or HTML. The known answers show such a change.
//
//	1  the first
//	2  numbers with their marks, and signs, are words; invisible characters are dropped; the iota below a vowel is an accent; letters with a
//	   stroke, ligatures and traditional Chinese are folded
const textVersion = 2

// Scheme is all that two sketches must share to be comparable. A zero field takes its default, so the zero Scheme is the default
// scheme without a seed.
type Scheme struct {
	// Family is FastSimilarity by default.
	Family Family
	// Features is Auto by default.
	Features Features
	// Words is w, the number of consecutive words in a shingle, 1 to 32.
	Words int
	// Characters is n, the number of consecutive characters in a shingle, 1 to 64.
	Characters int
	// Positions is k of FastSimilarity and Permutations, m of MSmallest, the bits of SimHash, and the most hashes that ZeroModM
	// keeps: 8 to 1024, a multiple of 8. The standard error of an agreement is about sqrt(J(1-J)/k).
	Positions int
	// Bits is how many bits of each position FastSimilarity and Permutations keep: 1, 2, 4 or 8 (Li and König, "b-Bit Minwise
	// Hashing", WWW 2010). Fewer bits take less room and raise the error.
	Bits int
	// Modulus is m of ZeroModM, 1 to 65536: one shingle in m is kept.
	Modulus int
	// Repeats is how many independent sketches ZeroModM makes, 1 to 64.
	Repeats int
	// Content is ContentAll by default.
	Content Content
	// Keep says what is not folded; nothing by default.
	Keep Keep
	// DropNumbers leaves out all words with a digit, and signs: lines of a log that differ in time and address only are the same.
	DropNumbers bool
	// Boilerplate are passages that are left out of every text, one a line: see boilerplate.go and [Features.Boilerplate].
	Boilerplate string
	// Seed keys every hash. It is the operator's secret: anyone who knows it can craft texts that collide. Take 128 random bits, because
	// guesses at a weak one can be checked against the 32 bits of the scheme id in every stored sketch.
	Seed string
}

// DefaultScheme returns the defaults, each in its field, without a seed.
func DefaultScheme() Scheme { return Scheme{}.filled() }

// filled returns the scheme with defaults in place of zero fields.
func (s Scheme) filled() Scheme {
	s.Family = cmp.Or(s.Family, FastSimilarity)
	s.Features = cmp.Or(s.Features, Auto)
	s.Words = cmp.Or(s.Words, defaultWords)
	s.Characters = cmp.Or(s.Characters, defaultCharacters)
	s.Positions = cmp.Or(s.Positions, defaultPositions)
	s.Bits = cmp.Or(s.Bits, defaultBits)
	s.Modulus = cmp.Or(s.Modulus, defaultModulus)
	s.Repeats = cmp.Or(s.Repeats, defaultRepeats)
	s.Content = cmp.Or(s.Content, ContentAll)
	return s
}

// Validate reports, joined, every value of the scheme that can't be used. A zero field is out of range here. Each message begins with the
// name of the value in config.yaml.
func (s Scheme) Validate() error {
	var errs []error
	oneOf := func(name, value string, known ...string) {
		if !slices.Contains(known, value) {
			errs = append(errs, fmt.Errorf("%s: %q is unknown: use %s", name, value, strings.Join(known, ", ")))
		}
	}
	within := func(name string, value, least, most, usual int) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("%s: %d is out of range: use %d to %d (%d is usual)", name, value, least, most, usual))
		}
	}
	oneOf("family", string(s.Family), string(FastSimilarity), string(Permutations), string(MSmallest), string(ZeroModM), string(SimHash), string(Hamming))
	oneOf("features", string(s.Features), string(Auto), string(WordShingles), string(CharacterShingles), string(Tags), string(Value64), string(Vectors))
	oneOf("content", string(s.Content), string(ContentAll), string(ContentUseful), string(ContentRaw))
	within("words", s.Words, 1, maxWords, defaultWords)
	within("characters", s.Characters, 1, maxCharacters, defaultCharacters)
	within("positions", s.Positions, 8, maxPositions, defaultPositions)
	within("modulus", s.Modulus, 1, maxModulus, defaultModulus)
	within("repeats", s.Repeats, 1, maxRepeats, defaultRepeats)
	if s.Positions%8 != 0 {
		errs = append(errs, fmt.Errorf("positions: %d is no multiple of 8: use %d", s.Positions, max(8, (s.Positions+4)/8*8)))
	}
	if !slices.Contains([]int{1, 2, 4, 8}, s.Bits) {
		errs = append(errs, fmt.Errorf("bits: %d bits a position are not supported: use 1, 2, 4 or 8 (8 is usual)", s.Bits))
	}
	if (s.Family == Hamming) != (s.Features == Value64) {
		errs = append(errs, fmt.Errorf("features: %s does not go with family %s: hamming and value64 go together", s.Features, s.Family))
	}
	if s.Features == Vectors && s.Family != SimHash && s.Family != Hamming {
		errs = append(errs, fmt.Errorf("features: vector does not go with family %s: use simhash, with 1024 positions", s.Family))
	}
	if s.Boilerplate != "" && !s.Features.Boilerplate() {
		errs = append(errs, fmt.Errorf("boilerplate: does not go with features: %s: passages are runs of words", s.Features))
	}
	return errors.Join(errs...)
}

// ID returns the identity of the scheme, which every stored sketch contains. It depends on everything that changes a sketch, and on nothing
// else: under [Tags] not on the number of words.
func (s Scheme) ID() uint32 {
	s = s.filled()
	var b strings.Builder
	fmt.Fprintf(&b, "neardup text=%d family=%s features=%s", textVersion, s.Family, s.Features)
	switch s.Family {
	case FastSimilarity, Permutations:
		fmt.Fprintf(&b, " positions=%d bits=%d", s.Positions, s.Bits)
	case MSmallest, SimHash:
		fmt.Fprintf(&b, " positions=%d", s.Positions)
	case ZeroModM:
		fmt.Fprintf(&b, " positions=%d modulus=%d repeats=%d", s.Positions, s.Modulus, s.Repeats)
	}
	if s.Features == Auto || s.Features == WordShingles {
		fmt.Fprintf(&b, " words=%d", s.Words)
	}
	if s.Features == Auto || s.Features == CharacterShingles {
		fmt.Fprintf(&b, " characters=%d", s.Characters)
	}
	if s.Features.Sets() {
		fmt.Fprintf(&b, " case=%t accents=%t", s.Keep.Case, s.Keep.Accents)
	}
	if s.Features.Sets() && s.Features != Tags {
		fmt.Fprintf(&b, " punctuation=%t content=%s", s.Keep.Punctuation, s.Content)
	}
	if s.DropNumbers && s.Features.Sets() && s.Features != Tags {
		b.WriteString(" numbers=dropped")
	}
	if s.Boilerplate != "" {
		fmt.Fprintf(&b, " boilerplate=%016x", xxhash.Sum64String(s.Boilerplate))
	}
	b.WriteString(" seed=")
	b.WriteString(s.Seed)
	h := xxhash.Sum64String(b.String())
	return uint32(h ^ h>>32)
}

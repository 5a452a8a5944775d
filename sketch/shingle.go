package sketch

import (
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/cespare/xxhash/v2"
	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

var fold = cases.Fold()

// Words returns the words of a text as shingles are made of them: NFKC-normalised and case-folded, cut at the word borders of
// UAX #29, without the pieces that hold neither a letter nor a digit. Invalid UTF-8 is left out, as engines do that accept it.
func Words(text string) []string {
	var list []string
	it := words.FromString(normalise(text))
	for it.Next() {
		if w := it.Value(); strings.ContainsFunc(w, isWordRune) {
			list = append(list, w)
		}
	}
	return list
}

// normalise folds after NFKC and normalises once more, because folding can leave the normal form.
func normalise(text string) string {
	valid := strings.ToValidUTF8(text, "")
	return norm.NFKC.String(fold.String(norm.NFKC.String(valid)))
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// Shingles returns the shingle set of a document as sorted, distinct hashes. Every text (a field, or one value of a field that
// has several) is cut on its own, so that no shingle spans two of them. A text of fewer than w words makes one shingle of all
// of them; a text without a word makes none.
func (s *Sketcher) Shingles(texts ...string) []uint64 {
	var set []uint64
	for _, text := range texts {
		set = s.appendShingles(set, Words(text))
	}
	slices.Sort(set)
	return slices.Compact(set)
}

func (s *Sketcher) appendShingles(set []uint64, list []string) []uint64 {
	if len(list) == 0 {
		return set
	}
	hashes := make([]uint64, len(list))
	for i, w := range list {
		hashes[i] = xxhash.Sum64String(w)
	}
	w := min(s.scheme.Words, len(hashes))
	for i := 0; i+w <= len(hashes); i++ {
		set = append(set, s.shingleHash(hashes[i:i+w]))
	}
	return set
}

// shingleHash mixes a shingle's hash from its words' hashes, so that no shingle is ever built as a string. The rotation keeps
// the order of the words in the sum.
func (s *Sketcher) shingleHash(words []uint64) uint64 {
	h := s.seed + uint64(len(words))
	for _, w := range words {
		h = bits.RotateLeft64(h, 21)*0x9fb21c651e98df25 + w
	}
	return mix(h ^ s.seed)
}

// mix is the finaliser of MurmurHash3 (Appleby, public domain): a bijection of 64-bit numbers in which each bit of the input
// changes each bit of the output with probability near one half.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Resemblance returns |A∩B| / |A∪B| of two shingle sets as [Sketcher.Shingles] returns them. It is exact, and the oracle of every
// estimate. Two empty sets have no resemblance: 0.
func Resemblance(a, b []uint64) float64 {
	common := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			common, i, j = common+1, i+1, j+1
		}
	}
	union := len(a) + len(b) - common
	if union == 0 {
		return 0
	}
	return float64(common) / float64(union)
}

// fingerprint hashes one whole document: case and white space folded, punctuation, digits and accents kept ("C++" is not "C#").
func (s *Sketcher) fingerprint(texts []string) uint64 {
	d := xxhash.NewWithSeed(s.seed)
	for _, text := range texts {
		valid := strings.ToValidUTF8(text, "")
		folded := norm.NFC.String(fold.String(norm.NFC.String(valid)))
		for i, w := range strings.Fields(folded) {
			if i > 0 {
				_, _ = d.WriteString(" ")
			}
			_, _ = d.WriteString(w)
		}
		_, _ = d.WriteString("\x00") // the border between two texts; no text holds it after the loop above but by its own choice
	}
	return d.Sum64()
}

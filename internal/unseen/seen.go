// Package unseen says of each document of a stream whether a near-duplicate was there before, in one pass and without its text or sketch: it remembers the
// bands of sketches in a Bloom filter (Khan and others: "LSHBloom: Memory-efficient, Extreme-scale Document Deduplication", 2024).
//
//	bands.go   how a sketch is cut into bands
//	filter.go  the Bloom filter. One holds the keys of all bands: a key depends on its band, and so the paper's one filter for each band finds the same
//	seen.go    Seen: what is remembered, and the keys of a document
//	file.go    its file
package unseen

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Options say what is remembered.
type Options struct {
	Rule *rule.Rule
	// Expected is the number of documents for which there is room. FalsePositives is the share of unlike documents that count as seen when that number is
	// remembered. If one of the two is 0, the value of the file counts, or the default for a new file.
	Expected       int
	FalsePositives float64
}

const (
	// DefaultExpected and DefaultFalsePositives are the defaults of [Options].
	DefaultExpected       = 1_000_000
	DefaultFalsePositives = 0.0001
)

// Seen remembers documents. [Seen.Keys] is safe for concurrent use, the other methods are not.
type Seen struct {
	header
	filter
	rule *rule.Rule

	file *os.File // nil without one
	name string
	// logged is how many bytes of the file are behind the filter.
	logged int64
	// unsaved are the keys of documents that are not in the file yet.
	unsaved          []uint64
	unsavedDocuments int
	// Dropped is how many bytes at the end of the file were left out, because the last write was not completed.
	Dropped int64
}

// check returns why documents under the rule can't be remembered.
func check(r *rule.Rule) error {
	switch family := r.Sketcher.Scheme().Family; {
	case family != sketch.FastSimilarity && family != sketch.Permutations:
		return fmt.Errorf("sketches of family %s can't be remembered by their bands: use fast_similarity", family)
	case r.Profile.Measure == rerank.Containment:
		return errors.New("documents that contain one another share few bands: use measure: resemblance")
	}
	return nil
}

// headerFor returns the header of a new file.
func headerFor(o *Options) (h header, err error) {
	r, scheme := o.Rule, o.Rule.Sketcher.Scheme()
	h = header{
		Format: format, Scheme: fmt.Sprintf("%08x", r.Sketcher.SchemeID()), Fields: r.Fields, Threshold: r.Profile.Threshold,
		MinShingles: r.Profile.MinShingles, MinWords: r.Profile.MinWords, Numbers: r.Profile.Numbers == rerank.DecideByNumbers,
		Expected: cmp.Or(o.Expected, DefaultExpected), FalsePositives: cmp.Or(o.FalsePositives, DefaultFalsePositives),
	}
	expected := float64(h.Expected)
	if h.Bands, h.Rows = chooseBands(scheme, h.Threshold, expected, h.FalsePositives); h.Bands == 0 {
		const small = "sketches of %d positions of %d bits are too small to tell %d documents apart: use more of them (the section sketch of a configuration), or a smaller --expect"
		return h, fmt.Errorf(small, scheme.Positions, scheme.Bits, h.Expected)
	}
	perBand := -math.Expm1(math.Log1p(-h.FalsePositives) / float64(h.Bands))
	h.Words, h.Probes = sizeOf(expected*float64(h.Bands), perBand)
	return h, nil
}

// Keys appends the keys of a document to list: one for each band; one for all words of a text that is too short to be a near-duplicate by agreement; none of a
// document without a word.
func (s *Seen) Keys(list []uint64, texts []string) []uint64 {
	k, has := s.rule.Sketcher.Sketch(texts...)
	switch {
	case !has:
		return list
	case !s.rule.Profile.Long(&k):
		return append(list, k.WordsKey())
	}
	first := len(list)
	list, _ = k.AppendBands(list, s.Bands, s.Rows) // headerFor has chosen bands that the scheme has
	if s.Numbers {
		for i := first; i < len(list); i++ {
			list[i] = mixed(list[i], uint64(k.Numbers))
		}
	}
	return list
}

func mixed(a, b uint64) uint64 {
	var both [16]byte
	binary.LittleEndian.PutUint64(both[:], a)
	binary.LittleEndian.PutUint64(both[8:], b)
	return xxhash.Sum64(both[:])
}

// New reports whether a document with these keys is new, and remembers it if so. A document without keys is new each time.
func (s *Seen) New(keys []uint64) bool {
	for _, key := range keys {
		if s.has(key) {
			return false
		}
	}
	for _, key := range keys {
		s.add(key)
	}
	if len(keys) > 0 {
		s.Remembered++
		s.unsavedDocuments++
		if s.file != nil {
			s.unsaved = append(s.unsaved, keys...)
		}
	}
	return true
}

// Rate returns the share of unlike documents that count as seen now, as far as it follows from how full the filter is and how long the bands are.
func (s *Seen) Rate() float64 {
	scheme := s.rule.Sketcher.Scheme()
	byChance := math.Exp2(-float64(scheme.Bits) * float64(s.Rows)) // that two documents share a band
	unlike := math.Log1p(-s.rate()) - float64(s.Remembered)*byChance
	return -math.Expm1(float64(s.Bands) * unlike)
}

// Full reports whether more documents are remembered than were expected.
func (s *Seen) Full() bool { return s.Remembered > s.Expected }

// Describe says how full it is.
func (s *Seen) Describe() string {
	text := fmt.Sprintf("%d documents are remembered, of %d expected; of unlike documents %.2g %% count as seen", s.Remembered, s.Expected, 100*s.Rate())
	if s.Full() {
		text += ": begin another file with a greater --expect"
	}
	return text
}

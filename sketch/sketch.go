package sketch

import (
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Sketcher makes sketches under one scheme. It is immutable and safe for concurrent use.
type Sketcher struct {
	scheme Scheme
	id     uint32
	seed   uint64
}

// New returns a Sketcher for the scheme, or what is wrong with it.
func New(scheme Scheme) (*Sketcher, error) {
	if err := scheme.Validate(); err != nil {
		return nil, fmt.Errorf("scheme: %w", err)
	}
	seed := uint64(0)
	if scheme.Seed != "" {
		seed = xxhash.Sum64String(scheme.Seed)
	}
	return &Sketcher{scheme: scheme, id: scheme.ID(), seed: seed}, nil
}

// Scheme returns the scheme of the sketcher.
func (s *Sketcher) Scheme() Scheme { return s.scheme }

// SchemeID returns [Scheme.ID] of the sketcher's scheme.
func (s *Sketcher) SchemeID() uint32 { return s.id }

// Sketch is the summary of one document. The zero value is no sketch of anything and agrees with nothing.
type Sketch struct {
	// Scheme is the identity of the scheme it was made under.
	Scheme uint32
	// Source is the caller's mark of where the text came from (which fields); it takes no part in comparing.
	Source uint16
	// Shingles is the number of distinct shingles of the document.
	Shingles uint32
	// Fingerprint is the keyed hash of the whole text, case and white space folded.
	Fingerprint uint64
	// Payload holds the low byte of each position.
	Payload []byte
}

// Sketch returns the sketch of a document made of one or several texts, and false where no text holds a word: such a document
// has no sketch.
func (s *Sketcher) Sketch(texts ...string) (Sketch, bool) {
	shingles := s.Shingles(texts...)
	if len(shingles) == 0 {
		return Sketch{}, false
	}
	slots := make([]uint64, s.scheme.Positions)
	s.positions(slots, shingles)
	payload := make([]byte, len(slots))
	for i, slot := range slots {
		payload[i] = byte(slot)
	}
	return Sketch{
		Scheme:      s.id,
		Shingles:    uint32(min(len(shingles), math.MaxUint32)),
		Fingerprint: s.fingerprint(texts),
		Payload:     payload,
	}, true
}

// chance is the probability that two positions which disagree share their low byte.
const chance = 1.0 / 256

// Agreement estimates the resemblance of the two documents, 0 to 1, from the share of equal positions, less the share that is
// equal by chance in the one byte kept of each (Li and König, "b-Bit Minwise Hashing", 2010). It reports false where the two are
// not comparable.
func (s Sketch) Agreement(t Sketch) (agreement float64, comparable bool) {
	if s.Scheme != t.Scheme || len(s.Payload) != len(t.Payload) || len(s.Payload) == 0 {
		return 0, false
	}
	equal := 0
	for i, p := range s.Payload {
		if p == t.Payload[i] {
			equal++
		}
	}
	share := float64(equal) / float64(len(s.Payload))
	return max(0, (share-chance)/(1-chance)), true
}

// SameText reports whether both are sketches of the same text: same scheme, same fingerprint.
func (s Sketch) SameText(t Sketch) bool {
	return s.Scheme == t.Scheme && s.Fingerprint == t.Fingerprint && len(s.Payload) != 0 && len(t.Payload) != 0
}

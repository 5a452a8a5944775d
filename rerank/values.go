package rerank

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"

	"github.com/neardup/sidecar/sketch"
)

// values counts how many values lists have in common. Two lists take a hundred times as long to compare as two outlines, and most share too
// few values to be near-duplicates.
type values struct {
	// heads holds, for each hash of a value, the place of the last entry, 0 for none.
	heads   []int32
	entries []valueEntry
	shared  []int32
}

// valueEntry says that a list has a value. next is the place of the entry before it with the same hash.
type valueEntry struct{ list, next int32 }

const (
	valueSize = 8
	// sameText is more values than a list has.
	sameText = 1 << 16
)

// isList reports whether a sketch is a list of values.
func isList(s *sketch.Sketch) bool { return s.Form == sketch.Values || s.Form == sketch.Sample }

// newValues returns an empty one for about as many lists.
func newValues(lists int) *values {
	return &values{heads: make([]int32, 1<<bits.Len(uint(64*lists))), entries: make([]valueEntry, 1, 64*lists+1)}
}

// marks yields the places in heads of a list's fingerprint and of its values, each with the number of values that it counts for.
func (v *values) marks(s *sketch.Sketch) iter.Seq2[*int32, int32] {
	place := func(value uint64) *int32 {
		return &v.heads[value*0x9e3779b97f4a7c15>>32&uint64(len(v.heads)-1)]
	}
	return func(yield func(*int32, int32) bool) {
		if !yield(place(s.Fingerprint), sameText) {
			return
		}
		for p := s.Payload; len(p) >= valueSize; p = p[valueSize:] {
			if !yield(place(binary.BigEndian.Uint64(p)), 1) {
				return
			}
		}
	}
}

// add adds the list of a number.
func (v *values) add(s *sketch.Sketch, number int) {
	for head := range v.marks(s) {
		v.entries = append(v.entries, valueEntry{int32(number), *head})
		*head = int32(len(v.entries) - 1)
	}
}

// count returns for each number below n how many values its list shares with another one. It may count too many, never too few. Equal texts
// count as sameText.
func (v *values) count(s *sketch.Sketch, n int) []int32 {
	v.shared = append(v.shared[:0], make([]int32, n)...)
	for head, weight := range v.marks(s) {
		for at := *head; at > 0; at = v.entries[at].next {
			v.shared[v.entries[at].list] += weight
		}
	}
	return v.shared
}

// mayReach reports whether two lists may reach the threshold, which is above 0, given how many values they share.
func (p *Profile) mayReach(a, b *sketch.Sketch, shared int32) bool {
	// If more values than most are compared, the shared ones are too few.
	most := int(min(float64(shared)/p.Threshold+1e-6, sameText))
	if p.Measure != Containment {
		return min(len(a.Payload), len(b.Payload)) <= most*valueSize
	}
	a, b = smallerFirst(a, b)
	if len(a.Payload) <= most*valueSize {
		return true
	}
	// Only values of a below the last one of b are compared.
	last := len(b.Payload) - valueSize
	return b.Cut && last >= 0 && bytes.Compare(a.Payload[most*valueSize:][:valueSize], b.Payload[last:]) >= 0
}

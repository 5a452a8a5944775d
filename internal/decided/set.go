package decided

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/rerank"
)

// Set is where searches look up decided pairs. It never changes, and is safe for concurrent use. A nil Set is empty. It takes about 80 bytes for a pair.
// It holds no ids and no pointers, so the garbage collector need not scan it. With a map of documents, a page took 7 % longer.
type Set struct {
	// sides are both documents of each pair, sorted. decisions has what was decided about each of them.
	sides     []textOf
	decisions []rerank.Decision
	indices   map[uint64]bool // the indices of pairs, by the hashes of their names
	mark      uint64
}

// textOf is a document with its text.
type textOf struct{ text, document uint64 }

func (t textOf) compare(u textOf) int {
	return cmp.Or(cmp.Compare(t.text, u.text), cmp.Compare(t.document, u.document))
}

// known is a pair with hashes in place of index and ids.
type known struct {
	index, a, b  uint64
	textA, textB uint64
	same         bool
}

// knownOf returns a pair with the lesser number first.
func knownOf(p *Pair) known {
	k := known{xxhash.Sum64String(p.Index), document(p.Index, p.A), document(p.Index, p.B), p.TextA, p.TextB, p.Verdict == Same}
	if k.a > k.b {
		k.a, k.b, k.textA, k.textB = k.b, k.a, k.textB, k.textA
	}
	return k
}

// NewSet returns a set of pairs. No two of them may have the same name.
func NewSet(pairs []Pair) *Set {
	var list []known
	for i := range pairs {
		if pairs[i].Verdict != Forgotten {
			list = append(list, knownOf(&pairs[i]))
		}
	}
	return newSet(slices.Values(list), len(list))
}

func newSet(pairs iter.Seq[known], n int) *Set {
	// side is a pair as one of its documents sees it.
	type side struct {
		textOf
		rerank.Decision
	}
	sides := make([]side, 0, 2*n)
	s := &Set{indices: map[uint64]bool{}}
	for k := range pairs {
		s.indices[k.index] = true
		sides = append(sides, side{textOf{k.textA, k.a}, rerank.Decision{Other: k.b, Fingerprint: k.textB, Same: k.same}},
			side{textOf{k.textB, k.b}, rerank.Decision{Other: k.a, Fingerprint: k.textA, Same: k.same}})
	}
	slices.SortFunc(sides, func(a, b side) int { return cmp.Or(a.compare(b.textOf), a.Decision.Compare(b.Decision)) })
	s.sides, s.decisions = make([]textOf, len(sides)), make([]rerank.Decision, len(sides))
	mark, room := xxhash.New(), make([]byte, 0, 40)
	for i, one := range sides {
		s.sides[i], s.decisions[i] = one.textOf, one.Decision
		room = room[:0]
		for _, number := range []uint64{one.text, one.document, one.Other, one.Fingerprint} {
			room = binary.LittleEndian.AppendUint64(room, number)
		}
		_, _ = mark.Write(strconv.AppendBool(room, one.Same))
	}
	s.mark = mark.Sum64()
	return s
}

// Of returns what was decided about a document whose text has this fingerprint; nil if nothing was. It implements rule.Decisions.
func (s *Set) Of(index, id string, text uint64) *rerank.Decided {
	if s == nil {
		return nil
	}
	if _, there := slices.BinarySearchFunc(s.sides, text, func(t textOf, text uint64) int { return cmp.Compare(t.text, text) }); !there {
		return nil // true of nearly all hits
	}
	wanted := textOf{text, document(index, id)}
	from, there := slices.BinarySearchFunc(s.sides, wanted, textOf.compare)
	if !there {
		return nil
	}
	to, _ := slices.BinarySearchFunc(s.sides[from:], wanted, func(t, u textOf) int { return cmp.Or(t.compare(u), -1) })
	to += from
	return &rerank.Decided{Document: wanted.document, Pairs: s.decisions[from:to:to]}
}

// Pair returns what was decided about two documents of an index with these fingerprints. is reports whether anything was.
func (s *Set) Pair(index, a string, textA uint64, b string, textB uint64) (same, is bool) {
	d := s.Of(index, a, textA)
	if d == nil {
		return false, false
	}
	i, is := slices.BinarySearchFunc(d.Pairs, rerank.Decision{Other: document(index, b), Fingerprint: textB}, rerank.Decision.Compare)
	return is && d.Pairs[i].Same, is
}

// Len returns how many pairs there are.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.sides) / 2
}

// Mark changes whenever the pairs change. It is comparable only within this process.
func (s *Set) Mark() uint64 {
	if s == nil {
		return 0
	}
	return s.mark
}

// Has reports whether there are pairs of an index.
func (s *Set) Has(index string) bool { return s != nil && s.indices[xxhash.Sum64String(index)] }

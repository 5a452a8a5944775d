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

// Set is what searches look decided pairs up in. It never changes, and is safe for concurrent use. A nil Set is empty. It takes about 130 bytes for a
// pair, and holds no id.
type Set struct {
	documents []decidedText // by their texts
	first     map[uint64]uint32
	indices   map[string]int // how many pairs each has
	mark      uint64
}

// decidedText is a document with a text, and what was decided about it.
type decidedText struct {
	text uint64
	rerank.Decided
}

// known is a pair without its ids: the numbers of both documents, their texts, and whether they are the same.
type known struct {
	index        string
	a, b         uint64
	textA, textB uint64
	same         bool
}

// knownOf returns a pair with the lesser number first.
func knownOf(p *Pair) known {
	k := known{p.Index, document(p.Index, p.A), document(p.Index, p.B), p.TextA, p.TextB, p.Verdict == Same}
	if k.a > k.b {
		k.a, k.b, k.textA, k.textB = k.b, k.a, k.textB, k.textA
	}
	return k
}

// NewSet returns the set of pairs, of which no two have one name.
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
		text, document uint64
		rerank.Decision
	}
	sides := make([]side, 0, 2*n)
	s := &Set{first: make(map[uint64]uint32, 2*n), indices: map[string]int{}}
	for k := range pairs {
		s.indices[k.index]++
		sides = append(sides, side{k.textA, k.a, rerank.Decision{Other: k.b, Fingerprint: k.textB, Same: k.same}},
			side{k.textB, k.b, rerank.Decision{Other: k.a, Fingerprint: k.textA, Same: k.same}})
	}
	slices.SortFunc(sides, func(a, b side) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.document, b.document), cmp.Compare(a.Other, b.Other))
	})
	decisions, mark, room := make([]rerank.Decision, len(sides)), xxhash.New(), make([]byte, 0, 33)
	for i, one := range sides {
		decisions[i] = one.Decision
		room = room[:0]
		for _, number := range []uint64{one.text, one.document, one.Other, one.Fingerprint} {
			room = binary.LittleEndian.AppendUint64(room, number)
		}
		_, _ = mark.Write(strconv.AppendBool(room, one.Same))
	}
	s.mark = mark.Sum64()
	for i := 0; i < len(sides); {
		end := i + 1
		for end < len(sides) && sides[end].text == sides[i].text && sides[end].document == sides[i].document {
			end++
		}
		if _, there := s.first[sides[i].text]; !there {
			s.first[sides[i].text] = uint32(len(s.documents))
		}
		s.documents = append(s.documents, decidedText{sides[i].text, rerank.Decided{Document: sides[i].document, Pairs: decisions[i:end:end]}})
		i = end
	}
	return s
}

// Of returns what was decided about a document with a text, given its fingerprint; nil for nothing. It implements rule.Decisions.
func (s *Set) Of(index, id string, text uint64) *rerank.Decided {
	if s == nil {
		return nil
	}
	at, there := s.first[text]
	if !there { // as of nearly all hits
		return nil
	}
	for number := document(index, id); int(at) < len(s.documents) && s.documents[at].text == text; at++ {
		if d := &s.documents[at].Decided; d.Document == number {
			return d
		}
	}
	return nil
}

// Pair returns what was decided about two documents of an index with these texts, and false for nothing.
func (s *Set) Pair(index, a string, textA uint64, b string, textB uint64) (same, is bool) {
	d := s.Of(index, a, textA)
	if d == nil {
		return false, false
	}
	number := document(index, b)
	i := slices.IndexFunc(d.Pairs, func(p rerank.Decision) bool { return p.Other == number && p.Fingerprint == textB })
	if i < 0 {
		return false, false
	}
	return d.Pairs[i].Same, true
}

// Len returns how many pairs there are.
func (s *Set) Len() (n int) {
	if s == nil {
		return 0
	}
	for _, pairs := range s.indices {
		n += pairs
	}
	return n
}

// Mark is another one if other pairs are decided.
func (s *Set) Mark() uint64 { return s.mark }

// Has reports whether there are pairs of an index.
func (s *Set) Has(index string) bool { return s != nil && s.indices[index] > 0 }

package decided

import (
	"cmp"
	"slices"

	"github.com/neardup/sidecar/rerank"
)

// Set is what searches look decided pairs up in. It never changes, and is safe for concurrent use. A nil Set is empty. It takes about 130 bytes for a
// pair, and holds no id.
type Set struct {
	documents []decidedText // by their texts
	first     map[uint64]uint32
	indices   map[string]int
}

// decidedText is a document with a text, and what was decided about it.
type decidedText struct {
	text uint64
	rerank.Decided
}

// side is a pair as one of its documents sees it.
type side struct {
	text, document uint64
	rerank.Decision
}

// NewSet returns the set of pairs, of which no two have one name.
func NewSet(pairs []Pair) *Set {
	sides, indices := make([]side, 0, 2*len(pairs)), map[string]int{}
	for _, p := range pairs {
		if p.Verdict != Forgotten {
			a, b, same := document(p.Index, p.A), document(p.Index, p.B), p.Verdict == Same
			sides = append(sides, sidesOf(a, b, known{p.TextA, p.TextB, same})...)
			indices[p.Index]++
		}
	}
	return newSet(sides, indices)
}

// known is what is known of two documents: both texts, and whether they are the same.
type known struct {
	textA, textB uint64
	same         bool
}

// sidesOf returns both sides of a pair of documents.
func sidesOf(a, b uint64, k known) []side {
	return []side{
		{k.textA, a, rerank.Decision{Other: b, Fingerprint: k.textB, Same: k.same}},
		{k.textB, b, rerank.Decision{Other: a, Fingerprint: k.textA, Same: k.same}},
	}
}

func newSet(sides []side, indices map[string]int) *Set {
	slices.SortFunc(sides, func(a, b side) int { return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.document, b.document)) })
	s := &Set{first: make(map[uint64]uint32, len(sides)), indices: indices}
	decisions := make([]rerank.Decision, len(sides))
	for i, one := range sides {
		decisions[i] = one.Decision
	}
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

// Has reports whether there are pairs of an index.
func (s *Set) Has(index string) bool { return s != nil && s.indices[index] > 0 }

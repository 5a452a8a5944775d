package decided

import (
	"hash/maphash"
	"time"
)

// Verdict is what was decided about a pair.
type Verdict string

// The verdicts. Forgotten takes back what was decided before.
const (
	Same      Verdict = "same"
	Different Verdict = "different"
	Forgotten Verdict = ""
)

// Pair is a decision about two documents of an index. Their order does not matter.
type Pair struct {
	// Index is the name that rules are matched against: the index, or the data stream that it belongs to. A and B are the ids.
	Index   string  `json:"index"`
	A       string  `json:"a"`
	B       string  `json:"b"`
	Verdict Verdict `json:"verdict,omitempty"`
	// TextA and TextB are the fingerprints of the texts that were decided about.
	TextA uint64 `json:"text_a,omitempty"`
	TextB uint64 `json:"text_b,omitempty"`
	// By is who decided, empty if unknown. At is when.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at,omitzero"`
}

// Name identifies a pair. It is equal for the same two documents, in either order.
type Name struct{ Index, A, B string }

// Name returns the pair's name.
func (p *Pair) Name() Name {
	if p.A > p.B {
		return Name{p.Index, p.B, p.A}
	}
	return Name{p.Index, p.A, p.B}
}

// says reports whether p and q, which have the same name, decide the same about the same texts. The zero Pair decides nothing.
func (p Pair) says(q Pair) bool {
	if p.A != q.A {
		q.TextA, q.TextB = q.TextB, q.TextA
	}
	return p.Verdict == q.Verdict && (p.Verdict == Forgotten || p.TextA == q.TextA && p.TextB == q.TextB)
}

// seed differs in each process, so that nobody can choose two ids that collide.
var seed = maphash.MakeSeed()

// document returns a 64-bit hash that identifies a document in this process.
func document(index, id string) uint64 {
	return maphash.Comparable(seed, [2]string{index, id})
}

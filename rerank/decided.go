package rerank

import (
	"cmp"
	"slices"
)

// Decided is what people have decided about a document: that it and another one are always near-duplicates, or never, whatever their sketches
// say. It must not change once it is in a hit.
type Decided struct {
	// Document names the document in the Pairs of others.
	Document uint64
	Pairs    []Decision // in the order of Compare
}

// Decision is what was decided about a document and another one.
type Decision struct {
	// Other is the Document of the other one. Fingerprint is that of its text when people decided: once the text changes, the decision is ignored.
	Other, Fingerprint uint64
	// Same reports whether the two are near-duplicates.
	Same bool
}

// Compare orders decisions by Other, then by Fingerprint.
func (d Decision) Compare(e Decision) int {
	return cmp.Or(cmp.Compare(d.Other, e.Other), cmp.Compare(d.Fingerprint, e.Fingerprint))
}

// Decision returns what was decided about two hits; nil if nothing was.
func (h *Hit) Decision(other *Hit) *Decision {
	if h.Decided == nil || other.Decided == nil || h.Sketch == nil || other.Sketch == nil {
		return nil
	}
	wanted := Decision{Other: other.Decided.Document, Fingerprint: other.Sketch.Fingerprint}
	i, there := slices.BinarySearchFunc(h.Decided.Pairs, wanted, Decision.Compare)
	if !there {
		return nil
	}
	return &h.Decided.Pairs[i]
}

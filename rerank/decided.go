package rerank

// Decided is what people have decided about a document: that it and another one are always near-duplicates, or never, whatever their sketches
// say. It is not changed once it is in a hit.
type Decided struct {
	// Document names the document in the Pairs of others.
	Document uint64
	Pairs    []Decision
}

// Decision is what was decided about a document and another one.
type Decision struct {
	// Other names the other document, Fingerprint is that of its text when it was decided: of another text the decision says nothing.
	Other, Fingerprint uint64
	// Same says that the two are near-duplicates, and otherwise that they are not.
	Same bool
}

// Decision returns what was decided about two hits, nil for nothing.
func (h *Hit) Decision(other *Hit) *Decision {
	if h.Decided == nil || other.Decided == nil || h.Sketch == nil || other.Sketch == nil {
		return nil
	}
	for i := range h.Decided.Pairs {
		if d := &h.Decided.Pairs[i]; d.Other == other.Decided.Document && d.Fingerprint == other.Sketch.Fingerprint {
			return d
		}
	}
	return nil
}

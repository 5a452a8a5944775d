package rerank

import (
	"fmt"

	"github.com/neardup/sidecar/sketch"
)

// Why says in words, as a part of a sentence, why [Profile.Judge] decided so about two documents.
func (p *Profile) Why(a, b *sketch.Sketch, agreement float64, reason Reason) string {
	measure := "agreement"
	if p.Measure == Containment {
		measure = "containment"
	}
	switch reason {
	case SameText:
		if a.Form == sketch.VectorSides {
			return "the vectors point the same way"
		}
		return "it is the same text, except perhaps for case and white space"
	case SameWords:
		return "the words are the same"
	case Agrees:
		return fmt.Sprintf("the %s %.4f reaches %v", measure, agreement, p.Threshold)
	case Incomparable:
		return "the sketches can't be compared, or say too little"
	case OtherNumbers:
		return "other numbers, signs or versions, and by this rule they decide"
	case VectorsAgree:
		return fmt.Sprintf("the cosine %.4f of the vectors reaches %v", agreement, p.Vector.Threshold)
	case OtherVectors:
		if a.Vector == nil || b.Vector == nil {
			return "the texts agree, but one has no vector"
		}
		cosine, comparable := a.Vector.Agreement(b.Vector)
		if !comparable {
			return "the texts agree, but they have vectors of different lengths"
		}
		return fmt.Sprintf("the texts agree, but not the vectors: their cosine %.4f is below %v", max(0, cosine), p.Vector.Threshold)
	case OtherTopics:
		return "other topics: one text often has a word that the other does not repeat"
	case TooShort:
		if shingles := min(a.Shingles, b.Shingles); int64(shingles) < int64(p.MinShingles) {
			return fmt.Sprintf("too short to fold by agreement: %d shingles, %d needed", shingles, p.MinShingles)
		}
		return fmt.Sprintf("too short to fold by agreement: %d words, %d needed", min(a.Words, b.Words), p.MinWords)
	}
	return fmt.Sprintf("the %s %.4f is below %v", measure, max(0, agreement), p.Threshold)
}

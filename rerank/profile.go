package rerank

import (
	"slices"

	"github.com/neardup/sidecar/sketch"
)

// Profile says when two documents count as near-duplicates.
type Profile struct {
	// Threshold is the least agreement, 0 to 1, at which two documents are near-duplicates by their sketches alone.
	Threshold float64
	// MinShingles is how many shingles both documents must have to be near-duplicates by agreement, because a handful of shingles can agree
	// by accident. Shorter ones are near-duplicates only if they have the same words.
	MinShingles int
	// MinWords is how many words both documents must have to be near-duplicates by agreement. In a shorter text one word or number makes
	// another statement, so short ones are near-duplicates only if they have the same words. 0 ignores the number of words.
	MinWords int
	// Numbers says what a difference in numbers means.
	Numbers Numbers
	// Measure is what is compared with the threshold.
	Measure Measure
	// Within, if above 0, is how many milliseconds Traits.At of near-duplicates may be apart. With Same their Traits.Same must be equal,
	// with Different their Traits.Different must have nothing in common. A hit without such a value folds with nothing.
	Within          int64
	Same, Different bool
	// Vector is what vectors decide beside the texts; its zero value nothing.
	Vector Vector
	// Keep is how many members of a group are shown; 0 is 1.
	Keep int
	// Chooses shows the members of a group with the greatest Merit, or the least if Ascending. Otherwise the first-ranked are shown.
	Chooses, Ascending bool
	// Basis names the fields that Traits are made of, where one search has profiles with different ones: see [Hit.Others].
	Basis string
}

// Vector says how the vectors of two documents ([sketch.Sketch.Vector]) decide together with their texts. Documents without vectors, or with two that are not
// comparable, have vectors that differ.
type Vector struct {
	Combine Combine
	// Threshold is the least cosine at which two vectors are alike.
	Threshold float64
}

// Combine names how vectors and texts decide together. The empty Combine lets vectors decide nothing.
type Combine string

const (
	// Both: documents are near-duplicates if their texts are and their vectors are alike.
	Both Combine = "both"
	// Either: documents are near-duplicates if their texts are or their vectors are alike.
	Either Combine = "either"
)

// alike reports whether the vectors of two documents are, and their cosine.
func (v *Vector) alike(a, b *sketch.Sketch) (alike bool, cosine float64) {
	if a.Vector == nil || b.Vector == nil {
		return false, 0
	}
	cosine, comparable := a.Vector.Agreement(b.Vector)
	return comparable && cosine >= v.Threshold, cosine
}

// Measure names what is estimated from two sketches and compared with the threshold.
type Measure string

const (
	// Resemblance is |A∩B| / |A∪B| of the two sets; the empty Measure is it too.
	Resemblance Measure = "resemblance"
	// Containment is |A∩B| over the smaller of the two sets: high where one text is a part of the other (Broder 1997). It counts only
	// where its standard error is at most MaxContainmentError.
	Containment Measure = "containment"
)

// MaxContainmentError is the greatest standard error at which a containment counts. A sketch says little or nothing about a small excerpt
// of a large text. Without this bound 128 positions took 770 in a million unrelated pairs for excerpts at a threshold of 0.7, with it none.
const MaxContainmentError = 0.16

// Numbers names what a difference in numbers, signs and versions means.
type Numbers string

const (
	// CountNumbers takes a number for a word: it decides in a short text and counts little in a long one. The empty Numbers is it too.
	CountNumbers Numbers = "count"
	// DecideByNumbers keeps apart documents whose numbers differ, however long they are.
	DecideByNumbers Numbers = "decide"
	// IgnoreNumbers folds documents that differ in nothing else. The scheme must leave the numbers out ([sketch.Scheme.DropNumbers]).
	IgnoreNumbers Numbers = "ignore"
)

// Default is the preset for most kinds of text. The presets are chosen by measurement: see docs/internals/quality.md.
func Default() Profile { return Profile{Threshold: 0.64, MinShingles: 8, MinWords: 50} }

// Safe is the preset that folds wrongly in fewer than 3 cases of 100 on every kind measured. It misses about a third of what a person would
// fold.
func Safe() Profile { return Profile{Threshold: 0.88, MinShingles: 8, MinWords: 60} }

// Thorough is the preset that finds more and is wrong more often.
func Thorough() Profile { return Profile{Threshold: 0.52, MinShingles: 8, MinWords: 30} }

// Presets returns the presets by their names.
func Presets() map[string]Profile {
	return map[string]Profile{"default": Default(), "safe": Safe(), "thorough": Thorough()}
}

// NearDuplicates reports whether two documents are near-duplicates by their sketches. The agreement is 0 where the two are not comparable.
func (p *Profile) NearDuplicates(a, b *sketch.Sketch) (near bool, agreement float64) {
	agreement, reason := p.Judge(a, b)
	return reason.Near(), agreement
}

// Reason is why two documents are near-duplicates or not.
type Reason int

const (
	// SameText: the texts are equal but for case and white space. SameWords: their words are.
	SameText Reason = iota
	SameWords
	// Agrees: the agreement reaches the threshold.
	Agrees
	// VectorsAgree: the texts are no near-duplicates, but the vectors are alike, and they may decide alone ([Either]). It is the last reason for which
	// documents are near-duplicates.
	VectorsAgree
	// Incomparable: there is no agreement.
	Incomparable
	// Disagrees: the agreement is below the threshold.
	Disagrees
	// OtherNumbers: their numbers differ, and numbers decide.
	OtherNumbers
	// TooShort: one is too short to be a near-duplicate by agreement.
	TooShort
	// OtherTopics: one often has a word that the other does not repeat.
	OtherTopics
	// OtherVectors: the texts are near-duplicates, but the vectors are not alike, and must be ([Both]).
	OtherVectors
)

// Near reports whether the documents are near-duplicates.
func (r Reason) Near() bool { return r <= VectorsAgree }

// Judge decides whether two documents are near-duplicates, and says why. All that fold, cluster or compare documents decide by it. The
// agreement is 0 where the two are not comparable. It is that of the texts, and for [VectorsAgree] that of the vectors.
func (p *Profile) Judge(a, b *sketch.Sketch) (agreement float64, reason Reason) {
	agreement, comparable := p.agreement(a, b)
	if !comparable && !a.SameText(b) {
		reason = Incomparable
	} else {
		reason = p.JudgeAt(a, b, agreement)
	}
	switch near := reason.Near(); {
	case p.Vector.Combine == Both && near:
		if alike, _ := p.Vector.alike(a, b); !alike {
			reason = OtherVectors
		}
	case p.Vector.Combine == Either && !near:
		if alike, cosine := p.Vector.alike(a, b); alike {
			return cosine, VectorsAgree
		}
	}
	return agreement, reason
}

// JudgeAt is Judge of the texts alone for an agreement that is known already.
func (p *Profile) JudgeAt(a, b *sketch.Sketch, agreement float64) Reason {
	switch {
	case a.SameText(b):
		return SameText
	case agreement < p.Threshold:
		return Disagrees
	case p.Numbers == DecideByNumbers && a.Numbers != b.Numbers:
		return OtherNumbers
	case agreement >= 1 && a.SameWords(b):
		return SameWords
	case !p.longEnough(a, b):
		return TooShort
	case p.Measure != Containment && a.OtherTopics(b): // an excerpt need not repeat the words of its whole
		return OtherTopics
	}
	return Agrees
}

// agreement is the profile's measure of two sketches, comparable only where its error is small enough.
func (p *Profile) agreement(a, b *sketch.Sketch) (agreement float64, comparable bool) {
	if p.Measure != Containment {
		return a.Agreement(b)
	}
	e, ok := p.estimate(a, b)
	return e.Value, ok && e.Error <= MaxContainmentError
}

// Estimate returns the agreement of [Profile.Judge] with its standard error. It reports false where the two are not comparable.
func (p *Profile) Estimate(a, b *sketch.Sketch) (sketch.Estimate, bool) {
	if p.Vector.Combine == Either {
		if cosine, reason := p.Judge(a, b); reason == VectorsAgree {
			return sketch.Estimate{Value: cosine, Error: a.Vector.StandardError(b.Vector)}, true
		}
	}
	return p.estimate(a, b)
}

// estimate is Estimate of the texts alone.
func (p *Profile) estimate(a, b *sketch.Sketch) (sketch.Estimate, bool) {
	if p.Measure == Containment {
		a, b = smallerFirst(a, b)
		return a.Containment(b)
	}
	agreement, ok := a.Agreement(b)
	return sketch.Estimate{Value: agreement, Error: a.StandardError(b)}, ok
}

func smallerFirst(a, b *sketch.Sketch) (smaller, larger *sketch.Sketch) {
	if b.Shingles < a.Shingles {
		return b, a
	}
	return a, b
}

// Near reports whether a hit may fold into another by the profile: they are near-duplicates and its conditions hold, or it was decided so.
func (p *Profile) Near(hit, other *Hit) (near bool, agreement float64) {
	if hit.Sketch == nil || other.Sketch == nil {
		return false, 0
	}
	if d := hit.Decision(other); d != nil {
		agreement, _ = p.agreement(hit.Sketch, other.Sketch)
		return d.Same, agreement
	}
	if !p.ConditionsHold(hit, other) {
		return false, 0
	}
	return p.NearDuplicates(hit.Sketch, other.Sketch)
}

// conditional reports whether the profile has conditions.
func (p *Profile) conditional() bool { return p.Same || p.Different || p.Within > 0 }

// ConditionsHold reports whether the conditions beside the agreement hold, if there are any.
func (p *Profile) ConditionsHold(hit, other *Hit) bool {
	return !p.conditional() || p.conditionsHold(hit, other)
}

func (p *Profile) conditionsHold(hit, other *Hit) bool {
	a, b := hit.traits(p.Basis), other.traits(p.Basis)
	switch {
	case a == nil || b == nil:
		return false
	case p.Same && (a.Same == "" || a.Same != b.Same):
		return false
	case p.Different && !disjoint(a.Different, b.Different):
		return false
	case p.Within > 0:
		return a.Timed && b.Timed && uint64(max(a.At, b.At))-uint64(min(a.At, b.At)) <= uint64(p.Within) // never overflows
	}
	return true
}

// disjoint reports whether both have values of every field and none in common.
func disjoint(a, b [][]string) bool {
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	for i := range a {
		if len(a[i]) == 0 || len(b[i]) == 0 || slices.ContainsFunc(a[i], func(v string) bool { return slices.Contains(b[i], v) }) {
			return false
		}
	}
	return true
}

// longEnough reports whether both are long enough to be near-duplicates by agreement.
func (p *Profile) longEnough(a, b *sketch.Sketch) bool { return p.Long(a) && p.Long(b) }

// Long reports whether a document is long enough to be a near-duplicate by agreement. Ready values and vectors have no length, tags no words.
func (p *Profile) Long(s *sketch.Sketch) bool {
	return s.Form == sketch.Ready || s.Form == sketch.VectorSides || int64(s.Shingles) >= int64(p.MinShingles) && (s.Words == 0 || int64(s.Words) >= int64(p.MinWords))
}

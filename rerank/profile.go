package rerank

import (
	"slices"

	"github.com/neardup/sidecar/sketch"
)

// Profile says when two documents count as near-duplicates.
type Profile struct {
	// Threshold is the least agreement, 0 to 1, at which two documents are near-duplicates by their sketches alone.
	Threshold float64
	// MinShingles is how many shingles both documents must have to be near-duplicates by agreement; shorter ones are so by fingerprint
	// alone, because a handful of shingles can agree by accident.
	MinShingles int
	// Measure is what is compared with the threshold.
	Measure Measure
	// Within, if above 0, is how many milliseconds Traits.At of near-duplicates may be apart. With Same their Traits.Same must be equal,
	// with Different their Traits.Different must have nothing in common. A hit without such a value folds with nothing.
	Within          int64
	Same, Different bool
	// Keep is how many members of a group are shown; 0 is 1.
	Keep int
	// Chooses shows the members of a group with the greatest Merit, or the least if Ascending. Otherwise the first-ranked are shown.
	Chooses, Ascending bool
	// Basis names the fields that Traits are made of, where one search has profiles with different ones: see [Hit.Others].
	Basis string
	// Check decides doubtful pairs where both texts are available ([Profile.NearDuplicateTexts]). [Collapse] does not use it, so a page
	// does not depend on the fields that the client asked for.
	Check Check
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

// Check is a second look at pairs whose agreement leaves a doubt: they are near-duplicates if their exact resemblance is at or above the
// threshold or their coverage is at or above Coverage. The zero Check leaves no doubt.
type Check struct {
	// From and To bound the doubtful agreements, To excluded. Below From a pair is not one of near-duplicates; from To on it is.
	From, To float64
	// Coverage is the least coverage ([sketch.Text.Compare]) at which a doubtful pair is one of near-duplicates; 0 ignores it.
	Coverage float64
}

// Default is the preset with the best mean F1 over the kinds of text measured. The presets are chosen by measurement: see docs/internals/quality.md.
func Default() Profile {
	return Profile{Threshold: 0.64, MinShingles: 8, Check: Check{From: 0.25, To: 0.76, Coverage: 0.90}}
}

// Safe is the preset that folds wrongly in fewer than 3 cases of 100 on every kind measured. It misses about half of what a person would fold.
func Safe() Profile {
	return Profile{Threshold: 0.88, MinShingles: 8, Check: Check{From: 0.78, To: 0.96}}
}

// Thorough is the preset that finds more and is wrong more often.
func Thorough() Profile {
	return Profile{Threshold: 0.52, MinShingles: 8, Check: Check{From: 0.20, To: 0.62, Coverage: 0.86}}
}

// Presets returns the presets by their names.
func Presets() map[string]Profile {
	return map[string]Profile{"default": Default(), "safe": Safe(), "thorough": Thorough()}
}

// NearDuplicates reports whether two documents are near-duplicates by their sketches: same text, or agreement at or above the
// threshold. The agreement is 0 where the two are not comparable.
func (p *Profile) NearDuplicates(a, b *sketch.Sketch) (near bool, agreement float64) {
	agreement, comparable := p.agreement(a, b)
	near = comparable && agreement >= p.Threshold && p.longEnough(a, b) || a.SameText(b)
	return near, agreement
}

// agreement is the profile's measure of two sketches, comparable only where its error is small enough.
func (p *Profile) agreement(a, b *sketch.Sketch) (agreement float64, comparable bool) {
	if p.Measure != Containment {
		return a.Agreement(b)
	}
	e, ok := p.Estimate(a, b)
	return e.Value, ok && e.Error <= MaxContainmentError
}

// Estimate returns the profile's measure of two sketches with its standard error. It reports false where they are not comparable.
func (p *Profile) Estimate(a, b *sketch.Sketch) (sketch.Estimate, bool) {
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

// Near reports whether a hit may fold into another by the profile: they are near-duplicates and its conditions hold.
func (p *Profile) Near(hit, other *Hit) (near bool, agreement float64) {
	if hit.Sketch == nil || other.Sketch == nil || p.conditional() && !p.conditionsHold(hit, other) {
		return false, 0
	}
	return p.NearDuplicates(hit.Sketch, other.Sketch)
}

// conditional reports whether the profile has conditions.
func (p *Profile) conditional() bool { return p.Same || p.Different || p.Within > 0 }

// conditionsHold reports whether the conditions beside the agreement hold.
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

// longEnough reports whether both have enough shingles; ready values have none to count.
func (p *Profile) longEnough(a, b *sketch.Sketch) bool {
	return a.Form == sketch.Ready || int64(min(a.Shingles, b.Shingles)) >= int64(p.MinShingles)
}

// NearDuplicateTexts is NearDuplicates with a Check of doubtful pairs. For these it calls compare, which must return [sketch.Text.Compare]
// of the two documents.
func (p *Profile) NearDuplicateTexts(a, b *sketch.Sketch, compare func() (resemblance, coverage float64)) (near bool, agreement float64) {
	near, agreement = p.NearDuplicates(a, b)
	if c := p.Check; agreement >= c.From && agreement < c.To && p.longEnough(a, b) && !a.SameText(b) {
		resemblance, coverage := compare()
		near = resemblance >= p.Threshold || c.Coverage > 0 && coverage >= c.Coverage
	}
	return near, agreement
}

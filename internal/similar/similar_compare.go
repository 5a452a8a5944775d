package similar

import (
	"math"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Comparison is how two documents compare under a rule.
type Comparison struct {
	// Folds says that one would fold into the other in a search, as far as their texts count.
	Folds bool `json:"folds"`
	// Why says in words why they fold or not; empty if one has no text.
	Why       string         `json:"why"`
	Threshold float64        `json:"threshold"`
	Measure   rerank.Measure `json:"measure"`
	// Agreement is what the measure estimates from both sketches, and Error its standard error; 0 where they can't be compared.
	Agreement float64 `json:"agreement"`
	Error     float64 `json:"error"`
	// SameText says that both texts are equal but for case and space.
	SameText bool `json:"same_text"`
	// Exact is nil for what has no shingles.
	Exact *Exact `json:"exact,omitempty"`
}

// Exact is what the shingles of two documents tell.
type Exact struct {
	Resemblance float64 `json:"resemblance"`
	// AInB is the share of a's shingles that b has, BInA the other way round.
	AInB float64 `json:"a_in_b"`
	BInA float64 `json:"b_in_a"`
	// Coverage is the share of both texts that lies where they run along each other: see [sketch.Text.Compare].
	Coverage float64 `json:"coverage"`
	// ShinglesA and ShinglesB are how many different ones each has, and Shared how many both have.
	ShinglesA int `json:"shingles_a"`
	ShinglesB int `json:"shingles_b"`
	Shared    int `json:"shared"`
}

// Compare compares two documents in JSON, or texts as [rule.Rule.Given] takes them.
func Compare(r *rule.Rule, a, b []byte, threshold float64) Comparison {
	profile := r.Profile
	if threshold > 0 {
		profile.Threshold = threshold
	}
	c := Comparison{Threshold: profile.Threshold, Measure: profile.Measure}
	if c.Measure == "" {
		c.Measure = rerank.Resemblance
	}
	textsA, sketchA := r.Given(a)
	textsB, sketchB := r.Given(b)
	if sketchA != nil && sketchB != nil {
		k := likening{rule: r, profile: profile, sketch: *sketchA}
		agreement, reason := profile.Judge(sketchA, sketchB)
		c.Agreement, c.Folds, c.Why = agreement, reason.Near(), profile.Why(sketchA, sketchB, agreement, reason)
		one := k.alike("", sketchB, c.Agreement)
		c.Error, c.SameText = one.Error, one.SameText
	}
	if !r.Sketcher.Scheme().Features.Sets() {
		return c
	}
	setA, setB := r.Sketcher.Shingles(textsA...), r.Sketcher.Shingles(textsB...)
	e := Exact{ShinglesA: len(setA), ShinglesB: len(setB)}
	if len(setA) > 0 && len(setB) > 0 {
		e.Resemblance, e.Coverage = r.Sketcher.Text(textsA...).Compare(r.Sketcher.Text(textsB...))
		e.AInB, e.BInA = sketch.Containment(setA, setB), sketch.Containment(setB, setA)
		e.Shared = int(math.Round(e.AInB * float64(len(setA))))
	}
	c.Exact = &e
	return c
}

package playground

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// TestApart: a hit that agrees with an earlier one and does not fold is shown with the reason, and with the numbers that differ.
func TestApart(t *testing.T) {
	s := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	profile := rerank.Default()
	texts := []string{
		"Take one tablet of 1.5 mg in the morning and one of 4.0 mg at night",
		"Quite another text about goats that climb into trees",
		"take one tablet of 15 mg in the morning and one of 40 mg at night!",
		"TAKE one tablet of 1.5 mg in the morning and one of 4.0 mg at night!",
	}
	var hits []rerank.Hit
	var shown []hit
	for _, text := range texts {
		k, _ := s.Sketch(text)
		hits = append(hits, rerank.Hit{Sketch: &k, Profile: &profile})
		shown = append(shown, hit{Fields: map[string]string{"body": text}})
	}
	_, got := compared(hits, shown)
	for i := range got {
		if got[i].Agreement < 0.5 || got[i].Agreement > 0.95 {
			t.Errorf("agreement %v", got[i].Agreement)
		}
		got[i].Agreement = 0
	}
	want := []apart{
		{Rank: 2, With: 0, Why: "too short to fold by agreement: 16 words, 50 needed; numbers differ: 1.5, 4.0 only in rank 1; 15, 40 only here"},
		{Rank: 3, With: 2, Why: "too short to fold by agreement: 16 words, 50 needed; numbers differ: 15, 40 only in rank 3; 1.5, 4.0 only here"},
	}
	expect.Same(t, want, got, "the texts")
}

// TestDecidedPairs: what was decided about two hits comes before their texts.
func TestDecidedPairs(t *testing.T) {
	s := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	profile := rerank.Default()
	var hits []rerank.Hit
	for _, text := range []string{"Quite another text about goats that climb into trees", "a ferry", "a ferry"} {
		k, _ := s.Sketch(text)
		hits = append(hits, rerank.Hit{Sketch: &k, Profile: &profile, Decided: &rerank.Decided{Document: uint64(len(hits))}})
	}
	for _, d := range []struct {
		rank, with int
		same       bool
	}{{1, 0, true}, {2, 1, false}} {
		decision := rerank.Decision{Other: uint64(d.with), Fingerprint: hits[d.with].Sketch.Fingerprint, Same: d.same}
		hits[d.rank].Decided.Pairs = append(hits[d.rank].Decided.Pairs, decision)
	}
	pairs, kept := compared(hits, make([]hit, len(hits)))
	expect.Same(t, [][]float64{{0, 1, 1, 2}}, pairs, "pairs")
	expect.Same(t, []apart{{Rank: 2, With: 1, Agreement: 1, Why: "it was decided that they are different"}}, kept, "kept apart")
}

// TestVectorPairs: where vectors are enough, a pair of texts folds at any threshold of the page.
func TestVectorPairs(t *testing.T) {
	s := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	vectors := expect.Value(sketch.New(sketch.Scheme{Family: sketch.SimHash, Features: sketch.Vectors, Positions: 1024}))(t)
	list := []struct{ text, vector string }{
		{"a b c d e f g h i j", "[1,0]"}, {"a b c d e f g h i k", "[1,0.1]"}, {"a b c d e f g h i j", "[0,1]"}, {"quite another text", "[1,0]"}, {"a b c d e f g h i k", ""},
	}
	for combine, want := range map[rerank.Combine][][]float64{
		rerank.Either: {{0, 1, 1, 3}, {0, 2, 1, 1}, {1, 2}, {0, 3, 1, 3}, {1, 3, 1, 3}, {0, 4}, {1, 4, 1, 1}, {2, 4}},
		rerank.Both:   {{0, 1}},
		"":            {{0, 1}, {0, 2, 1, 1}, {1, 2}, {0, 4}, {1, 4, 1, 1}, {2, 4}},
	} {
		var hits []rerank.Hit
		for _, d := range list {
			k, _ := s.Sketch(d.text)
			if v, ok := vectors.Sketch(d.vector); ok {
				k.Vector = &v
			}
			hits = append(hits, rerank.Hit{Sketch: &k, Profile: &rerank.Profile{Threshold: 0.5, Vector: rerank.Vector{Combine: combine, Threshold: 0.9}}})
		}
		pairs, _ := compared(hits, make([]hit, len(hits)))
		for i, pair := range pairs {
			if len(pair) == 3 { // by the agreement of the texts
				if pair[2] < 0.4 || pair[2] > 0.99 {
					t.Errorf("%q: agreement %v", combine, pair)
				}
				pairs[i] = pair[:2]
			}
		}
		expect.Same(t, want, pairs, "%q", combine)
	}
}

package collapse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

func viewRule(t *testing.T, scheme sketch.Scheme) *rule.Rule {
	t.Helper()
	sketcher := expect.Value(sketch.New(scheme))(t)
	return &rule.Rule{Match: "a", Fields: []string{"body"}, Sketcher: sketcher, Choice: rule.Choice{By: rule.ByNewest}}
}

func TestShared(t *testing.T) {
	document := func(text string) []byte { return fmt.Appendf(nil, `{"body":%q}`, text) }
	for _, c := range []struct {
		name   string
		scheme sketch.Scheme
		a, b   string
		want   []string
	}{
		{"words", sketch.Scheme{Words: 2}, "One two, three. Four", "zero one TWO three five four", []string{"one two", "two three"}},
		{"fewer words than a shingle", sketch.Scheme{Words: 3}, "one two", "One  two", []string{"one two"}},
		{"characters", sketch.Scheme{Features: sketch.CharacterShingles, Characters: 3}, "abcd", "xbcd", []string{"bcd"}},
		{"a script without blanks", sketch.Scheme{Characters: 2}, "東京都民", "京都民東", []string{"京都", "都民"}},
		{"ready values", sketch.Scheme{Family: sketch.Hamming, Features: sketch.Value64, Positions: 64}, "0123456789abcdef", "0123456789abcdef", []string{}},
		{"no more than asked for", sketch.Scheme{Words: 1}, "a b c d e f g h i j k l m", "a b c d e f g h i j k l m", strings.Fields("a b c d e f g h i j")},
		{"a long one", sketch.Scheme{Words: 1}, strings.Repeat("é", 150) + " a", strings.Repeat("é", 150), []string{strings.Repeat("e", 150)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := sharedShingles(viewRule(t, c.scheme), document(c.a), document(c.b))
			expect.Same(t, c.want, got, "")
		})
	}
}

// TestExplainedVectors: where vectors decide, theirs is the threshold that is shown.
func TestExplainedVectors(t *testing.T) {
	vectors, err := sketch.New(sketch.Scheme{Family: sketch.SimHash, Features: sketch.Vectors, Positions: 1024})
	expect.OK(t, err)
	r := viewRule(t, sketch.Scheme{})
	p := &rerank.Profile{Threshold: 0.5, Vector: rerank.Vector{Combine: rerank.Either, Threshold: 0.85}}
	hits := make([]rerank.Hit, 3)
	for i, text := range []string{"a b c d e f", "u v w x y z", "a b c d e g"} {
		s, _ := r.Sketch([]string{text})
		if v, ok := vectors.Sketch("[1,2]"); ok && i < 2 {
			s.Vector = &v
		}
		hits[i] = rerank.Hit{ID: fmt.Sprint(i), Sketch: &s, Profile: p}
	}
	s := &search{query: named{}, page: rerank.Page{Size: 10, Window: 5, Whole: true}, asked: &adapters.Asked{Scope: adapters.Scope{Explains: true}}, judge: rule.NewJudge(nil, 0, 0)}
	s.found = rerank.FindPage(s.page)
	for range s.found.Readings() {
		expect.OK(t, s.found.Add(hits))
	}
	for other, want := range map[int]string{1: `"by":"vector","threshold":0.85,"shingles":[5,5]}`, 2: `"by":"sketch","shingles":[5,5]}`} {
		if _, why := s.pair(0, other); !strings.HasSuffix(string(why), want) {
			t.Errorf("0 and %d: %s, want …%s", other, why, want)
		}
	}
}

// named is a search whose hits are named by their ids.
type named struct{ adapters.Search }

func (named) Name(hit *rule.Seen) []byte { return []byte(hit.ID) }

func TestGroups(t *testing.T) {
	r := viewRule(t, sketch.Scheme{})
	texts := []string{"a b c d e f", "a b c d e g", "x y z", "a b c d e f", "q r s"}
	hits := make([]rerank.Hit, len(texts))
	for i, text := range texts {
		s, _ := r.Sketch([]string{text})
		merit := rerank.Merit{Known: i > 0, Number: float64(-i)} // of the group of 0, 1 and 3 the second is shown, then the fourth
		hits[i] = rerank.Hit{ID: fmt.Sprint(i), Sketch: &s, Traits: rerank.Traits{Merit: merit}, Profile: &rerank.Profile{Threshold: 0.5, Keep: 2, Chooses: true}}
	}
	hits[4].Sketch, hits[4].Profile = nil, nil
	s := &search{query: named{}, page: rerank.Page{Size: 10, Window: 5, Whole: true}, asked: &adapters.Asked{Scope: adapters.Scope{Explains: true, Expand: rule.ExpandIDs}}, judge: rule.NewJudge(nil, 0, 0)}
	s.found = rerank.FindPage(s.page)
	for range s.found.Readings() {
		expect.OK(t, s.found.Add(hits))
	}
	for _, hit := range hits {
		s.compared = append(s.compared, rule.Seen{ID: hit.ID})
	}
	shown := s.groups()
	for rank, want := range map[int]struct{ folded, why, beside string }{
		1: {"0 0.6549", `{"representative":"newest","leader":0,"folded":1,"threshold":0.5,"measure":"resemblance","window":5}`, ""},
		2: {"", `{"representative":"newest","folded":0,"threshold":0.5,"measure":"resemblance","window":5}`, ""},
		3: {"", "", `{"agreement":1.0000,"error":0.0073,"by":"fingerprint","shingles":[5,5]}`},
		4: {"", `{"representative":"newest","folded":0,"window":5}`, ""},
		9: {"", `{"representative":"newest","folded":0,"window":5}`, ""},
	} {
		g := s.group(rank, r, shown)
		var folded []string
		for _, f := range g.Folded {
			folded = append(folded, fmt.Sprintf("%s %s", f.Judged.ID, f.Agreement))
		}
		if got := strings.Join(folded, " "); got != want.folded || string(g.Why) != want.why || string(g.Beside) != want.beside || !g.Exact {
			t.Errorf("rank %d: [%s] %s %s %v", rank, got, g.Why, g.Beside, g.Exact)
		}
	}
	agreement, _ := s.pair(4, 0)
	expect.Same(t, "0.0000", string(agreement), "without a sketch")
	hits[0].Decided = &rerank.Decided{Document: 1}
	hits[2].Decided = &rerank.Decided{Document: 2, Pairs: []rerank.Decision{{Other: 1, Fingerprint: hits[0].Sketch.Fingerprint, Same: true}}}
	_, why := s.pair(2, 0)
	expect.Same(t, `{"agreement":0.0000,"error":0.0073,"by":"decided","shingles":[2,5]}`, string(why), "decided")
}

package adapters_test

import (
	"fmt"
	"slices"
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
			got := adapters.Shared(viewRule(t, c.scheme), document(c.a), document(c.b), adapters.MaxShared)
			expect.Same(t, c.want, got, "")
		})
	}
}

// list is a list that was read.
type list []rerank.Hit

func (l list) Hit(rank int) *rerank.Hit {
	if rank >= len(l) {
		return nil
	}
	return &l[rank]
}

func TestViews(t *testing.T) {
	rule := viewRule(t, sketch.Scheme{})
	texts := []string{"a b c d e f", "a b c d e g", "x y z", "a b c d e f", "q r s"}
	hits := make([]rerank.Hit, len(texts))
	for i, text := range texts {
		s, _ := rule.Sketch([]string{text})
		hits[i] = rerank.Hit{ID: fmt.Sprint(i), Sketch: &s, Profile: &rerank.Profile{Threshold: 0.5}}
	}
	hits[4].Sketch, hits[4].Profile = nil, nil
	// The first two and the fourth are a group that rank 1 represents; the fourth is shown too.
	groups := []rerank.Group{{Leader: 0, Representative: 1, Kept: []int{3}, Folded: []int{0}}, {Leader: 2, Representative: 2}, {Leader: 4, Representative: 4}}
	v := adapters.NewViews(groups, list(hits), false, 10)
	for rank, want := range map[int]struct {
		folded       []int
		exact        bool
		leader, with int
		represents   bool
		why          string
	}{
		1: {[]int{0}, false, 0, 0, true, `{"representative":"newest","leader":7,"folded":1,"threshold":0.5,"measure":"resemblance","window":10}`},
		2: {nil, false, 2, 2, true, `{"representative":"newest","leader":7,"folded":0,"threshold":0.5,"measure":"resemblance","window":10}`},
		3: {nil, true, 3, 0, false, ""},
		4: {nil, false, 4, 4, true, `{"representative":"newest","leader":7,"folded":0,"window":10}`},
		9: {nil, true, 9, 9, true, `{"representative":"newest","leader":7,"folded":0,"window":10}`},
	} {
		folded, exact := v.Folded(rank)
		if !slices.Equal(folded, want.folded) || exact != want.exact || v.Leader(rank) != want.leader || v.With(rank) != want.with || v.Represents(rank) != want.represents {
			t.Errorf("rank %d: %v %v, leader %d, with %d, represents %v", rank, folded, exact, v.Leader(rank), v.With(rank), v.Represents(rank))
		}
		if got := string(v.AppendExplanation(nil, rank, rule, []byte("7"))); want.why != "" && got != want.why {
			t.Errorf("rank %d: %s", rank, got)
		}
	}
	if with := v.With(0); with != 1 {
		t.Errorf("the leader is compared with %d, not its representative", with)
	}
	if pair := v.Pair(4); pair.Agreement != 0 || pair.SameText {
		t.Errorf("%+v", pair)
	}
}

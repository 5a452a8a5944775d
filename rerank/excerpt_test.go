package rerank

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// TestExcerptOfAnotherTopic: a part of a text that repeats other words than the whole folds by containment, and two texts about different
// subjects in one form do not fold by resemblance.
func TestExcerptOfAnotherTopic(t *testing.T) {
	form := []string{"the", "kettle", "is", "made", "by", "hand", "from", "steel", "and", "tin", "so", "that", "a", "kettle", "lasts"}
	var whole []string
	for i := range 40 {
		for j, word := range form {
			whole = append(whole, word)
			if j%5 == 4 {
				whole = append(whole, strings.Repeat("x", i+1)+strings.Repeat("y", j))
			}
		}
	}
	excerpt := []string{}
	for _, word := range whole[:400] {
		if word != "kettle" {
			excerpt = append(excerpt, word)
		}
	}
	renamed := strings.ReplaceAll(strings.Join(whole, " "), "kettle", "lantern")
	s := expect.Value(sketch.New(sketch.Scheme{Family: sketch.MSmallest, Positions: 128}))(t)
	a, _ := s.Sketch(strings.Join(whole, " "))
	b, _ := s.Sketch(strings.Join(excerpt, " "))
	c, _ := s.Sketch(renamed)
	if !a.OtherTopics(&b) || !a.OtherTopics(&c) {
		t.Fatal("the topics are the same")
	}
	contained := Profile{Measure: Containment, Threshold: 0.5, MinShingles: 24}
	_, reason := contained.Judge(&a, &b)
	expect.Same(t, Agrees, reason, "the excerpt")
	alike := Profile{Threshold: 0.5, MinShingles: 8}
	_, reason = alike.Judge(&a, &c)
	expect.Same(t, OtherTopics, reason, "another subject")
}

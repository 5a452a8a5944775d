package calibrate

import (
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/sketch"
)

// differing is how many passages of a kind are shown of a pair.
const differing = 3

// differ fills in what the examples share and what one of them alone has.
func differ(s *sketch.Sketcher, report *Report) {
	w := s.Scheme().Words
	if s.Scheme().Features == sketch.Tags {
		w = 1
	}
	for l := range report.Levels {
		for e := range report.Levels[l].Examples {
			x := &report.Levels[l].Examples[e]
			x.Shared, x.OnlyA, x.OnlyB = []string{}, []string{}, []string{}
			shared, alone := documents.Passages(wordsOf(s, x.A.Texts), wordsOf(s, x.B.Texts), w)
			for _, p := range shared[:min(len(shared), differing)] {
				x.Shared = append(x.Shared, p.Text)
			}
			for _, p := range alone {
				switch {
				case p.In == "a" && len(x.OnlyA) < differing:
					x.OnlyA = append(x.OnlyA, p.Text)
				case p.In == "b" && len(x.OnlyB) < differing:
					x.OnlyB = append(x.OnlyB, p.Text)
				}
			}
		}
	}
}

// wordsOf returns the words of a document's texts as they are compared.
func wordsOf(s *sketch.Sketcher, texts []string) (words []string) {
	if s.Scheme().Features == sketch.Tags {
		return texts
	}
	for _, text := range texts {
		words = append(words, sketch.Words(s.Content(text))...)
	}
	return words
}

package calibrate

import (
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/sketch"
	"github.com/neardup/sidecar/sketch/content"
)

// differing is how many passages of a kind are shown of a pair.
const differing = 3

// differ fills in what the examples share and what one of them alone has.
func differ(scheme sketch.Scheme, report *Report) {
	for l := range report.Levels {
		for e := range report.Levels[l].Examples {
			x := &report.Levels[l].Examples[e]
			x.Shared, x.OnlyA, x.OnlyB = []string{}, []string{}, []string{}
			w := scheme.Words
			if scheme.Features == sketch.Tags {
				w = 1
			}
			shared, alone := documents.Passages(wordsOf(scheme, x.A.Texts), wordsOf(scheme, x.B.Texts), w)
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
func wordsOf(scheme sketch.Scheme, texts []string) (words []string) {
	for _, text := range texts {
		if scheme.Features == sketch.Tags {
			words = append(words, text)
			continue
		}
		if scheme.Content != sketch.ContentRaw && content.IsHTML(text) {
			if scheme.Content == sketch.ContentUseful {
				text = content.Useful(text)
			} else {
				text = content.Text(text)
			}
		}
		words = append(words, sketch.Words(text)...)
	}
	return words
}

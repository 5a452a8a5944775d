package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// document is what is stored. Cluster is what an engine's own collapsing goes by.
type document struct {
	corpora.Document
	// Sketch is there where a document is to come with its sketch already.
	Sketch string `json:"neardup_sketch,omitempty"`
}

// sketching is the rule that the sidecars of this program have, as far as it decides a sketch.
func sketching() (*rule.Rule, error) {
	sketcher, err := sketch.New(sketch.DefaultScheme())
	return &rule.Rule{Fields: []string{"title", "body"}, Sketcher: sketcher}, err
}

// sketched is the document with the sketch that a sidecar would add to it.
func (d document) sketched(r *rule.Rule) document {
	made, _ := r.Sketch([]string{d.Title, d.Body})
	d.Sketch = made.String()
	return d
}

// shelf describes documents.
type shelf = corpora.Shelf

// texts make the documents of shelves.
type texts struct{ *corpora.Texts }

// loadTexts reads the real texts of Debian's packages; small ones are those of the project's own demonstration.
func loadTexts(small bool) (*texts, error) {
	passages := 10_000
	if small {
		passages = 0
	}
	read, err := corpora.LoadTexts(passages)
	return &texts{read}, err
}

// document makes the i-th document of a shelf.
func (t *texts) document(s shelf, i int) document { return document{Document: t.Document(s, i)} }

// queries returns searches of two words each: of words that 4 to 15 % of the documents have.
func (t *texts) queries(s shelf, count int) []string {
	const sampled = 1000
	found := map[string]int{}
	for d := range t.All(shelf{Count: min(s.Count, sampled), Bytes: s.Bytes, Duplicates: s.Duplicates}) {
		seen := map[string]bool{}
		for _, w := range strings.Fields(d.Body) {
			if !seen[w] && len(w) > 3 && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" {
				seen[w] = true
				found[w]++
			}
		}
	}
	var words []string
	for w, n := range found {
		if share := float64(n) / float64(min(s.Count, sampled)); share >= .04 && share <= .15 {
			words = append(words, w)
		}
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(found[b]-found[a], strings.Compare(a, b)) })
	list := make([]string, count)
	for i := range list {
		r := corpora.Random(i, 3)
		list[i] = words[r.IntN(len(words))] + " " + words[r.IntN(len(words))]
	}
	return list
}

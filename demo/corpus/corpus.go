// Package corpus has the sample corpus of the walk-through: about seventy-five articles on everyday subjects, each in two to six
// versions as they occur on the web, and look-alikes that share phrases with one another and yet are different texts. All of it
// was written for this project; the people and hosts in it are invented, and so are most of the places.
//
// Each base text is in articles/NNN-slug.txt; the sections below it say how each further version differs (see version.go for
// the directives). Files in lookalikes/ hold whole texts, several to a file. sites.txt has the menu and footer of the hosts
// that wrap what they store.
//
// Every document carries a label, its Group: documents of the same group are near-duplicates, documents of different groups are not.
// The package's test checks this by the exact resemblance of the texts.
package corpus

import (
	"slices"
	"sync"
)

// Document is one page of the corpus. Its JSON is what an engine is given; the labels stay outside.
type Document struct {
	ID          string `json:"id"`
	URL         string `json:"url"`
	Host        string `json:"host"`
	Title       string `json:"title"`
	Body        string `json:"body"`         // paragraphs parted by an empty line
	PublishedAt string `json:"published_at"` // RFC 3339, UTC

	// Group labels near-duplicates: an article's versions share it, a look-alike has its own.
	Group string `json:"-"`
	// Version says how the document came about: original, syndicated, corrected, mirror, repost, copy or lookalike.
	Version string `json:"-"`
}

// Documents returns the whole corpus, always in the same order, in which no two versions of an article are neighbours. The slice is the
// caller's. It is Load without the error: if the embedded texts were invalid, which the package's test rules out, it would return none.
func Documents() []Document {
	documents, err := Load()
	if err != nil {
		return nil
	}
	return documents
}

// Load returns the whole corpus, or says which of the embedded texts is malformed.
func Load() ([]Document, error) {
	documents, err := load()
	return slices.Clone(documents), err
}

var load = sync.OnceValues(func() ([]Document, error) {
	authored, err := read()
	if err != nil {
		return nil, err
	}
	return mixed(authored), nil
})

// mixed takes every step-th document, round and round. Versions of an article are authored side by side, and a step of about 0.38 of the
// whole (the golden ratio's share) keeps them far apart without leaving any part of the list to the end.
func mixed(authored []Document) []Document {
	n := len(authored)
	step := n*382/1000 + 1
	for gcd(step, n) != 1 {
		step++
	}
	documents := make([]Document, n)
	for i := range documents {
		documents[i] = authored[i*step%n]
	}
	return documents
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

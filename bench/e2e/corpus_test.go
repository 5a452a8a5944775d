package main

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// A search asks for two words.
func TestQueries(t *testing.T) {
	all := expect.Value(loadTexts(true))(t)
	for _, words := range all.queries(shelf{Count: 400, Bytes: 2000, Duplicates: .3}, 20) {
		expect.Same(t, 1, strings.Count(words, " "), "blanks in a search for %q", words)
	}
}

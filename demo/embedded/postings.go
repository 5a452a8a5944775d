package embedded

import (
	"math"
	"slices"
	"strings"
	"unicode"

	uax29 "github.com/clipperhouse/uax29/v2/words"
)

// scores are the documents that a query matches, with their scores.
type scores map[*document]float64

// term is a word in a field, or the whole value of a keyword.
type term struct{ path, word string }

// spot is a position in one of the values of a field.
type spot struct{ value, position int }

// fieldStats is what BM25 needs to know of a field over all documents.
type fieldStats struct{ documents, words float64 }

// replace puts a document into the inverted index in the place of another; either may be nil.
func (x *index) replace(old, d *document) {
	if old != nil {
		for t := range old.words {
			delete(x.inverted[t], old)
		}
	}
	if d != nil {
		for t := range d.words {
			if x.inverted[t] == nil {
				x.inverted[t] = map[*document]bool{}
			}
			x.inverted[t][d] = true
		}
	}
	x.stats = nil
}

// statsOf counts a field's documents and words; the counts are kept until the next write.
func (x *index) statsOf(path string) fieldStats {
	if s, ok := x.stats[path]; ok {
		return s
	}
	var s fieldStats
	for _, d := range x.docs {
		if n, ok := d.lengths[path]; ok {
			s.documents++
			s.words += float64(n)
		}
	}
	if x.stats == nil {
		x.stats = map[string]fieldStats{}
	}
	x.stats[path] = s
	return s
}

// bm25 scores a word, or a phrase, that occurs freq times in a document: Lucene's formula with Elasticsearch's constants.
func (x *index) bm25(path string, d *document, freq, idf float64) float64 {
	const k1, b = 1.2, 0.75
	s, length := x.statsOf(path), 1.0 // a keyword has no length
	if x.lookup(path).Type == "text" {
		length = float64(d.lengths[path])
	}
	return (k1 + 1) * idf * freq / (freq + k1*(1-b+b*length*s.documents/s.words))
}

func (x *index) idf(path string, matching int) float64 {
	return math.Log(1 + (x.statsOf(path).documents-float64(matching)+0.5)/(float64(matching)+0.5))
}

// word scores the documents with a word.
func (x *index) word(path, word string) scores { return x.phrase(path, []string{word}) }

// phrase scores the documents with the words one after the other.
func (x *index) phrase(path string, words []string) scores {
	idf, out := 0.0, scores{}
	for _, w := range words {
		idf += x.idf(path, len(x.inverted[term{path, w}]))
	}
	for d := range x.inverted[term{path, words[0]}] {
		freq := 0.0
		for _, s := range d.words[term{path, words[0]}] {
			follows := true
			for i, w := range words {
				follows = follows && slices.Contains(d.words[term{path, w}], spot{s.value, s.position + i})
			}
			if follows {
				freq++
			}
		}
		if freq > 0 {
			out[d] = x.bm25(path, d, freq, idf)
		}
	}
	return out
}

// where gives score 1 to the documents for which keep returns true.
func (x *index) where(keep func(*document) bool) scores {
	out := scores{}
	for _, d := range x.docs {
		if keep(d) {
			out[d] = 1
		}
	}
	return out
}

// having gives score 1 to the documents with a value of the field for which keep returns true.
func (x *index) having(path string, keep func(any) bool) scores {
	return x.where(func(d *document) bool { return slices.ContainsFunc(d.fields[path], keep) })
}

// words cuts text into words as Elasticsearch's standard analyzer does.
func words(s string) []string {
	var out []string
	for it := uax29.FromString(s); it.Next(); {
		if strings.ContainsFunc(it.Value(), func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			out = append(out, strings.ToLower(it.Value()))
		}
	}
	return out
}

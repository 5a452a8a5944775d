package embedded

import (
	"context"
	"fmt"
	"math"
	"slices"

	api "github.com/blevesearch/bleve_index_api"
)

// scores are the documents that a query matches, with their scores.
type scores map[*document]float64

// posting is a word's occurrence in one document.
type posting struct {
	freq  float64
	spots map[spot]bool // where it stands, for phrases
}

// spot is a position in one of the values of a field.
type spot struct{ value, position uint64 }

// fieldStats is what BM25 needs to know of a field over all documents.
type fieldStats struct{ documents, words float64 }

const maxPending = 1000 // documents

// flush hands Bleve the writes since the last search.
func (x *index) flush() error {
	if x.pending.Size() == 0 {
		return nil
	}
	if err := x.inverted.Batch(x.pending); err != nil {
		return fmt.Errorf("write to inverted index: %w", err)
	}
	x.pending = x.inverted.NewBatch()
	return nil
}

// postings looks a word up in Bleve.
func (x *index) postings(path, word string, positions bool) (_ map[*document]posting, err error) {
	if err := x.flush(); err != nil {
		return nil, err
	}
	inverted, err := x.inverted.Advanced()
	if err != nil {
		return nil, fmt.Errorf("open inverted index: %w", err)
	}
	reader, err := inverted.Reader()
	if err != nil {
		return nil, fmt.Errorf("read inverted index: %w", err)
	}
	defer func() { _ = reader.Close() }()
	terms, err := reader.TermFieldReader(context.Background(), []byte(word), path, true, true, positions)
	if err != nil {
		return nil, fmt.Errorf("look up word: %w", err)
	}
	defer func() { _ = terms.Close() }()
	out := map[*document]posting{}
	for {
		t, err := terms.Next(new(api.TermFieldDoc))
		if err != nil || t == nil {
			return out, err
		}
		id, err := reader.ExternalID(t.ID)
		if err != nil {
			return nil, fmt.Errorf("look up document: %w", err)
		}
		p := posting{freq: float64(t.Freq)}
		if positions {
			p.spots = map[spot]bool{}
			for _, v := range t.Vectors {
				s := spot{position: v.Pos}
				if len(v.ArrayPositions) > 0 {
					s.value = v.ArrayPositions[0]
				}
				p.spots[s] = true
			}
		}
		out[x.docs[id]] = p
	}
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

// word scores the documents that hold a word.
func (x *index) word(path, word string) (scores, error) {
	found, err := x.postings(path, word, false)
	idf, out := x.idf(path, len(found)), scores{}
	for d, p := range found {
		out[d] = x.bm25(path, d, p.freq, idf)
	}
	return out, err
}

// phrase scores the documents that hold the words one after the other.
func (x *index) phrase(path string, words []string) (scores, error) {
	if len(words) == 1 {
		return x.word(path, words[0])
	}
	var each []map[*document]posting
	idf := 0.0
	for _, w := range words {
		found, err := x.postings(path, w, true)
		if err != nil {
			return nil, err
		}
		idf += x.idf(path, len(found))
		each = append(each, found)
	}
	out := scores{}
	for d, first := range each[0] {
		freq := 0.0
		for s := range first.spots {
			follows := true
			for i, next := range each[1:] {
				follows = follows && next[d].spots[spot{s.value, s.position + uint64(i) + 1}]
			}
			if follows {
				freq++
			}
		}
		if freq > 0 {
			out[d] = x.bm25(path, d, freq, idf)
		}
	}
	return out, nil
}

// where gives score 1 to the documents for which keep holds.
func (x *index) where(keep func(*document) bool) scores {
	out := scores{}
	for _, d := range x.docs {
		if keep(d) {
			out[d] = 1
		}
	}
	return out
}

// having gives score 1 to the documents that have a value of the field for which keep holds.
func (x *index) having(path string, keep func(any) bool) scores {
	return x.where(func(d *document) bool { return slices.ContainsFunc(d.fields[path], keep) })
}

func words(s string) []string {
	var out []string
	for _, t := range analyzer.Analyze([]byte(s)) {
		out = append(out, string(t.Term))
	}
	return out
}

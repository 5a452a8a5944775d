package main

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// document is what is stored. Cluster names its group of near-duplicates: what an engine's own collapsing goes by.
type document struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Body    string `json:"body"`
	Cluster string `json:"cluster"`
	At      int64  `json:"at"` // Unix seconds
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

// texts are sentences as people wrote them, in the order in which they did.
type texts struct {
	source    string
	sentences []string
}

// loadTexts reads the real texts of Debian's packages; small ones are those of the project's own demonstration.
func loadTexts(small bool) (*texts, error) {
	t := &texts{source: "English technical texts of Debian's packages"}
	var passages []string
	if small {
		t.source = "the articles of the demonstration"
		for _, d := range corpus.Documents() {
			passages = append(passages, d.Body)
		}
	} else {
		cache, err := corpora.Cache()
		if err != nil {
			return nil, err
		}
		real, err := corpora.Real(cache, 10_000)
		if err != nil {
			return nil, fmt.Errorf("get the texts: %w", err)
		}
		passages = real.Documents
	}
	for _, p := range passages {
		for s := range strings.SplitAfterSeq(strings.Join(strings.Fields(p), " "), ". ") {
			if s = strings.TrimSpace(s); len(s) > 20 && len(s) < 1000 {
				t.sentences = append(t.sentences, s)
			}
		}
	}
	if len(t.sentences) < 100 {
		return nil, errors.New("the texts have no hundred sentences")
	}
	return t, nil
}

// shelf describes documents: how many, how many bytes a body has, and which share of them are near-duplicates of another one.
type shelf struct {
	count      int
	bytes      int
	duplicates float64
}

// all yields the documents of a shelf, always the same ones.
func (t *texts) all(s shelf) iter.Seq[document] {
	return func(yield func(document) bool) {
		for i := range s.count {
			if !yield(t.document(s, i)) {
				return
			}
		}
	}
}

// document makes the i-th document, of which no other need be made: runs of a few sentences from here and there, or, if it is a
// near-duplicate, those of the document before it that it was made from, with up to one word in 25 changed.
func (t *texts) document(s shelf, i int) document {
	r, from := source(i, 1), i
	if s.duplicate(i) {
		for from = r.IntN(i); s.duplicate(from); {
			from = r.IntN(i)
		}
	}
	base := source(from, 2)
	d := document{
		ID: fmt.Sprintf("d%07d", i), Cluster: fmt.Sprintf("c%07d", from), At: 1_735_689_600 + int64(r.IntN(1<<24)),
		Title: strings.Join(firstWords(t.sentences[base.IntN(len(t.sentences))], 8), " "), Body: t.body(base, s.bytes),
	}
	if from != i {
		words := strings.Split(d.Body, " ")
		for range r.IntN(1 + len(words)/25) {
			words[r.IntN(len(words))] = firstWords(t.sentences[r.IntN(len(t.sentences))], 1)[0]
		}
		d.Body = strings.Join(words, " ")
	}
	return d
}

// duplicate reports whether the i-th document is a near-duplicate of an earlier one. The first never is.
func (s shelf) duplicate(i int) bool { return i > 0 && source(i, 0).Float64() < s.duplicates }

// source is the randomness of a document for one purpose.
func source(document, purpose int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(document), uint64(purpose)))
}

// body joins runs of sentences to a text of this many bytes, cut at a word.
func (t *texts) body(r *rand.Rand, bytes int) string {
	var b strings.Builder
	b.Grow(bytes + 1000)
	for b.Len() < bytes {
		at := r.IntN(len(t.sentences))
		for _, s := range t.sentences[at:min(at+2+r.IntN(4), len(t.sentences))] {
			b.WriteString(s)
			b.WriteByte(' ')
		}
	}
	text := b.String()[:bytes]
	return strings.TrimSpace(text[:strings.LastIndexByte(text, ' ')+1])
}

func firstWords(sentence string, n int) []string {
	words := strings.Fields(sentence)
	return words[:min(n, len(words))]
}

// queries returns searches of two words each: of words that 4 to 15 % of the documents have.
func (t *texts) queries(s shelf, count int) []string {
	const sampled = 1000
	found := map[string]int{}
	for d := range t.all(shelf{min(s.count, sampled), s.bytes, s.duplicates}) {
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
		if share := float64(n) / float64(min(s.count, sampled)); share >= .04 && share <= .15 {
			words = append(words, w)
		}
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(found[b]-found[a], strings.Compare(a, b)) })
	list := make([]string, count)
	for i := range list {
		r := source(i, 3)
		list[i] = words[r.IntN(len(words))] + " " + words[r.IntN(len(words))]
	}
	return list
}

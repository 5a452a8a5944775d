package corpora

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"

	"github.com/neardup/sidecar/demo/corpus"
)

// Texts are sentences as people wrote them, in the order in which they did.
type Texts struct {
	// Source says what they are.
	Source    string
	Sentences []string
}

// LoadTexts reads at most this many passages of the real texts of Debian's packages. With 0 it reads the small texts of the
// project's own demonstration.
func LoadTexts(passages int) (*Texts, error) {
	t := &Texts{Source: "English technical texts of Debian's packages"}
	var all []string
	if passages == 0 {
		t.Source = "the articles of the demonstration"
		for _, d := range corpus.Documents() {
			all = append(all, d.Body)
		}
	} else {
		cache, err := Cache()
		if err != nil {
			return nil, err
		}
		real, err := Real(cache, passages)
		if err != nil {
			return nil, fmt.Errorf("get the texts: %w", err)
		}
		all = real.Documents
	}
	for _, p := range all {
		for s := range strings.SplitAfterSeq(strings.Join(strings.Fields(p), " "), ". ") {
			if s = strings.TrimSpace(s); len(s) > 20 && len(s) < 1000 {
				t.Sentences = append(t.Sentences, s)
			}
		}
	}
	if len(t.Sentences) < 100 {
		return nil, errors.New("the texts have no hundred sentences")
	}
	return t, nil
}

// Shelf describes documents: how many, how many bytes a body has, and which share of them are near-duplicates of another one.
type Shelf struct {
	Count      int
	Bytes      int
	Duplicates float64
}

// Document is one document of a shelf. Cluster names its group of near-duplicates.
type Document struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Body    string `json:"body"`
	Cluster string `json:"cluster"`
	At      int64  `json:"at"` // Unix seconds
}

// All yields the documents of a shelf, always the same ones.
func (t *Texts) All(s Shelf) iter.Seq[Document] {
	return func(yield func(Document) bool) {
		for i := range s.Count {
			if !yield(t.Document(s, i)) {
				return
			}
		}
	}
}

// Document makes the i-th document, of which no other need be made: runs of a few sentences from here and there, or, if it is a
// near-duplicate, those of the document before it that it was made from, with up to one word in 25 changed.
func (t *Texts) Document(s Shelf, i int) Document {
	r, from := Random(i, 1), i
	if s.duplicate(i) {
		for from = r.IntN(i); s.duplicate(from); {
			from = r.IntN(i)
		}
	}
	base := Random(from, 2)
	d := Document{
		ID: fmt.Sprintf("d%07d", i), Cluster: fmt.Sprintf("c%07d", from), At: 1_735_689_600 + int64(r.IntN(1<<24)),
		Title: strings.Join(firstWords(t.Sentences[base.IntN(len(t.Sentences))], 8), " "), Body: t.body(base, s.Bytes),
	}
	if from != i {
		words := strings.Split(d.Body, " ")
		for range r.IntN(1 + len(words)/25) {
			words[r.IntN(len(words))] = firstWords(t.Sentences[r.IntN(len(t.Sentences))], 1)[0]
		}
		d.Body = strings.Join(words, " ")
	}
	return d
}

// duplicate reports whether the i-th document is a near-duplicate of an earlier one. The first never is.
func (s Shelf) duplicate(i int) bool { return i > 0 && Random(i, 0).Float64() < s.Duplicates }

// Random is the randomness of a document for one purpose.
func Random(document, purpose int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(document), uint64(purpose)))
}

// body joins runs of sentences to a text of this many bytes, cut at a word.
func (t *Texts) body(r *rand.Rand, bytes int) string {
	var b strings.Builder
	b.Grow(bytes + 1000)
	for b.Len() < bytes {
		at := r.IntN(len(t.Sentences))
		for _, s := range t.Sentences[at:min(at+2+r.IntN(4), len(t.Sentences))] {
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

package calibrate

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/sketch"
)

// Level is the pairs whose agreement is nearest to a tenth.
type Level struct {
	Level float64 `json:"level"`
	// Estimated is how many pairs there are among the candidates, Compared how many of these were compared by their texts.
	Estimated float64 `json:"pairs"`
	Compared  int     `json:"compared"`
	Error
	Examples []Example `json:"examples"`
}

// Error is how far agreements lie from the truth.
type Error struct {
	Pairs int `json:"pairs_measured"`
	// Agreement and Exact are means.
	Agreement float64 `json:"mean_agreement"`
	Exact     float64 `json:"mean_exact"`
	// Measured is the root of the mean square of their difference, Promised that of the standard errors that the sketches tell.
	Measured float64 `json:"rmse"`
	Promised float64 `json:"promised"`

	squares, promises float64
}

func (e *Error) add(agreement, exact, promised float64) {
	e.Pairs++
	e.Agreement += agreement
	e.Exact += exact
	e.squares += (agreement - exact) * (agreement - exact)
	e.promises += promised * promised
}

// close makes means of sums.
func (e *Error) close() {
	if n := float64(e.Pairs); n > 0 {
		e.Agreement, e.Exact = e.Agreement/n, e.Exact/n
		e.Measured, e.Promised = math.Sqrt(e.squares/n), math.Sqrt(e.promises/n)
	}
}

// Example is a pair to look at.
type Example struct {
	A         Side    `json:"a"`
	B         Side    `json:"b"`
	Agreement float64 `json:"agreement"`
	// Error is the agreement's standard error as the sketches tell it.
	Error float64 `json:"error"`
	Exact float64 `json:"exact"`
	// Shared are the longest runs of words that both have, OnlyA and OnlyB those of one alone.
	Shared []string `json:"shared"`
	OnlyA  []string `json:"only_a"`
	OnlyB  []string `json:"only_b"`
}

// Side is a document of an example.
type Side struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Shingles int    `json:"shingles"`
}

// pair is one whose texts may be compared.
type pair struct {
	a, b     int // of docs
	value    float64
	priority uint64
}

// pool is the pairs of a level with the least priorities, each once.
type pool []pair

// offer puts a pair into the pool of its level.
func (c *calibration) offer(a, b int, value float64) {
	level := int(math.Round(value * 10))
	if level >= 1 && level <= 10 {
		c.put(&c.pools[level], max(1, c.options.Pairs), a, b, value)
	}
}

// put adds a pair to a pool that keeps at most as many pairs as given, chosen by chance.
func (c *calibration) put(list *pool, most, a, b int, value float64) {
	ranks := [2]uint64{c.docs[a].rank, c.docs[b].rank}
	if ranks[1] < ranks[0] {
		a, b, ranks[0], ranks[1] = b, a, ranks[1], ranks[0]
	}
	p := pair{a, b, value, (ranks[0]*0x9e3779b97f4a7c15 ^ ranks[1]) * 0xff51afd7ed558ccd}
	if *list = append(*list, p); len(*list) >= 4*most {
		list.trim(most)
	}
}

func (p *pool) trim(most int) {
	slices.SortFunc(*p, func(x, y pair) int {
		return cmp.Or(cmp.Compare(x.priority, y.priority), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	all := slices.CompactFunc(*p, func(x, y pair) bool { return x.a == y.a && x.b == y.b })
	*p = all[:min(most, len(all))]
}

// seenText is a document whose text was read.
type seenText struct {
	set   []uint64
	texts []string
}

// compareTexts reads the texts of the pairs of each level, and computes their exact resemblance beside the agreement.
func (c *calibration) compareTexts(ctx context.Context) error {
	fingerprints, shown := map[string]uint64{}, map[string]bool{}
	for level := range c.pools {
		c.pools[level].trim(c.options.Pairs)
		for n, p := range c.pools[level] {
			for _, d := range []*document{&c.docs[p.a], &c.docs[p.b]} {
				fingerprints[d.id] = d.sketch.Fingerprint
				shown[d.id] = shown[d.id] || n < c.options.Examples
			}
		}
	}
	seen := map[string]seenText{}
	err := adapters.ReadByID(ctx, c.store, c.index, c.rule, slices.Sorted(maps.Keys(fingerprints)), nil, func(d adapters.Stored) error {
		texts := c.rule.Texts(d.Source)
		if c.rule.Sketcher.Fingerprint(texts...) != fingerprints[d.ID] { // it changed meanwhile
			return ctx.Err()
		}
		s := seenText{set: c.rule.Sketcher.Shingles(texts...)}
		if shown[d.ID] {
			s.texts = texts
		}
		seen[d.ID] = s
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for level := 1; level <= 10; level++ {
		c.report.Levels = append(c.report.Levels, c.sumUp(level, seen))
	}
	c.report.Error.close()
	return nil
}

// sumUp returns one level, with the pairs whose texts were read.
func (c *calibration) sumUp(tenth int, seen map[string]seenText) Level {
	l := Level{Level: float64(tenth) / 10, Examples: []Example{}}
	h := &c.report.Candidates
	for _, bin := range []int{2*tenth - 1, 2 * tenth} {
		if bin < Bins {
			l.Estimated += h.Estimated[bin]
		}
	}
	for _, p := range c.pools[tenth] {
		a, b := &c.docs[p.a], &c.docs[p.b]
		x, okX := seen[a.id]
		y, okY := seen[b.id]
		if !okX || !okY || x.set == nil {
			continue
		}
		exact, deviation := sketch.Resemblance(x.set, y.set), 0.0
		if c.ofResemblance() {
			deviation = a.sketch.StandardError(&b.sketch)
		} else {
			smaller, larger, in, of := a, b, x.set, y.set
			if b.sketch.Shingles < a.sketch.Shingles {
				smaller, larger, in, of = b, a, y.set, x.set
			}
			e, _ := smaller.sketch.Containment(&larger.sketch)
			exact, deviation = sketch.Containment(in, of), e.Error
		}
		l.Compared++
		l.add(p.value, exact, deviation)
		c.report.Error.add(p.value, exact, deviation)
		c.report.Curve.take(exact, p.value >= c.report.Threshold)
		if len(l.Examples) < c.options.Examples && x.texts != nil && y.texts != nil {
			example := Example{A: side(a, x), B: side(b, y), Agreement: p.value, Error: deviation, Exact: exact}
			example.differ(c.rule.Sketcher, x.texts, y.texts)
			l.Examples = append(l.Examples, example)
		}
	}
	l.close()
	return l
}

// titleLength is how many characters are shown of a text, differing how many passages of a kind of a pair.
const titleLength, differing = 80, 3

// side shows a document by the beginning of its first text that has any.
func side(d *document, s seenText) Side {
	shown := Side{ID: d.id, Shingles: int(d.sketch.Shingles)}
	for _, text := range s.texts {
		if shown.Title == "" {
			shown.Title = Plain(titleLength+1, strings.Join(strings.Fields(text), " "))
		}
	}
	return shown
}

// differ fills in what two texts share, and what only one of them has.
func (x *Example) differ(s *sketch.Sketcher, a, b []string) {
	x.Shared, x.OnlyA, x.OnlyB = []string{}, []string{}, []string{}
	words := s.Scheme().Words
	if s.Scheme().Features == sketch.Tags {
		words = 1
	}
	shared, alone := documents.Passages(wordsOf(s, a), wordsOf(s, b), words)
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

package e2e

import (
	"slices"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// oracle is the collapsed list by its definition, over what the engine itself answers and the texts of the corpus.
type oracle struct {
	direct    api
	sketches  map[string]sketch.Sketch
	threshold float64
	window    int
	keep      int // how many of each group are shown
}

var minShingles = uint32(rerank.Default().MinShingles) // the shipped default

func newOracle(t *testing.T, direct api, list []corpus.Document) *oracle {
	t.Helper()
	scheme := sketch.DefaultScheme()
	scheme.Seed = seed
	sketcher := must(sketch.New(scheme))(t)
	o := &oracle{direct: direct, sketches: map[string]sketch.Sketch{}, threshold: 0.7, window: 1000, keep: 1}
	for _, d := range list {
		o.sketches[d.ID], _ = sketcher.Sketch(d.Title, d.Body)
	}
	return o
}

// raw returns the engine's own list.
func (o *oracle) raw(t *testing.T, index, q string) []string {
	t.Helper()
	return slices.Concat(o.direct.whole(t, index, q, 250, "")...)
}

// list returns the collapsed list.
func (o *oracle) list(t *testing.T, index, q string) []string {
	t.Helper()
	return o.collapsed(o.raw(t, index, q))
}

// collapsed returns the collapsed list of the engine's.
func (o *oracle) collapsed(raw []string) (list []string) {
	var leaders []string
	shown := map[string]int{} // of each leader's group
	for rank, id := range raw {
		at := slices.IndexFunc(leaders, func(l string) bool { return o.near(o.sketches[id], o.sketches[l]) })
		switch {
		case rank >= o.window:
		case at < 0:
			leaders = append(leaders, id)
			shown[id] = 1
		case shown[leaders[at]] < o.keep:
			shown[leaders[at]]++
		default:
			continue
		}
		list = append(list, id)
	}
	return list
}

func (o *oracle) near(a, b sketch.Sketch) bool {
	if a.SameText(&b) {
		return true
	}
	agreement, comparable := a.Agreement(&b)
	return comparable && agreement >= o.threshold && min(a.Shingles, b.Shingles) >= minShingles
}

// queries are searches of the corpus with short, long and whole lists.
var queries = []string{"*", "town", "the", "river bridge", "old", "recipe butter", "nothingmatchesthis"}

// checkPages walks all pages through the sidecar and holds them against the definition: pages of exactly the size asked for, the
// engine's order, every representative once.
func (o *oracle) checkPages(t *testing.T, through api, index, params string) {
	t.Helper()
	folded := 0
	for _, q := range queries {
		want := o.list(t, index, q)
		folded += len(o.raw(t, index, q)) - len(want)
		for _, size := range []int{10, 60} {
			pages := through.whole(t, index, q, size, params)
			same(t, slices.Collect(slices.Chunk(want, size)), pages, "%q in pages of %d", q, size)
		}
	}
	if folded < 300 {
		t.Errorf("only %d hits fold over all queries: the corpus or the threshold is wrong", folded)
	}
}

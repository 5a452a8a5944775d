package quality

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/unseen"
	"github.com/neardup/sidecar/sketch"
)

// earlier is a document that came before another one, and their exact resemblance.
type earlier struct {
	place       int
	resemblance float64
}

// resembling returns for each set of shingles the earlier ones that share at least a fifth, by counting what each two share.
func resembling(sets [][]uint64) [][]earlier {
	list, with, shared := make([][]earlier, len(sets)), map[uint64][]int{}, make([]int, len(sets))
	for i, set := range sets {
		for _, x := range set {
			for _, j := range with[x] {
				shared[j]++
			}
			with[x] = append(with[x], i)
		}
		for j := range i {
			if r := float64(shared[j]) / float64(len(set)+len(sets[j])-shared[j]); r >= 0.2 {
				list[i] = append(list[i], earlier{j, r})
			}
			shared[j] = 0
		}
	}
	return list
}

// TestUnseen goes through the documents of each set as through a stream, and compares what counts as seen with the exact resemblances of a document
// to those that were passed on before. Beside it stands the same with whole sketches, as cluster and searches have them.
func TestUnseen(t *testing.T) {
	folder := os.Getenv("NEARDUP_PRACTICE")
	if folder == "" {
		t.Skip("NEARDUP_PRACTICE names no folder: run make quality PRACTICE=<folder>")
	}
	index := config.DefaultIndex()
	r := index.Rule(expect.Value(sketch.New(index.Scheme()))(t))
	for _, meta := range expect.Value(filepath.Glob(filepath.Join(folder, "*", "meta.json")))(t) {
		set := expect.Value(Load(filepath.Dir(meta)))(t)
		bands := expect.Value(unseen.Open("", &unseen.Options{Rule: r}))(t)
		sketches, shingles := make([]sketch.Sketch, len(set.Docs)), make([][]uint64, len(set.Docs))
		for i, d := range set.Docs {
			sketches[i], _ = r.Sketcher.Sketch(d.Text)
			shingles[i] = r.Sketcher.Shingles(d.Text)
		}
		before := resembling(shingles)
		measure := func(way string, isNew func(i int, passed []bool) bool) {
			passed := make([]bool, len(set.Docs))
			var score Score
			between, unlike := 0, 0
			for i := range set.Docs {
				most := mostAlike(r, sketches, before[i], i, passed)
				passed[i] = isNew(i, passed)
				score.add(!passed[i], most >= r.Profile.Threshold)
				switch {
				case passed[i] || most >= r.Profile.Threshold:
				case most >= 0.4:
					between++
				default:
					unlike++
				}
			}
			t.Logf("%-26s %-9s %6d documents, %5d seen: %v; wrongly seen at 0.4 to %v: %d, below: %d", set.Name, way, len(set.Docs), score.right+score.wrong, score,
				r.Profile.Threshold, between, unlike)
		}
		measure("bands", func(i int, _ []bool) bool { return bands.New(bands.Keys(nil, []string{set.Docs[i].Text})) })
		measure("sketches", func(i int, passed []bool) bool {
			for _, e := range before[i] {
				if near, _ := r.Profile.NearDuplicates(&sketches[i], &sketches[e.place]); near && passed[e.place] {
					return false
				}
			}
			return true
		})
	}
}

// mostAlike returns the greatest exact resemblance of a document to those that were passed on before it. Where one of two is short, they are alike only if they are the same.
func mostAlike(r *rule.Rule, sketches []sketch.Sketch, before []earlier, i int, passed []bool) (most float64) {
	for _, e := range before {
		long := r.Profile.Long(&sketches[i]) && r.Profile.Long(&sketches[e.place])
		if passed[e.place] && (long || sketches[i].SameWords(&sketches[e.place])) {
			most = max(most, e.resemblance)
		}
	}
	return most
}

package corpora

import (
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// The corpus is what the measurements take it for: of the size, always the same, near-duplicates alike and all others not.
func TestShelf(t *testing.T) {
	all := expect.Value(LoadTexts(0))(t)
	t.Logf("%d sentences", len(all.Sentences))
	s := Shelf{Count: 400, Bytes: 2000, Duplicates: .3}
	documents := slices.Collect(all.All(s))
	if again := all.Document(s, 399); again != documents[399] {
		t.Error("the last document is another one where it is made alone")
	}
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	sketches, size, first := make([]sketch.Sketch, s.Count), 0, map[string]bool{}
	for i, d := range documents {
		sketches[i], _ = sketcher.Sketch(d.Body)
		size += len(d.Body)
		first[d.Cluster] = true
	}
	if mean := size / s.Count; mean < 1900 || mean > 2100 {
		t.Errorf("a body has %d bytes in the mean", mean)
	}
	if share := 1 - float64(len(first))/float64(s.Count); share < .25 || share > .35 {
		t.Errorf("a share of %.2f are near-duplicates", share)
	}
	alike, same, mistaken := 0, 0, 0
	for i := range sketches {
		for j := range i {
			agreement, _ := sketches[i].Agreement(&sketches[j])
			switch together := documents[i].Cluster == documents[j].Cluster; {
			case together:
				same++
				if agreement >= .64 {
					alike++
				}
			case agreement >= .64:
				mistaken++
			}
		}
	}
	if share := float64(alike) / float64(same); share < .95 || mistaken > 0 {
		t.Errorf("of %d pairs of near-duplicates %.3f agree, and %d of others", same, share, mistaken)
	}
}

package rerank

import (
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestPinnedHitsAreNeverFolded(t *testing.T) {
	hits := []Hit{hit("a", 1, 0), hit("b", 1, 1), hit("c", 1, 2), hit("d", 2, 0), hit("e", 2, 1)}
	hits[1].Pinned, hits[3].Pinned = true, true
	want := []Group{
		{Folded: []int{2}}, {Leader: 1, Representative: 1}, {Leader: 3, Representative: 3, Folded: []int{4}},
	}
	expect.Same(t, want, Collapse(hits, 5).Groups, "the groups")
}

// A component that two pinned hits are near to joins the first of them, whichever of its members that one is near to; but none that
// stands behind its own first member.
func TestComponentsJoinTheFirstPinnedHit(t *testing.T) {
	// Each differs from the next in 15 of 100 positions, so that only neighbours are near-duplicates.
	far, b, a, close := hit("far", 1, 45), hit("b", 1, 30), hit("a", 1, 15), hit("close", 1, 0)
	b.Sketch.Payload = slices.Concat(far.Sketch.Payload[:30], close.Sketch.Payload[30:])
	a.Sketch.Payload = slices.Concat(far.Sketch.Payload[:15], close.Sketch.Payload[15:])
	middle := b
	far.Pinned, close.Pinned, middle.Pinned = true, true, true
	for _, c := range []struct {
		name string
		hits []Hit
		want []Group
	}{
		{"the first by the later member", []Hit{far, close, a, b}, []Group{{Folded: []int{2, 3}}, {Leader: 1, Representative: 1}}},
		{"the first by the earlier member", []Hit{close, far, a, b}, []Group{{Folded: []int{2, 3}}, {Leader: 1, Representative: 1}}},
		{"one behind the first member", []Hit{a, far, b, close}, []Group{{Folded: []int{2}}, {Leader: 1, Representative: 1}, {Leader: 3, Representative: 3}}},
		{"the first of two by one member", []Hit{close, middle, a}, []Group{{Folded: []int{2}}, {Leader: 1, Representative: 1}}},
		{"one between", []Hit{far, a, close, b}, []Group{{Folded: []int{1, 3}}, {Leader: 2, Representative: 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Same(t, c.want, CollapseTransitive(c.hits, 4).Groups, "the groups")
		})
	}
}

package rerank

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/sketch"
)

// drift makes a copy of a sketch in which some positions are others.
func drift(r *rand.Rand, s *sketch.Sketch, positions int) *sketch.Sketch {
	c := *s
	c.Payload, c.Fingerprint = slices.Clone(s.Payload), r.Uint64()
	for _, at := range r.Perm(len(c.Payload))[:positions] {
		c.Payload[at] += byte(1 + r.IntN(255))
	}
	return &c
}

// lookalikes draws a list in which sketches differ from earlier ones in any number of positions, about the threshold above all.
func lookalikes(r *rand.Rand, k kind, n int) []Hit {
	hits := k.list(r, n)
	for i := range hits {
		h := &hits[i]
		if h.Sketch == nil {
			continue
		}
		scheme := h.Sketch.Scheme
		h.Sketch = distinct(r)
		if of := r.IntN(i + 1); of < i && hits[of].Sketch != nil && r.IntN(10) < 6 {
			share := min(1, max(0, 1-h.Profile.Threshold+(r.Float64()-0.5)*0.1))
			h.Sketch = drift(r, hits[of].Sketch, int(share*128))
			if r.IntN(12) == 0 {
				h.Sketch.Fingerprint = hits[of].Sketch.Fingerprint
			}
		}
		h.Sketch.Scheme = scheme
		if r.IntN(20) == 0 {
			h.Sketch.Payload = h.Sketch.Payload[:64]
			h.Sketch.Payload = append(h.Sketch.Payload, h.Sketch.Payload...)
		}
	}
	return hits
}

// valued makes the sketch of a set of numbers as m_smallest does, of at most 32 values.
func valued(r *rand.Rand, set []uint64) *sketch.Sketch {
	s := &sketch.Sketch{Scheme: 1, Form: sketch.Values, Bits: 64, Cut: len(set) > 32, Shingles: uint32(len(set)), Fingerprint: r.Uint64()}
	for _, x := range slices.Sorted(slices.Values(set))[:min(32, len(set))] {
		s.Payload = binary.BigEndian.AppendUint64(s.Payload, x)
	}
	return s
}

// TestCollapseOfManyLists: the same with lists of values, excerpts among them, by either measure.
func TestCollapseOfManyLists(t *testing.T) {
	r := rand.New(rand.NewPCG(45, 1))
	for i := range max(2, effort.Rounds(20)) {
		p := &Profile{Threshold: 0.2 + 0.7*r.Float64(), Measure: []Measure{Resemblance, Containment}[i/2%2]}
		hits := make([]Hit, 600)
		sets := make([][]uint64, len(hits))
		for rank := range hits {
			for range 10 + r.IntN(90) {
				sets[rank] = append(sets[rank], r.Uint64())
			}
			if of := r.IntN(rank + 1); of < rank && r.IntN(2) == 0 {
				at := r.IntN(len(sets[of]))
				sets[rank] = slices.Concat(sets[of][at:], sets[rank][:r.IntN(5)])
			}
			if hits[rank] = (Hit{Sketch: valued(r, sets[rank]), Profile: p}); r.IntN(15) == 0 {
				hits[rank].Sketch = distinct(r)
			}
		}
		for _, transitive := range []bool{false, true} {
			groups := definedGroupsBy(hits, transitive, func(i, j int) bool {
				is, _ := p.NearDuplicates(hits[i].Sketch, hits[j].Sketch)
				return is
			})
			var got [][]int
			for _, g := range collapsedBy(hits, len(hits), transitive).Groups {
				got = append(got, slices.Concat([]int{g.Leader}, g.Folded))
			}
			if diff := cmp.Diff(groups, got); diff != "" || len(got) == len(hits) {
				t.Fatalf("case %d, transitive %v: %s", i, transitive, diff)
			}
		}
	}
}

// TestCollapseOfManyIsItsDefinition: windows of some hundred hits.
func TestCollapseOfManyIsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(42, 1))
	for i := range effort.Rounds(22) {
		hits, transitive := lookalikes(r, randomKind(r, false), 600+r.IntN(200)), i%2 == 0
		list, _, groups := defined(hits, len(hits), transitive)
		got := collapsedBy(hits, len(hits), transitive)
		if diff := cmp.Diff(groups, got.Groups, cmpopts.EquateEmpty()); diff != "" || !slices.Equal(list, got.Shown) {
			t.Fatalf("case %d, transitive %v: %s", i, transitive, diff)
		}
	}
}

package rerank

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/sketch"
)

// TestAtMost: no agreement and no containment of two lists exceeds what the number of their common values leaves possible, and it
// is reached where both are whole.
func TestAtMost(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 14))
	list := func(from []uint64) *sketch.Sketch {
		set := map[uint64]bool{}
		for range 1 + r.IntN(60) {
			set[from[r.IntN(len(from))]] = true
		}
		var sorted []uint64
		for x := range set {
			sorted = append(sorted, x)
		}
		slices.Sort(sorted)
		s := &sketch.Sketch{Form: []sketch.Form{sketch.Values, sketch.Sample}[r.IntN(2)], Bits: 64, Shingles: uint32(len(sorted))}
		if most := 1 + r.IntN(40); len(sorted) > most {
			sorted, s.Cut = sorted[:most], true
		}
		for _, x := range sorted {
			s.Payload = binary.BigEndian.AppendUint64(s.Payload, x)
		}
		return s
	}
	compared, reached := 0, 0
	for range effort.Rounds(20_000) {
		from := make([]uint64, 5+r.IntN(100))
		for i := range from {
			from[i] = r.Uint64()
		}
		a, b := list(from), list(from)
		b.Form = a.Form
		common := 0
		for i := 0; i < len(a.Payload); i += valueSize {
			for j := 0; j < len(b.Payload); j += valueSize {
				if string(a.Payload[i:i+valueSize]) == string(b.Payload[j:j+valueSize]) {
					common++
				}
			}
		}
		common += r.IntN(2) // hashes of values can be equal
		if agreement, ok := a.Agreement(b); ok {
			compared++
			if most := atMost(a, b, common, Resemblance); agreement > most {
				t.Fatalf("agreement %v, at most %v with %d in common: %+v %+v", agreement, most, common, a, b)
			}
		}
		if e, ok := a.Containment(b); ok {
			most := atMost(a, b, common, Containment)
			if e.Value > most {
				t.Fatalf("containment %v, at most %v with %d in common: %+v %+v", e.Value, most, common, a, b)
			}
			if e.Value == most {
				reached++
			}
		}
	}
	if compared < effort.Rounds(15_000) || reached < effort.Rounds(2000) {
		t.Errorf("%d compared, %d reached", compared, reached)
	}
}

package rerank

import (
	"math/rand/v2"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
)

// TestOutlinesHideNothing: what a hit may fold into is never told apart from it by the outlines.
func TestOutlinesHideNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 1))
	pairs, told := 0, 0
	for range effort.Rounds(600) {
		hits := lookalikes(r, randomKind(r, true), 60)
		for rank := range hits {
			if hits[rank].leads() {
				continue
			}
			p := newProbe(&hits[rank])
			for other := range rank {
				if hits[other].Sketch == nil {
					continue
				}
				o := outlineOf(hits[other].Sketch)
				apart := p.apart(&o)
				if near(hits, rank, other) {
					if pairs++; apart {
						t.Fatalf("%+v may fold into %+v (threshold %v)", hits[rank].Sketch, hits[other].Sketch, hits[rank].Profile.Threshold)
					}
				}
				if apart {
					told++
				}
			}
		}
	}
	if least := effort.Rounds(3000); pairs < least || told < least {
		t.Errorf("%d pairs of near-duplicates and %d that are told apart show little", pairs, told)
	}
}

// TestOutlinesReachTheThreshold: sketches that differ in as many positions as a threshold lets them, in their lowest bits, pass; with one more
// they need no second look.
func TestOutlinesReachTheThreshold(t *testing.T) {
	r := rand.New(rand.NewPCG(52, 1))
	for percent := 1; percent <= 100; percent++ {
		for _, length := range []int{8, 64, 120, 128} {
			p := &Profile{Threshold: float64(percent) / 100}
			a := Hit{Sketch: distinct(r), Profile: p}
			a.Sketch.Payload = a.Sketch.Payload[:length]
			b := Hit{Sketch: drift(r, a.Sketch, 0), Profile: p}
			near := true
			for at := 0; near && at < length; at++ {
				b.Sketch.Payload[at] ^= byte(1 + r.IntN(3))
				near, _ = p.Near(&b, &a)
				probe, o := newProbe(&b), outlineOf(a.Sketch)
				if probe.apart(&o) == near {
					t.Fatalf("threshold %v: of %d positions %d differ, near %v", p.Threshold, length, at+1, near)
				}
			}
		}
	}
}

// TestOutlinesTellStrangersApart: of unrelated sketches hardly any need a second look, at the lowest threshold of a preset.
func TestOutlinesTellStrangersApart(t *testing.T) {
	hits := noneFolds(400)
	passed := 0
	for rank := range hits {
		hits[rank].Profile = &Thorough
		p := newProbe(&hits[rank])
		for other := range rank {
			if o := outlineOf(hits[other].Sketch); !p.apart(&o) {
				passed++
			}
		}
	}
	if passed > 5 {
		t.Errorf("%d of %d pairs pass", passed, 400*399/2)
	}
}

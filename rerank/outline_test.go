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
			if hits[rank].neverFolds() {
				continue
			}
			p := newProbe(&hits[rank])
			for other := range rank {
				if hits[other].Sketch == nil {
					continue
				}
				o := outlineOf(hits[other].Sketch)
				apart := p.rulesOut(&o)
				if hits[rank].foldsInto(&hits[other]) {
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

package cluster

import (
	"math/rand/v2"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// TestSigner: no near-duplicates are apart, and of two texts that have nothing in common nearly all are.
func TestSigner(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for _, positions := range []int{64, 72, 96, 120, 128, 256} {
		for _, threshold := range []float64{0.3, 0.64, 0.9} {
			scheme := sketch.DefaultScheme()
			scheme.Positions = positions
			rule := ruleOf(t, scheme, threshold, 8)
			c := expect.Value(New(Options{Rule: rule}))(t)
			signer, unlike := c.signer(), 0
			near := 0
			for round := range 4000 {
				a := sketch.Sketch{Scheme: rule.Sketcher.SchemeID(), Form: sketch.Positions, Bits: 8, Shingles: 100, Words: 100, Fingerprint: 1, Payload: make([]byte, positions)}
				b := a
				b.Payload, b.Fingerprint = make([]byte, positions), 2
				for i := range positions {
					a.Payload[i], b.Payload[i] = byte(r.Uint32()), byte(r.Uint32())
				}
				if round%2 > 0 { // about as near as the threshold
					for _, i := range r.Perm(positions)[:min(positions, max(0, int(threshold*float64(positions))+r.IntN(5)-1))] {
						b.Payload[i] = a.Payload[i]
					}
				}
				var x, y entry
				x[1], x[2] = signer.sign(&a)
				y[1], y[2] = signer.sign(&b)
				is, _ := rule.Profile.NearDuplicates(&a, &b)
				apart := signer.apart(&x, &y)
				if is {
					near++
				}
				if is && apart {
					t.Fatalf("%d positions, threshold %v: near-duplicates are apart", positions, threshold)
				}
				if round%2 == 0 && apart {
					unlike++
				}
			}
			if near < 400 {
				t.Errorf("%d positions, threshold %v: %d near-duplicates alone were tried", positions, threshold, near)
			}
			if threshold == 0.64 && positions <= 128 && unlike < 1990 {
				t.Errorf("%d positions: %d of 2000 unlike texts are apart", positions, unlike)
			}
			c.Close()
		}
	}
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	rule.Profile.Measure = rerank.Containment
	c := expect.Value(New(Options{Rule: rule}))(t)
	defer c.Close()
	expect.Same(t, 0, c.signer().positions, "the signer of a measure that looks at excerpts")
}

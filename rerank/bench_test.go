package rerank

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkCollapse measures 100 hits of which none folds: the most comparisons.
func BenchmarkCollapse(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	hits := make([]Hit, 100)
	for i := range hits {
		hits[i] = hit("", byte(i), 0)
		payload := make([]byte, 128)
		for j := range payload {
			payload[j] = byte(r.Uint32())
		}
		hits[i].Sketch.Payload = payload
	}
	for b.Loop() {
		if len(Collapse(hits, len(hits), false).Groups) != len(hits) {
			b.Fatal("something folded")
		}
	}
}

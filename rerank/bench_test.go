package rerank

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// noneFolds is a list of which nothing folds: the most comparisons.
func noneFolds(n int) []Hit {
	r := rand.New(rand.NewPCG(5, 6))
	hits := make([]Hit, n)
	for i := range hits {
		hits[i] = hit("", byte(i), 0)
		hits[i].Sketch = distinct(r)
	}
	return hits
}

// BenchmarkCollapseFolding measures hits of which three in ten fold.
func BenchmarkCollapseFolding(b *testing.B) {
	for _, n := range []int{22, 100, 300, 840, 2000, 10_000} {
		r, hits := rand.New(rand.NewPCG(9, 9)), noneFolds(n)
		for i := range hits {
			if i > 0 && r.Float64() < 0.3 {
				hits[i].Sketch = drift(r, hits[r.IntN(i)].Sketch, r.IntN(15))
			}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Collapse(hits, n, false)
			}
		})
	}
}

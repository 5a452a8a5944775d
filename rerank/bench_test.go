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

// BenchmarkCollapse measures hits of which none folds.
func BenchmarkCollapse(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		hits := noneFolds(n)
		for _, transitive := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/transitive=%v", n, transitive), func(b *testing.B) {
				for b.Loop() {
					if len(Collapse(hits, len(hits), transitive).Groups) != len(hits) {
						b.Fatal("something folded")
					}
				}
			})
		}
	}
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

// BenchmarkWalk measures a walk of which nothing folds.
func BenchmarkWalk(b *testing.B) {
	hits := noneFolds(100)
	for b.Loop() {
		walk := new(Walk)
		for i := range hits {
			walk.Take(&hits[i], len(hits))
		}
		if walk.Leaders() != len(hits) {
			b.Fatal("something folded")
		}
	}
}

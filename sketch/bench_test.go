package sketch

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkKernel measures 295 ready hashes to 128 positions: a text of about 300 words.
func BenchmarkKernel(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	sets := make([][]uint64, 64) // one alone would teach the processor its branches
	for i := range sets {
		for range 295 {
			sets[i] = append(sets[i], r.Uint64())
		}
	}
	slots := new(slotArray)
	for i := 0; b.Loop(); i++ {
		slots.fill(defaultPositions, sets[i%len(sets)])
	}
}

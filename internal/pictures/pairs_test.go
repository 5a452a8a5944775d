package pictures

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// source makes texts of words that were never seen before.
type source struct{ r *rand.Rand }

func newSource(seed uint64) *source { return &source{rand.New(rand.NewPCG(124, seed))} }

func (s *source) words(b *strings.Builder, n int) {
	for range n {
		x := s.r.Uint64()
		for range 8 {
			b.WriteByte('a' + byte(x%26))
			x /= 26
		}
		b.WriteByte(' ')
	}
}

// pair returns two texts of n shingles each that begin alike and go on differently, with as many shingles in common as bring
// them nearest to the resemblance, and the resemblance that they have.
func (s *source) pair(n int, resemblance float64) (one, other string, exact float64) {
	common := int(math.Round(2 * float64(n) * resemblance / (1 + resemblance)))
	var head, a, b strings.Builder
	if common > 0 {
		s.words(&head, common+defaults.Words-1)
	} else {
		n += defaults.Words - 1
	}
	a.WriteString(head.String())
	b.WriteString(head.String())
	s.words(&a, n-common)
	s.words(&b, n-common)
	return a.String(), b.String(), float64(common) / float64(2*n-common)
}

// matching is how probable it is that a position agrees: because it is the same shingle's, or by chance in the byte that is kept.
func matching(r float64) float64 { return r + (1-r)/256 }

// matches returns how many of k positions have to agree at least for an agreement that reaches the threshold.
func matches(threshold float64, k int) int {
	return int(math.Ceil(float64(k)*matching(threshold) - 1e-9))
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

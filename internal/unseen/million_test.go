package unseen

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// keysOf are keys of random documents: those of the bands of unlike texts are as random.
func keysOf(random *rand.Rand, keys []uint64) []uint64 {
	for i := range keys {
		keys[i] = random.Uint64()
	}
	return keys
}

// TestMillion: with a million documents in it a filter takes the stated share of a million others for seen, within four standard errors.
func TestMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("15 s")
	}
	for _, rate := range []float64{1e-3, 1e-4, 1e-5} {
		const documents = 1_000_000
		random := rand.New(rand.NewPCG(11, uint64(1/rate)))
		s := expect.Value(Open("", &Options{ruleFor(t, sketch.Scheme{}), documents, rate}))(t)
		keys := make([]uint64, s.Bands)
		for range documents {
			s.New(keysOf(random, keys))
		}
		stated, found := s.Rate(), 0.0
	other:
		for range documents {
			for _, key := range keysOf(random, keys) {
				if s.has(key) {
					found++
					continue other
				}
			}
		}
		t.Logf("%v: %.1f bytes a document; %v of a million others are seen, stated %.1f", rate, 8*float64(s.Words)/documents, found, stated*documents)
		if math.Abs(found-stated*documents) > 4*math.Sqrt(stated*documents) || stated > 1.02*rate {
			t.Errorf("%v: %v are seen, %v stated", rate, found/documents, stated)
		}
	}
}

// BenchmarkNew remembers documents in a filter of a million, and the same keys in hash maps, as an index of bands does.
func BenchmarkNew(b *testing.B) {
	const documents = 1_000_000
	for _, rate := range []float64{1e-3, 1e-5} {
		b.Run(map[float64]string{1e-3: "filter 1e-3", 1e-5: "filter 1e-5"}[rate], func(b *testing.B) {
			s := expect.Value(Open("", &Options{ruleFor(b, sketch.Scheme{}), documents, rate}))(b)
			random, keys := rand.New(rand.NewPCG(13, 14)), make([]uint64, s.Bands)
			for range b.N {
				s.New(keysOf(random, keys))
			}
			b.ReportMetric(8*float64(s.Words)/documents, "B/document")
		})
	}
	b.Run("maps", func(b *testing.B) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		maps := make([]map[uint64]uint32, 13)
		for i := range maps {
			maps[i] = map[uint64]uint32{}
		}
		random, keys := rand.New(rand.NewPCG(13, 14)), make([]uint64, len(maps))
		for i := range b.N {
			for band, key := range keysOf(random, keys) {
				if _, has := maps[band][key]; !has {
					maps[band][key] = uint32(i)
				}
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "B/document")
		runtime.KeepAlive(maps)
	})
}

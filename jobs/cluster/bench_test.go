package cluster

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/neardup/sidecar/sketch"
)

// planted adds so many sketches of 128 positions to a corpus, of which three in ten are near-duplicates of an earlier one, by
// chance from equal to a third of the positions other. It is as if their texts had 200 shingles.
func planted(b testing.TB, c *Corpus, n int) {
	r := rand.New(rand.NewPCG(uint64(n), 4))
	const bases = 1 << 14
	recent := make([][]byte, 0, bases)
	scheme := c.options.Rule.Sketcher.SchemeID()
	s := sketch.Sketch{Scheme: scheme, Form: sketch.Positions, Bits: 8, Shingles: 200, Payload: make([]byte, 128)}
	id := []byte("https://www.example.org/articles/")
	for i := range n {
		for at := 0; at < 128; at += 8 {
			word := r.Uint64()
			for k := range 8 {
				s.Payload[at+k] = byte(word >> (8 * k))
			}
		}
		s.Fingerprint = r.Uint64()
		if len(recent) > 0 && r.IntN(10) < 3 {
			changed := r.IntN(44)
			other := recent[r.IntN(len(recent))]
			for at, value := range other {
				if r.IntN(128) >= changed {
					s.Payload[at] = value
				}
			}
		} else if len(recent) < bases {
			recent = append(recent, bytes.Clone(s.Payload))
		} else {
			copy(recent[r.IntN(bases)], s.Payload)
		}
		if err := c.Add(Document{ID: string(strconv.AppendInt(id, int64(i), 10)), Host: "example.org", Sketch: &s}); err != nil {
			b.Fatal(err)
		}
	}
}

// peak is the most memory that the process had, in MB, where the system says so.
func peak() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.Atoi(string(fields[0]))
	return float64(kb) / 1024
}

// BenchmarkBands clusters sketches, from adding the first to visiting the last member, with a memory of 1 GB. With NEARDUP_SOAK
// it goes up to ten millions.
func BenchmarkBands(b *testing.B) {
	sizes := []int{10_000, 100_000}
	if os.Getenv("NEARDUP_SOAK") != "" {
		sizes = append(sizes, 1_000_000, 3_000_000, 10_000_000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rule := ruleOf(b, sketch.DefaultScheme(), 0.64, 8)
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(DefaultMemory))
			for b.Loop() {
				c, err := New(Options{Rule: rule, Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				planted(b, c, n)
				b.StartTimer()
				if err := c.Cluster(context.Background()); err != nil {
					b.Fatal(err)
				}
				clusters, last := 0, ""
				err = c.Each(context.Background(), func(m *Member) error {
					if m.Cluster != last {
						clusters, last = clusters+1, m.Cluster
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				c.Close()
				b.ReportMetric(float64(clusters), "clusters")
				b.ReportMetric(peak(), "peak-MB")
			}
		})
	}
}

package proxy

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
)

// TestHoldEnds: what goes on for a request that was answered, such as a body that streams, takes no room and gives none back
// twice.
func TestHoldEnds(t *testing.T) {
	all := &holds{most: 100, mostSearches: 1, held: NewMetrics(nil).held}
	t.Run("in order", func(t *testing.T) {
		h := &hold{all: all}
		if !h.takePlace() || !h.take(60) || h.take(41) || !h.Hold(40) || h.Hold(1) {
			t.Fatalf("%d of 100 bytes are held", all.bytes)
		}
		h.release()
		h.Hold(-40)
		h.keepOnly(0)
		if h.take(1) || all.bytes != 0 || all.searches != 0 {
			t.Errorf("%d bytes and %d searches are held", all.bytes, all.searches)
		}
	})
	t.Run("at once", func(t *testing.T) {
		for range max(100, effort.Rounds(1000)) {
			h := &hold{all: all}
			var wg sync.WaitGroup
			wg.Go(func() {
				if h.Hold(50) {
					h.Hold(-50)
				}
			})
			h.take(20)
			h.release()
			if wg.Wait(); all.bytes != 0 {
				t.Fatalf("%d bytes are held", all.bytes)
			}
		}
	})
}

// BenchmarkReadBody reads bodies whose length is known: a buffer that grows in few steps leaves little behind.
func BenchmarkReadBody(b *testing.B) {
	for _, length := range []int{10 << 10, 100 << 10, 1000 << 10} {
		b.Run(fmt.Sprintf("%d_kB", length>>10), func(b *testing.B) {
			sent, unheld := make([]byte, length), (*hold)(nil)
			b.ReportAllocs()
			b.SetBytes(int64(length))
			for b.Loop() {
				if _, whole, err := unheld.readBody(bytes.NewReader(sent), maxWhole, int64(length)); !whole || err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

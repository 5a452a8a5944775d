package sketch

import (
	"runtime"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// TestMemoryOfLongTexts: a sketch of a long text takes no more than 32 times its length, however short its words are. It is what the proxy
// counts on for its budget.
func TestMemoryOfLongTexts(t *testing.T) {
	if effort.Race {
		t.Skip("the race detector takes memory of its own")
	}
	const words = 1<<20 + 100 // just too many for a table of a million
	var b strings.Builder
	for i := range words {
		b.WriteByte('a' + byte(uint32(i)*2654435761>>27%26))
		b.WriteByte(' ')
	}
	text := b.String()
	s := expect.Value(New(DefaultScheme()))(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.Sketch(text)
	runtime.ReadMemStats(&after)
	took := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(text))
	t.Logf("%.1f times its length", took)
	if took > 32 {
		t.Errorf("a text of %d bytes takes %.1f times as much", len(text), took)
	}
}

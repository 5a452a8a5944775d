package proxy

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// TestRecentIsBounded: however much is written, what is remembered of it takes no more memory than it says.
func TestRecentIsBounded(t *testing.T) {
	if effort.Race {
		t.Skip("one goroutine: no race to be seen")
	}
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	rule := &rule.Rule{Bands: 24, Rows: 4, Clusters: true, Sketcher: sketcher, Profile: rerank.Profile{Threshold: 0.6}}
	var r recent
	memory := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := memory()
	place := entryKey(client{key: "x"}, "news-1")
	var last *newcomer
	for i := range 5 * recentMost {
		s, _ := rule.Sketch([]string{fmt.Sprint("a text of many words and with number ", i, " and ", i*i)})
		id := fmt.Sprint("document-", i)
		last = &newcomer{candidate: candidate{sketch: &s}, rule: rule, keys: rule.BandKeys(&s)}
		r.add(place, rule, &candidate{id: id, index: "news-1", sketch: &s, cluster: rule.ClusterID(s.Fingerprint), stored: &adapters.Stored{ID: id}}, last.keys)
	}
	took := memory() - before
	t.Logf("%.1f MB", float64(took)/(1<<20))
	if took > 24<<20 {
		t.Errorf("it takes %d MB", took>>20)
	}
	if len(r.find(place, last)) == 0 || len(r.find(entryKey(client{key: "y"}, "news-1"), last)) > 0 {
		t.Error("the last document is not found, or by another client")
	}
	r.began = r.began.Add(-10 * recentFor)
	if old := r.find(place, last); len(old) > 0 {
		t.Errorf("%d documents are remembered for long", len(old))
	}
	runtime.KeepAlive(&r)
}

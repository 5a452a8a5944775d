package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/proxy"
)

// BenchmarkComparison asks for the same page in turns: plainly, collapsed by the engine's own means over a key that is stored,
// and collapsed through us at query time, each also with the folded hits. Its figures are medians.
func BenchmarkComparison(b *testing.B) {
	for _, kind := range engines.Kinds {
		b.Run(kind, func(b *testing.B) {
			s := &shop{b: b, e: engines.Shared(b, kind)}
			rule := benchRule(b, "")
			rule.Clusters = true
			rule.Bands, rule.Rows = adapters.ChooseBands(128, rule.Profile.Threshold)
			index := fmt.Sprintf("bench-%d-comparison", os.Getpid())
			s.fillClusters(index, &rule)
			rule.Clusters, rule.Bands, rule.Rows = false, 0, 0
			for _, from := range []int{0, 40, 490} {
				b.Run(fmt.Sprintf("from %d", from), func(b *testing.B) { s.compareOwn(b, index, rule, from) })
			}
		})
	}
}

// compareOwn measures one page.
func (s *shop) compareOwn(b *testing.B, index string, rule adapters.Rule, from int) {
	outer := s.b
	s.b = b
	defer func() { s.b = outer }()
	base := s.serve(index, rule, proxy.Limits{}).base
	page := purchase{index: index, from: from, size: 10, wants: "collapsed"}
	own := `,"collapse":{"field":"neardup_cluster"}`
	shown := `,"collapse":{"field":"neardup_cluster","inner_hits":{"name":"all","size":50}}`
	if s.typesense() {
		own, shown = "&group_by=neardup_cluster&group_limit=1", "&group_by=neardup_cluster&group_limit=50"
	}
	kinds := []struct {
		name, at, members, control string
		times                      []float64
	}{
		{name: "plain", at: s.e.URL},
		{name: "own", at: s.e.URL, members: own},
		{name: "own-shown", at: s.e.URL, members: shown},
		{name: "ours", at: base},
		{name: "ours-shown", at: base, control: "neardup_expand=source"},
	}
	n, warm := 0, 40
	ask := func() {
		n++
		for i := range kinds {
			p := page
			p.members, p.control = kinds[i].members, kinds[i].control
			began := time.Now()
			s.buy(kinds[i].at, p, n, kinds[i].at == base)
			if n > warm {
				kinds[i].times = append(kinds[i].times, time.Since(began).Seconds()*1000)
			}
		}
	}
	for n < warm {
		ask()
	}
	for b.Loop() {
		ask()
	}
	b.ReportMetric(0, "ns/op")
	for _, k := range kinds {
		b.ReportMetric(median(k.times), k.name+"-ms")
	}
}

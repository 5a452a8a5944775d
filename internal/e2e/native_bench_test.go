package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/sketch"
)

// BenchmarkNative compares the first page that the engine collapses with the one of query time and with the engine's own page, asked in
// turns. Its figures are medians.
func BenchmarkNative(b *testing.B) {
	for _, kind := range engines.Kinds {
		b.Run(kind, func(b *testing.B) {
			s := &shop{b: b, e: engines.Shared(b, kind)}
			rule := benchRule(b, "")
			rule.Native, rule.Clusters = true, true
			rule.Bands, rule.Rows = adapters.ChooseBands(128, rule.Profile.Threshold)
			index := fmt.Sprintf("bench-%d-native", os.Getpid())
			s.fillClusters(index, &rule)
			for _, from := range []int{0, 40, 490} {
				b.Run(fmt.Sprintf("from %d", from), func(b *testing.B) { s.compareNative(b, index, rule, from) })
			}
		})
	}
}

// compareNative measures one page.
func (s *shop) compareNative(b *testing.B, index string, rule adapters.Rule, from int) {
	outer := s.b
	s.b = b
	defer func() { s.b = outer }()
	base := s.serve(index, rule, proxy.Limits{}).base
	p := purchase{index: index, from: from, size: 10, wants: "collapsed"}
	slow := p
	slow.control = "neardup_window=1000"
	ask := func(base string, p purchase, n int, through bool) float64 {
		began := time.Now()
		s.buy(base, p, n, through)
		return time.Since(began).Seconds() * 1000
	}
	for n := range 30 {
		ask(base, p, n, true)
		ask(base, slow, n, true)
		ask(s.e.URL, p, n, false)
	}
	var plain, native, atQuery []float64
	n := 0
	for b.Loop() {
		n++
		plain = append(plain, ask(s.e.URL, p, n, false))
		native = append(native, ask(base, p, n, true))
		atQuery = append(atQuery, ask(base, slow, n, true))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(plain), "plain-ms")
	b.ReportMetric(median(native), "native-ms")
	b.ReportMetric(median(atQuery), "query-ms")
	b.ReportMetric(median(native)/median(plain), "native/plain")
	b.ReportMetric(median(native)/median(atQuery), "native/query")
}

// fillClusters makes an index of the benchmark's corpus with all fields of ours, past the sidecar.
func (s *shop) fillClusters(index string, rule *adapters.Rule) {
	s.b.Helper()
	at, drop := s.e.URL+"/"+index, s.e.URL+"/"+index
	if s.typesense() {
		at, drop = s.e.URL+"/collections/"+index+"/documents", s.e.URL+"/collections/"+index
		s.send("POST", s.e.URL+"/collections", fmt.Sprintf(`{"name":%q,"fields":[{"name":"title","type":"string"},{"name":"body","type":"string"},`+
			`{"name":"at","type":"int64"},{"name":"neardup_sketch","type":"string","index":false,"optional":true},`+
			`{"name":"neardup_cluster","type":"string","facet":true,"optional":true}]}`, index))
	} else {
		s.send("PUT", at, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":"-1"},"mappings":{"properties":`+
			`{"id":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},"at":{"type":"date","format":"epoch_second"},`+
			`"neardup_sketch":{"type":"binary","doc_values":true},"neardup_cluster":{"type":"keyword"}}}}`)
	}
	s.b.Cleanup(func() { s.send("DELETE", drop, "") })
	documents := benchCorpus()
	ours := clusteredBench(rule, documents)
	for part := range slices.Chunk(documents, 1000) {
		var lines bytes.Buffer
		for _, d := range part {
			line, err := json.Marshal(d)
			if err == nil {
				line, err = adapters.WithOurs(line, ours[d.ID])
			}
			if err != nil {
				s.b.Fatal(err)
			}
			if !s.typesense() {
				fmt.Fprintf(&lines, "{\"index\":{\"_id\":%q}}\n", d.ID)
			}
			lines.Write(append(line, '\n'))
		}
		path := "/_bulk"
		if s.typesense() {
			path = "/import?action=create"
		}
		s.send("POST", at+path, lines.String())
	}
	if !s.typesense() {
		s.send("POST", at+"/_forcemerge?max_num_segments=1", "")
		s.send("POST", at+"/_refresh", "")
	}
}

// clusteredBench returns the sketches of the documents, and their clusters as far as bands find near-duplicates.
func clusteredBench(rule *adapters.Rule, documents []benchDocument) map[string]adapters.Ours {
	sketches := make([]sketch.Sketch, len(documents))
	parent, buckets := make([]int, len(documents)), map[[2]int64][]int{}
	find := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	for i, d := range documents {
		parent[i] = i
		sketches[i], _ = rule.Sketch([]string{d.Title, d.Body})
		for band, key := range rule.BandKeys(&sketches[i]) {
			at := [2]int64{int64(band), key}
			for _, other := range buckets[at] {
				if agreement, ok := sketches[i].Agreement(&sketches[other]); ok && agreement >= rule.Profile.Threshold {
					parent[find(i)] = find(other)
				}
			}
			buckets[at] = append(buckets[at], i)
		}
	}
	least := map[int]uint64{}
	for i := range documents {
		if number, seen := least[find(i)]; !seen || sketches[i].Fingerprint < number {
			least[find(i)] = sketches[i].Fingerprint
		}
	}
	ours := map[string]adapters.Ours{}
	for i, d := range documents {
		ours[d.ID] = adapters.Ours{Sketch: sketches[i].String(), Cluster: rule.ClusterID(least[find(i)])}
	}
	return ours
}

package elastic

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// fillVectors makes an index whose versions of a text lie near one another as vectors too.
func (l *larder) fillVectors(r *rand.Rand, index string, n int) {
	l.t.Helper()
	vector, settings := `{"type":"dense_vector","dims":4,"index":true,"similarity":"l2_norm"}`, ``
	if l.d.OpenSearch {
		vector = `{"type":"knn_vector","dimension":4,"method":{"name":"hnsw","engine":"lucene","space_type":"l2"}}`
		settings = `"index":{"knn":true},`
	}
	l.send(requestFor("DELETE", "/"+index, "", ""))
	l.drop(index)
	l.must("PUT", "/"+index, `{"settings":{`+settings+`"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
		"neardup_sketch":{"type":"binary","doc_values":true},"v":`+vector+`,`+pageProperties+`}}}`)
	documents := map[string]stored{}
	for j := range n {
		family := 100 + j
		if r.IntN(10) < 5 {
			family = r.IntN(12)
		}
		near := rand.New(rand.NewPCG(uint64(family), 3))
		var v []float64
		for range 4 {
			v = append(v, near.Float64()+0.01*r.Float64())
		}
		d := stored{at: 1700000000000 + int64(j)*3600000}
		d.source = map[string]any{"title": "alpha", "body": sentence(family, r.IntN(3), 40), "v": v, "at": time.UnixMilli(d.at).UTC().Format(time.RFC3339)}
		if s, ok := pageRule(l).Sketch(textsOf(d)); ok && r.IntN(6) > 0 {
			d.sketch = s.String()
		}
		documents[fmt.Sprint("v", j)] = d
	}
	l.put(index, documents)
}

// TestRealNeighbours holds searches for nearest neighbours against the definition: where nothing folds in the client's own list it is that,
// and otherwise the list of more neighbours, collapsed and as long as the client's own at most.
func TestRealNeighbours(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		r := seeded(t)
		index := l.name + "v"
		l.fillVectors(r, index, 150)
		folds := 0
		for range searches(60) {
			k := 5 + r.IntN(20)
			p := &page{rule: pageRule(l), from: r.IntN(8) * r.IntN(2), size: 1 + r.IntN(12)}
			p.rule.DateField, p.rule.Choice = "at", []adapters.Choice{{}, {By: adapters.ByNewest}}[r.IntN(2)]
			p.choose(r)
			vector, _ := json.Marshal([]float64{r.Float64(), r.Float64(), r.Float64(), r.Float64()})
			clause := func(k int) string {
				if l.d.OpenSearch {
					return fmt.Sprintf(`"query":{"knn":{"v":{"vector":%s,"k":%d}}}`, vector, k)
				}
				return fmt.Sprintf(`"knn":{"field":"v","query_vector":%s,"k":%d,"num_candidates":150}`, vector, k)
			}
			body := func(k, from, size int) *adapters.Request {
				return requestFor("POST", "/"+index+"/_search", "", fmt.Sprintf(`{%s,"_source":["at"],"from":%d,"size":%d%s}`, clause(k), from, size, p.controls))
			}
			plain := func(k, from, size int) *adapters.Request {
				return requestFor("POST", "/"+index+"/_search", "", strings.ReplaceAll(string(body(k, from, size).Body), p.controls+"}", "}"))
			}
			own := fakeHits([]byte(l.own(plain(k, 0, 100))))[0]
			p.raw, p.hits = own, l.judged(p.rule, own)
			p.collapse()
			folded := p.folded() > 0
			if folded {
				folds++
				p.raw = fakeHits([]byte(l.own(plain(100, 0, 100))))[0]
				p.hits = l.judged(p.rule, p.raw)
				p.collapse()
				p.ranks = p.list.Shown[min(p.from, len(p.list.Shown), len(own)):min(p.from+p.size, len(p.list.Shown), len(own))]
			}
			answer, err := l.answer(body(k, p.from, p.size), planOf(adapters.Rules{p.rule}, r.IntN(2) == 0, 0.3))
			if err != nil {
				t.Fatalf("%s: %v", body(k, p.from, p.size).Body, err)
			}
			p.checkNeighbours(t, string(body(k, p.from, p.size).Body), string(answer.Body), own)
		}
		if folds == 0 {
			t.Error("nothing folded")
		}
	})
}

func (p *page) checkNeighbours(t *testing.T, name, got string, own []string) {
	t.Helper()
	hits := fakeHits([]byte(got))[0]
	want := []string{}
	for _, rank := range p.ranks {
		want = append(want, p.raw[rank])
	}
	if p.show.DryRun {
		want = own[min(p.from, len(own)):min(p.from+p.size, len(own))]
	}
	for i := range hits {
		hits[i], _, _, _ = split(t, hits[i])
	}
	if strings.Join(hits, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(hits, "\n"), strings.Join(want, "\n"))
	}
	total, _ := totalIn(t, got)
	if shown := min(len(p.raw)-p.folded(), len(own)); p.show.Collapsed && !p.show.DryRun && total != shown {
		t.Errorf("%s: total %d, want %d", name, total, shown)
	} else if (!p.show.Collapsed || p.show.DryRun) && total != len(own) {
		t.Errorf("%s: total %d, want the engine's %d", name, total, len(own))
	}
}

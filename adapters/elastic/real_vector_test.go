package elastic

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// fillVectors makes an index whose versions of a text lie near one another as vectors too.
func (l *larder) fillVectors(r *rand.Rand, index string, n, shards int) {
	l.t.Helper()
	vector, settings := `{"type":"dense_vector","dims":4,"index":true,"similarity":"l2_norm"}`, ``
	if l.d.OpenSearch {
		vector = `{"type":"knn_vector","dimension":4,"method":{"name":"hnsw","engine":"lucene","space_type":"l2"}}`
		settings = `"index":{"knn":true},`
	}
	l.drop(index)
	l.must("PUT", "/"+index, `{"settings":{`+settings+fmt.Sprintf(`"number_of_shards":%d,`, shards)+`
		"number_of_replicas":0},"mappings":{"properties":{
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
		d.source = map[string]any{"title": "alpha", "body": sentence(family, r.IntN(3), 40), "v": v,
			"at": time.UnixMilli(d.at).UTC().Format(time.RFC3339)}
		if s, ok := pageRule(l).Sketch(textsOf(d)); ok && r.IntN(6) > 0 {
			d.sketch = s.String()
		}
		documents[fmt.Sprint("v", j)] = d
	}
	l.put(index, documents)
}

// nearby is a search for neighbours at random.
type nearby struct {
	form, vector, more string
	k, candidates      int
}

// of returns its body with k neighbours.
func (n nearby) of(k, from, size int, controls string) string {
	clause := fmt.Sprintf(`"knn":{"field":"v","query_vector":%s,"k":%d,"num_candidates":%d%s}`, n.vector, k, max(n.candidates,
		n.k, k), n.more)
	switch n.form {
	case "query":
		clause = `"query":{` + clause + `}`
	case "retriever":
		clause = `"retriever":{` + clause + `}`
	case "opensearch":
		clause = fmt.Sprintf(`"query":{"knn":{"v":{"vector":%s,"k":%d%s}}}`, n.vector, k, n.more)
	}
	return fmt.Sprintf(`{%s,"_source":["at"],"from":%d,"size":%d%s}`, clause, from, size, controls)
}

// list returns the engine's own for k neighbours.
func (n nearby) list(l *larder, index string, k int) []string {
	return fakeHits([]byte(l.own(requestFor("POST", "/"+index+"/_search", "", n.of(k, 0, 1000, "")))))[0]
}

// TestRealNeighbours holds searches for nearest neighbours against the definition: where nothing folds in the list of more
// neighbours it is the client's own, and otherwise that list, collapsed and as long as the client's own at most.
func TestRealNeighbours(t *testing.T) {
	onEach(t, []string{engines.Elasticsearch, engines.OpenSearchVectors}, func(t *testing.T, l *larder) {
		r := seeded(t)
		for _, shards := range []int{1, 3} {
			index := fmt.Sprint(l.name, "v", shards)
			l.fillVectors(r, index, 100+50*shards, shards)
			t.Run(fmt.Sprint(shards), func(t *testing.T) { l.testNeighbours(t, r, index) })
		}
	})
}

func (l *larder) testNeighbours(t *testing.T, r *rand.Rand, index string) {
	folds, once, asked := 0, 0, 0
	forms := []string{"knn", "query", "retriever"}
	if l.d.OpenSearch {
		forms = []string{"opensearch"}
	}
	for round := range searches(30) {
		near := nearby{form: forms[r.IntN(len(forms))], k: 5 + r.IntN(20), candidates: 40 + 80*r.IntN(2)}
		near.more = []string{"", "", `,"filter":{"range":{"at":{"gte":"2023-11-15"}}}`,
			`,"filter":{"range":{"at":{"lt":"2023-11-16"}}}`}[r.IntN(4)]
		vector, _ := json.Marshal([]float64{r.Float64(), r.Float64(), r.Float64(), r.Float64()})
		near.vector = string(vector)
		p := &page{rule: pageRule(l), from: r.IntN(8) * r.IntN(2), size: 1 + r.IntN(12)}
		p.rule.DateField, p.rule.Choice = "at", []rule.Choice{{}, {By: rule.ByNewest}}[r.IntN(2)]
		p.choose(r)
		own := near.list(l, index, near.k)
		p.raw = near.list(l, index, 100)
		p.hits = l.judged(p.rule, p.raw)
		p.collapse()
		if p.folded() > 0 {
			folds++
			shown := slices.Clone(p.list.Shown)
			for rank := p.rule.Window; rank < len(p.raw); rank++ { // behind the window nothing folds
				shown = append(shown, rank)
			}
			end := min(p.from+p.size, len(shown), len(own))
			p.ranks = shown[min(p.from, end):end]
		} else {
			p.raw, p.ranks = own, nil
			for rank := p.from; rank < min(p.from+p.size, len(own)); rank++ {
				p.ranks = append(p.ranks, rank)
			}
		}
		body := near.of(near.k, p.from, p.size, p.controls)
		answer, err := l.answer(requestFor("POST", "/"+index+"/_search", "", body), planOf(rule.Rules{p.rule}, r.IntN(2) == 0,
			[]float64{0, 0.3}[r.IntN(2)]))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		p.checkNeighbours(t, body, string(answer.Body), own)
		if round%10 == 0 {
			l.checkBeside(t, p.rule, index, near)
		}
		if p.folded() > 0 && p.controls == "" && p.from == 0 && p.rule.Choice.Ranked() {
			if asked++; answer.Outcomes[0].Rounds == 1 {
				once++
			}
		}
	}
	if t.Logf("%d of %d first pages that fold in one request", once, asked); folds == 0 && !testing.Short() {
		t.Error("nothing folded")
	}
}

// checkBeside compares what stands beside the hits of a search for neighbours with the engine's own.
func (l *larder) checkBeside(t *testing.T, r *rule.Rule, index string, near nearby) {
	t.Helper()
	request := requestFor("POST", "/"+index+"/_search", "", near.of(near.k, 0, 5, `,"aggs":{"best":{"top_hits":{"size":3,"_source":["title"]}}}`))
	answer := expect.Value(l.answer(request, planOf(rule.Rules{r}, false, 0.3)))(t)
	_, want, _ := strings.Cut(l.own(request), `"aggregations":`)
	if _, got, _ := strings.Cut(string(answer.Body), `"aggregations":`); got != want || want == "" {
		t.Errorf("beside the hits stands\n%s, want\n%s", got, want)
	}
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
		hits[i] = split(t, hits[i])
	}
	expect.Same(t, strings.Join(want, "\n"), strings.Join(hits, "\n"), "%s", name)
	total, _ := totalIn(t, got)
	if shown := min(len(p.raw)-p.folded(), len(own)); p.show.CollapsedTotals && !p.show.DryRun && total != shown {
		t.Errorf("%s: total %d, want %d", name, total, shown)
	} else if (!p.show.CollapsedTotals || p.show.DryRun) && total != len(own) {
		t.Errorf("%s: total %d, want the engine's %d", name, total, len(own))
	}
}

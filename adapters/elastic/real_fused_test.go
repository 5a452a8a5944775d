package elastic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// fuser is an engine that knows retrievers which the one behind it lacks: rrf, linear and pinned, as Elasticsearch's documentation describes them. It asks
// the engine for the lists that they fuse, and for the hits of the list that comes of it. All else goes to the engine as it is.
type fuser struct {
	l           *larder
	index       string
	diversifies bool // the engine knows that retriever
}

// scored is a place in a ranked list.
type scored struct {
	id    string
	score float64
}

// object is a part of a request.
type object = map[string]any

// send answers a request.
func (f *fuser) send(r *adapters.Request) *adapters.Reply {
	var body struct {
		From      int
		Size      *int
		Retriever object
	}
	if err := json.Unmarshal(r.Body, &body); err != nil || f.engineKnows(body.Retriever) {
		return f.l.send(r)
	}
	window := windowIn(body.Retriever)
	size := window
	if body.Size != nil {
		size = *body.Size
	}
	if size > window {
		return fakeReply(400, fakeError(fmt.Sprintf("requires [rank_window_size: %d] be greater than or equal to [size: %d]", window, size)))
	}
	list := f.ranked(body.Retriever, window)
	page := list[min(body.From, len(list)):min(body.From+size, len(list))]
	names := make([]document, len(page))
	for i, hit := range page {
		names[i] = document{f.index, hit.id}
	}
	inner := expect.Value(jsonedit.Cut(r.Body, func(key string) bool { return key == "retriever" || key == "from" || key == "size" }))(f.l.t)
	inner = expect.Value(jsonedit.Set(inner, "query", theseDocuments(names)))(f.l.t)
	reply := f.l.send(&adapters.Request{Method: r.Method, Path: r.Path, RawQuery: r.RawQuery, Header: r.Header,
		Body: expect.Value(jsonedit.Set(inner, "size", fmt.Append(nil, len(page))))(f.l.t)})
	if reply.Status != 200 {
		return reply
	}
	byID := map[string][]byte{}
	for _, hit := range expect.Value(hitsOf(reply.Body))(f.l.t) {
		id, _ := jsonedit.Text(jsonedit.Lookup(hit, "_id"))
		byID[id] = hit
	}
	hits := make([][]byte, len(page))
	for i, hit := range page {
		hits[i] = expect.Value(jsonedit.Set(byID[hit.id], "_score", fmt.Append(nil, hit.score)))(f.l.t)
	}
	reply.Body = expect.Value(withHits(reply.Body, hits))(f.l.t)
	if total := jsonedit.Lookup(jsonedit.Lookup(reply.Body, "hits"), "total"); total != nil { // it counts what any of the parts finds: here all
		outer := expect.Value(jsonedit.Set(jsonedit.Lookup(reply.Body, "hits"), "total", fmt.Appendf(nil, `{"value":%d,"relation":"eq"}`, len(f.l.stored))))(f.l.t)
		reply.Body = expect.Value(jsonedit.Set(reply.Body, "hits", outer))(f.l.t)
	}
	return reply
}

// engineKnows reports whether the engine itself takes a retriever.
func (f *fuser) engineKnows(retriever object) bool {
	for kind, value := range retriever {
		if kind == "rrf" || kind == "linear" || kind == "pinned" {
			return false
		}
		inner, ok := value.(object)["retriever"].(object)
		return !ok || f.engineKnows(inner)
	}
	return true
}

// windowIn returns the window of a retriever, -1 for one that is no list of lists.
func windowIn(retriever object) int {
	for kind, value := range retriever {
		switch in := value.(object); {
		case kind == "standard" || kind == "knn":
			return -1
		case kind == "rescorer":
			return int(in["rescore"].(object)["window_size"].(float64))
		case in["rank_window_size"] != nil:
			return int(in["rank_window_size"].(float64))
		}
	}
	return 10
}

// ranked returns the first hits of a retriever's list, no more than it has within its own window.
func (f *fuser) ranked(retriever object, size int) (list []scored) {
	if window := windowIn(retriever); window >= 0 {
		size = min(size, window)
	}
	if f.engineKnows(retriever) {
		body := expect.Value(json.Marshal(object{"retriever": retriever, "size": size, "_source": false}))(f.l.t)
		var reply struct {
			Hits struct {
				Hits []struct {
					ID    string  `json:"_id"`
					Score float64 `json:"_score"`
				}
			}
		}
		expect.JSON(f.l.t, []byte(f.l.must("POST", "/"+f.index+"/_search", string(body))), &reply)
		for _, hit := range reply.Hits.Hits {
			list = append(list, scored{hit.ID, hit.Score})
		}
		return list
	}
	for kind, value := range retriever {
		in, window := value.(object), windowIn(retriever)
		if kind == "pinned" {
			list = f.pinned(in, window)
		} else {
			list = f.fused(kind, in, window)
		}
	}
	return list[:min(size, len(list))]
}

// pinned returns the list of a pinned retriever: some documents, and then all others.
func (f *fuser) pinned(in object, window int) (list []scored) {
	ids := map[string]bool{}
	for i, id := range in["ids"].([]any) {
		ids[id.(string)] = true
		list = append(list, scored{id.(string), 1e9 - float64(i)})
	}
	for _, hit := range f.ranked(in["retriever"].(object), window+len(ids)) {
		if !ids[hit.id] {
			list = append(list, hit)
		}
	}
	return list[:min(window, len(list))]
}

// fused returns the list that rrf or linear makes of others.
func (f *fuser) fused(kind string, in object, window int) (list []scored) {
	sums := map[string]float64{}
	for _, part := range in["retrievers"].([]any) {
		entry, weight := part.(object), 1.0
		if w, weighted := entry["weight"].(float64); weighted {
			weight = w
		}
		inner := entry
		if wrapped, is := entry["retriever"].(object); is {
			inner = wrapped
		}
		hits := f.ranked(inner, window)
		for rank, hit := range hits {
			if kind == "rrf" {
				hit.score = 1 / (in["rank_constant"].(float64) + float64(rank+1))
			} else {
				hit.score = normalized(entry["normalizer"], hit.score, hits)
			}
			sums[hit.id] += weight * hit.score
		}
	}
	for id, sum := range sums {
		list = append(list, scored{id, sum})
	}
	slices.SortFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
	return list[:min(window, len(list))]
}

// normalized returns the score of one of the hits as the linear retriever adds it up.
func normalized(how any, score float64, hits []scored) float64 {
	least, most, squares := math.Inf(1), math.Inf(-1), 0.0
	for _, hit := range hits {
		least, most, squares = min(least, hit.score), max(most, hit.score), squares+hit.score*hit.score
	}
	switch {
	case how == "minmax" && most > least:
		return (score - least) / (most - least)
	case how == "minmax":
		return 1
	case how == "l2_norm":
		return score / math.Sqrt(squares)
	}
	return score
}

// fusing are the retrievers that fuse lists.
var fusing = []string{"rrf", "linear", "pinned", "rescorer", "diversify"}

// randomRetriever returns one of these kinds whose window is no smaller than least, which those within it get too.
func (f *fuser) randomRetriever(r *rand.Rand, least, depth int, kinds ...string) object {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	window := least + r.IntN(60)
	if depth == 0 || depth < 2 && r.IntN(4) == 0 {
		if r.IntN(3) == 0 {
			return object{"knn": object{"field": "v", "query_vector": []float64{r.Float64(), r.Float64(), r.Float64(), r.Float64()},
				"k": 5 + r.IntN(60), "num_candidates": 150}}
		}
		return object{"standard": object{"query": object{"match": object{"body": sentence(r.IntN(40), 0, 40)}}}}
	}
	part := func() object { return f.randomRetriever(r, window, depth-1, fusing...) }
	switch pick(kinds...) {
	case "rrf":
		return object{"rrf": object{"rank_window_size": window, "rank_constant": 1 + r.IntN(60),
			"retrievers": []object{part(), {"retriever": part(), "weight": r.Float64()}}}}
	case "linear":
		return object{"linear": object{"rank_window_size": window, "retrievers": []object{
			{"retriever": part(), "weight": r.Float64(), "normalizer": pick("minmax", "l2_norm", "none")}, {"retriever": part(), "normalizer": "minmax"}}}}
	case "pinned":
		return object{"pinned": object{"rank_window_size": window, "ids": []string{"v3", "v40", "v7"}, "retriever": part()}}
	case "diversify":
		if f.diversifies {
			return object{"diversify": object{"type": "mmr", "field": "v", "lambda": r.Float64(), "rank_window_size": window, "size": max(1, window-r.IntN(10)),
				"query_vector": []float64{r.Float64(), r.Float64(), r.Float64(), r.Float64()}, "retriever": object{"standard": object{"query": object{
					"match": object{"body": sentence(r.IntN(40), 0, 40)}}}}}}
		}
	}
	return object{"rescorer": object{"rescore": object{"window_size": window, "query": object{"rescore_query": object{"match": object{
		"body": sentence(r.IntN(12), 0, 10)}}}}, "retriever": object{"standard": object{"query": object{"match": object{"body": sentence(r.IntN(40), 0, 40)}}}}}}
}

// TestRealFused holds searches of fused lists against the definition: the pages are the parts of the collapsed list over the client's own list within its
// window.
func TestRealFused(t *testing.T) {
	onEach(t, []string{engines.Elasticsearch}, func(t *testing.T, l *larder) {
		r := seeded(t)
		for _, shards := range []int{1, 3} {
			index := fmt.Sprint(l.name, "f", shards)
			l.stored = map[string]stored{}
			l.fillVectors(r, index, 150, shards)
			f, folded := &fuser{l, index, !strings.Contains(l.must("GET", "/", ""), `"number" : "8.`)}, 0
			for range searches(2) {
				for _, kind := range fusing {
					folded += f.testFused(t, r, kind)
				}
			}
			if folded == 0 {
				t.Error("nothing folded")
			}
		}
	})
}

// testFused goes through the pages of one search, and returns how many hits fold.
func (f *fuser) testFused(t *testing.T, r *rand.Rand, kind string) int {
	l, retriever := f.l, object{}
	expect.JSON(t, expect.Value(json.Marshal(f.randomRetriever(r, 10, 2, kind)))(t), &retriever)
	window, size := windowIn(retriever), 1+r.IntN(10)
	p := &page{rule: pageRule(l), size: size}
	p.rule.DateField, p.rule.Choice = "at", []rule.Choice{{}, {By: rule.ByNewest}}[r.IntN(2)]
	p.choose(r)
	search := func(sized, more string) *adapters.Request {
		text := expect.Value(json.Marshal(retriever))(t)
		return requestFor("POST", "/"+f.index+"/_search", "", fmt.Sprintf(`{"retriever":%s,"_source":["at"],"from":%d%s%s}`, text, p.from, sized, more))
	}
	p.raw = fakeHits(f.send(search(fmt.Sprintf(`,"size":%d`, window), "")).Body)[0]
	p.hits = l.judged(p.rule, p.raw)
	for ; p.from < window+size; p.from += size {
		f.testPage(t, r, p, search(fmt.Sprintf(`,"size":%d`, size), p.controls))
	}
	for _, p.from = range []int{0, 1 + r.IntN(window+5)} { // without a size the page is what is left of the list
		p.size = len(p.raw)
		own := fakeHits(f.send(search("", "")).Body)[0]
		expect.Same(t, strings.Join(p.raw[min(p.from, len(p.raw)):], "\n"), strings.Join(own, "\n"), "the engine's own page of %s", search("", "").Body)
		f.testPage(t, r, p, search("", p.controls))
	}
	return p.folded()
}

// testPage holds the answer to a request for a page against the definition.
func (f *fuser) testPage(t *testing.T, r *rand.Rand, p *page, request *adapters.Request) {
	p.collapse()
	answer, err := f.l.answerBy(f.send, request, planOf(rule.Rules{p.rule}, r.IntN(2) == 0, []float64{0, 0.3}[r.IntN(2)]))
	if err != nil {
		t.Fatalf("%s: %v", request.Body, err)
	}
	want, hits := []string{}, fakeHits(answer.Body)[0]
	for _, rank := range p.ranks {
		want = append(want, idOf(t, p.raw[rank]))
	}
	if p.show.DryRun {
		want = want[:0]
		for _, hit := range p.raw[min(p.from, len(p.raw)):min(p.from+p.size, len(p.raw))] {
			want = append(want, idOf(t, hit))
		}
	}
	for i := range hits {
		hits[i] = idOf(t, hits[i])
	}
	expect.Same(t, strings.Join(want, " "), strings.Join(hits, " "), "%s", request.Body)
	total, _ := totalIn(t, string(answer.Body))
	shorter := len(hits) < min(p.size, len(p.raw)-p.from) && total > len(p.raw)
	if got := answer.Outcomes[0].Limited; got != shorter && !p.show.DryRun && !p.show.CollapsedTotals {
		t.Errorf("%s: of %d hits a list of %d and a page of %d, and limited is %v", request.Body, total, len(p.raw), len(hits), got)
	}
}

// TestRealHybrid holds hybrid queries on OpenSearch against the definition: the pages are the parts of the collapsed list over the client's own list. That is
// the list for its pagination_depth or, where it gives none, for its size.
func TestRealHybrid(t *testing.T) {
	onEach(t, []string{engines.OpenSearchVectors}, func(t *testing.T, l *larder) {
		r := seeded(t)
		pipelines := []string{
			`{"phase_results_processors":[{"normalization-processor":{"normalization":{"technique":"min_max"},"combination":{"technique":"arithmetic_mean"}}}]}`,
			`{"phase_results_processors":[{"normalization-processor":{"normalization":{"technique":"l2"},"combination":{"technique":"geometric_mean"}}}]}`,
			`{"phase_results_processors":[{"score-ranker-processor":{"combination":{"technique":"rrf"}}}]}`,
		}
		if !strings.Contains(l.must("GET", "/_cat/plugins", ""), "neural-search") {
			t.Skip("it has no hybrid queries")
		}
		for i, pipeline := range pipelines {
			l.drop("_search/pipeline/" + fmt.Sprint(l.name, i))
			l.must("PUT", "/_search/pipeline/"+fmt.Sprint(l.name, i), pipeline)
		}
		for _, shards := range []int{1, 3} {
			index, folded := fmt.Sprint(l.name, "h", shards), 0
			l.stored = map[string]stored{}
			l.fillVectors(r, index, 150, shards)
			for range searches(8) {
				pick := r.IntN(len(pipelines))
				folded += l.testHybrid(t, r, index, fmt.Sprint(l.name, pick), pipelines[pick])
			}
			l.testDefaultPipelines(t, index, fmt.Sprint(l.name, 0))
			if folded == 0 {
				t.Error("nothing folded")
			}
		}
	})
}

// testHybrid goes through the pages of one search, and returns how many hits fold.
func (l *larder) testHybrid(t *testing.T, r *rand.Rand, index, name, pipeline string) int {
	words, size, depth := sentence(r.IntN(40), 0, 40), 1+r.IntN(12), []int{0, 5 + r.IntN(60)}[r.IntN(2)]
	vector := expect.Value(json.Marshal([]float64{r.Float64(), r.Float64(), r.Float64(), r.Float64()}))(t)
	more := []string{"", `,"sort":[{"at":"desc"}]`, `,"post_filter":{"range":{"at":{"gte":"2023-11-15"}}}`}[r.IntN(3)]
	search := func(from, size, depth int, controls string) *adapters.Request {
		deep := ""
		if depth > 0 {
			deep = fmt.Sprintf(`"pagination_depth":%d,`, depth)
		}
		body := fmt.Sprintf(`{"query":{"hybrid":{%s"queries":[{"match":{"body":%q}},{"knn":{"v":{"vector":%s,"k":20}}}]}},"_source":["at"],"from":%d,"size":%d%s`,
			deep, words, vector, from, size, more+controls)
		switch r.IntN(3) {
		case 0:
			return requestFor("POST", "/"+index+"/_search", "", body+`,"search_pipeline":`+pipeline+`}`)
		case 1:
			return requestFor("POST", "/"+index+"/_search", "", body+`,"search_pipeline":"`+name+`"}`)
		}
		return requestFor("POST", "/"+index+"/_search", "search_pipeline="+name, body+"}")
	}
	p := &page{rule: pageRule(l), size: size}
	p.choose(r)
	if p.raw = fakeHits([]byte(l.own(search(0, 200, cmp.Or(depth, size), ""))))[0]; depth == 0 {
		expect.Same(t, fakeHits([]byte(l.own(search(0, size, 0, "")))), [][]string{p.raw[:min(size, len(p.raw))]}, "the list with its window and without")
	}
	p.hits = l.judged(p.rule, p.raw)
	for ; p.from < len(p.raw) && (depth > 0 || p.from == 0); p.from += size {
		p.collapse()
		request := search(p.from, size, depth, p.controls)
		answer, err := l.answer(request, planOf(rule.Rules{p.rule}, r.IntN(2) == 0, []float64{0, 0.3}[r.IntN(2)]))
		if err != nil {
			t.Fatalf("%s: %v", request.Body, err)
		}
		want, hits := []string{}, fakeHits(answer.Body)[0]
		for _, rank := range p.ranks {
			want = append(want, p.raw[rank])
		}
		if p.show.DryRun {
			want = p.raw[min(p.from, len(p.raw)):min(p.from+size, len(p.raw))]
		}
		for i := range hits {
			hits[i] = split(t, hits[i])
		}
		expect.Same(t, strings.Join(want, "\n"), strings.Join(hits, "\n"), "%s", request.Body)
	}
	return p.folded()
}

// testDefaultPipelines: the store finds out what the default pipeline of an index does.
func (l *larder) testDefaultPipelines(t *testing.T, index, fusing string) {
	cutting := l.name + "cutting"
	l.drop("_search/pipeline/" + cutting)
	l.must("PUT", "/_search/pipeline/"+cutting, `{"response_processors":[{"truncate_hits":{"target_size":3}}]}`)
	for _, want := range []adapters.Index{{Fuses: fusing}, {Piped: true}, {}} {
		name := map[bool]string{true: cutting}[want.Piped] + want.Fuses
		l.must("PUT", "/"+index+"/_settings", fmt.Sprintf(`{"index.search.default_pipeline":%q}`, cmp.Or(name, noPipeline)))
		found := expect.Value(l.store(http.DefaultTransport).Resolve(t.Context(), index))(t)
		expect.Same(t, want, adapters.Index{Fuses: found[0].Fuses, Piped: found[0].Piped}, "an index with the pipeline %q", name)
	}
}

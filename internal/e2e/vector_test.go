package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// vectors makes an index of n documents on a line, of which each text stands copies times, next to one another.
func vectors(t *testing.T, a api, index string, n, copies int) {
	t.Helper()
	api{a.e, a.e.URL}.drop(t, index)
	vector, settings := `{"type":"dense_vector","dims":2,"index":true,"similarity":"l2_norm","index_options":{"type":"hnsw"}}`, `"number_of_shards":1`
	if a.e.Kind == engines.OpenSearch {
		vector, settings = `{"type":"knn_vector","dimension":2,"method":{"name":"hnsw","engine":"lucene","space_type":"l2"}}`, `"index.knn":true,"number_of_shards":1`
	}
	call(t, a.e, "PUT", a.base+"/"+index, `{"settings":{`+settings+`},"mappings":{"properties":{"title":{"type":"text"},"body":{"type":"text"},"n":{"type":"integer"},"v":`+vector+`}}}`).want(t, 200)
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n", index, i)
		fmt.Fprintf(&lines, "{\"n\":%d,\"title\":\"about %d\",\"body\":\"%s\",\"v\":[%d,1]}\n", i, i/copies, strings.Repeat(fmt.Sprintf("word%d ", i/copies), 12), i)
	}
	a.loadLines(t, index, lines.String())
}

// clauses are searches for neighbours of the first document, each with the number it asks for, and whether that is all its list holds.
func clauses(kind string) map[string]func(k int) string {
	if kind == engines.OpenSearch {
		return map[string]func(k int) string{
			"query": func(k int) string { return fmt.Sprintf(`"query":{"knn":{"v":{"vector":[0,1],"k":%d}}}`, k) },
			"mixed": func(k int) string {
				return fmt.Sprintf(`"query":{"bool":{"should":[{"knn":{"v":{"vector":[0,1],"k":%d}}},{"range":{"n":{"lt":3}}}]}}`, k)
			},
		}
	}
	return map[string]func(k int) string{
		"top": func(k int) string {
			return fmt.Sprintf(`"knn":{"field":"v","query_vector":[0,1],"k":%d,"num_candidates":%d}`, k, k)
		},
		"list": func(k int) string {
			return fmt.Sprintf(`"knn":[{"field":"v","query_vector":[0,1],"k":%d,"num_candidates":%d}]`, k, k+1)
		},
		"query": func(k int) string {
			return fmt.Sprintf(`"query":{"knn":{"field":"v","query_vector":[0,1],"k":%d,"num_candidates":%d}}`, k, k)
		},
		"mixed": func(k int) string {
			return fmt.Sprintf(`"query":{"range":{"n":{"lt":3}}},"knn":{"field":"v","query_vector":[0,1],"k":%d,"num_candidates":%d}`, k, k)
		},
		"retriever": func(k int) string {
			return fmt.Sprintf(`"retriever":{"knn":{"field":"v","query_vector":[0,1],"k":%d,"num_candidates":%d}}`, k, k)
		},
	}
}

func idsOf(t *testing.T, r reply) (ids []string, total int) {
	t.Helper()
	var result struct {
		Hits struct {
			Total struct{ Value int }
			Hits  []struct {
				ID string `json:"_id"`
			}
		}
	}
	if err := json.Unmarshal(r.body, &result); err != nil {
		t.Fatal(err)
	}
	for _, h := range result.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids, result.Hits.Total.Value
}

// TestNeighbours walks lists of nearest neighbours in which every text stands three times: the client gets as many different texts as
// it asked for neighbours, nearest first, and the engine's own total.
func TestNeighbours(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		index := "vector-1"
		through, direct := api{e, serve(t, e, setup{match: "vector-*"})}, api{e, e.URL}
		vectors(t, through, index, 90, 3)
		for name, clause := range clauses(e.Kind) {
			for _, k := range []int{2, 10, 15} {
				for _, size := range []int{5, 10} {
					t.Run(fmt.Sprintf("%s k=%d size=%d", name, k, size), func(t *testing.T) {
						own, total := idsOf(t, call(t, e, "POST", direct.base+"/"+index+"/_search", fmt.Sprintf(`{%s,"size":100}`, clause(k))).want(t, 200))
						long, _ := idsOf(t, call(t, e, "POST", direct.base+"/"+index+"/_search", fmt.Sprintf(`{%s,"size":100}`, clause(100))).want(t, 200))
						want := representatives(long)
						want = want[:min(len(want), len(own))]
						if len(own) == len(representatives(own)) {
							want = own
						}
						var got []string
						for from := 0; from < 40; from += size {
							r := call(t, e, "POST", through.base+"/"+index+"/_search", fmt.Sprintf(`{%s,"from":%d,"size":%d,"aggs":{"n":{"value_count":{"field":"n"}}}}`, clause(k), from, size)).want(t, 200)
							if outcome := r.header.Get("Neardup"); !strings.HasPrefix(outcome, "collapsed") {
								t.Fatal(outcome)
							}
							page, n := idsOf(t, r)
							if n != total {
								t.Errorf("total %d, the engine's is %d", n, total)
							}
							if !strings.Contains(string(r.body), fmt.Sprintf(`"aggregations":{"n":{"value":%d}}`, total)) {
								t.Errorf("not the client's own aggregation: %s", r.body)
							}
							got = append(got, page...)
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("the definition (-), the pages (+):\n%s", diff)
						}
					})
				}
			}
		}
	})
}

// ourMember is our field as the last member of a source.
var ourMember = regexp.MustCompile(`,"neardup_sketch":"[^"]*"`)

// representatives returns the first of each three neighbours in number.
func representatives(ids []string) (list []string) {
	seen := map[int]bool{}
	for _, id := range ids {
		var n int
		fmt.Sscan(id, &n)
		if !seen[n/3] {
			seen[n/3] = true
			list = append(list, id)
		}
	}
	return list
}

// TestNeighboursWithoutDuplicates compares replies byte by byte where nothing folds.
func TestNeighboursWithoutDuplicates(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		index := "vector-2"
		through := api{e, serve(t, e, setup{match: "vector-*"})}
		vectors(t, through, index, 60, 1)
		for name, clause := range clauses(e.Kind) {
			for _, page := range []string{``, `,"size":3`, `,"from":4,"size":3`, `,"from":20`, `,"_source":false,"fields":["n"]`, `,"size":40`} {
				body := `{` + clause(12) + page + `}`
				want := untimed(call(t, e, "POST", e.URL+"/"+index+"/_search", body).want(t, 200).body)
				want = ourMember.ReplaceAll(want, nil)
				r := call(t, e, "POST", through.base+"/"+index+"/_search", body).want(t, 200)
				if diff := cmp.Diff(string(want), string(untimed(r.body))); diff != "" {
					t.Errorf("%s %s: directly (-), through us (+):\n%s", name, page, diff)
				}
				if got := r.header.Get("Neardup"); !strings.Contains(got, "folded=0") {
					t.Error(got)
				}
			}
		}
	})
}

package elastic

import (
	"strings"
	"testing"
)

// TestRaised raises the number of neighbours wherever it decides which hits there are.
func TestRaised(t *testing.T) {
	for body, want := range map[string]string{
		`{"query":{"match":{"a":"knn"}}}`:                                      "",
		`{"knn":{"field":"v","query_vector":[1],"num_candidates":7}}`:          `{"knn":{"field":"v","query_vector":[1],"num_candidates":50,"k":50}}`,
		`{"knn":[ {"k":5,"query_vector":[1]} , {"k":99,"query_vector":[1]} ]}`: `{"knn":[ {"k":50,"query_vector":[1]} , {"k":99,"query_vector":[1]} ]}`,
		`{"query":{"bool":{"must":[{"knn":{"v":{"vector":[1],"k":3}}}],"filter":{"knn":{"v":{"vector":[1],"k":3}}}}}}`://
		`{"query":{"bool":{"must":[{"knn":{"v":{"vector":[1],"k":50}}}],"filter":{"knn":{"v":{"vector":[1],"k":3}}}}}}`,
		`{"query":{"knn":{"v":{"vector":[1],"max_distance":3}}}}`:                          "",
		`{"retriever":{"standard":{"query":{"knn":{"field":"v","query_vector":[1]}}}}}`:    `{"retriever":{"standard":{"query":{"knn":{"field":"v","query_vector":[1],"k":50}}}}}`,
		`{"retriever":{"knn":{"field":"v","query_vector":[1],"k":1,"num_candidates":60}}}`: `{"retriever":{"knn":{"field":"v","query_vector":[1],"k":50,"num_candidates":60}}}`,
	} {
		if want == "" {
			want = body
		}
		if got, _, err := raised([]byte(body), 10, 50); err != nil || string(got) != want {
			t.Errorf("%s became %s: %v", body, got, err)
		}
	}
	for _, body := range []string{`{"knn":{"query_vector":[1],"k":"x"}}`, `{"query":` + nested(maxQueryDepth+1, `1`) + `}`} {
		if got, _, err := raised([]byte(body), 10, 50); err == nil {
			t.Errorf("%.60s became %.60s", body, got)
		}
	}
}

// TestRaisedIsLinear raises very many clauses, deep in a query, in memory linear in the search.
func TestRaisedIsLinear(t *testing.T) {
	clauses := strings.Repeat(`{"knn":{"f":{"vector":[1],"k":1}}},`, 2000)
	body := `{"query":` + nested(100, `[`+clauses+`1]`) + `}`
	used := allocated(func() {
		if _, _, err := raised([]byte(body), 10, 50); err != nil {
			t.Fatal(err)
		}
	})
	if used > uint64(50*len(body)) {
		t.Errorf("%d bytes for a search of %d", used, len(body))
	}
}

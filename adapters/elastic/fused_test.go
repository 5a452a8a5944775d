package elastic

import (
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// TestFused: which lists are fused, how far they are read, and what is asked of the engine for them.
func TestFused(t *testing.T) {
	rrf := func(more string) string { return `{"retriever":{"rrf":{"retrievers":[]` + more + `}}}` }
	plan := searchPlan(t, false)
	scope := plan.Scope("news-1")
	scope.VectorWindow = 50
	plan.Scope = func(string) adapters.Scope { return scope }
	for _, c := range []struct {
		body        string
		limit, size int
		base        string // empty: the client's own
	}{
		{rrf(``), 10, 10, ""},
		{rrf(`,"rank_window_size":7},"x":{"y":1`), 0, 0, "vector"},
		{rrf(`,"rank_window_size":50`), 50, 50, ""},
		{rrf(`,"rank_window_size":"50"`), 50, 50, ""},
		{rrf(`,"rank_window_size":7`), 7, 7, ""},
		{rrf(`,"rank_window_size":"x"`), 0, 0, "not_understood"},
		{`{"size":8,"retriever":{"rrf":{"rank_window_size":7}}}`, 0, 0, "rank_window"},
		{`{"from":8,"retriever":{"rrf":{"rank_window_size":7}}}`, 7, 7, ""},
		{`{"from":40,"size":20,"retriever":{"linear":{"rank_window_size":50,"query":"a"}}}`, 50, 20, ""},
		{`{"retriever":{"text_similarity_reranker":{"rank_window_size":20}}}`, 20, 20, ""},
		{`{"size":5,"retriever":{"rescorer":{"rescore":[{"window_size":30},{"query":{}},{"window_size":20}],"retriever":{}}}}`, 10, 5, ""},
		{`{"size":11,"retriever":{"rescorer":{"rescore":{"query":{}},"retriever":{}}}}`, 0, 0, "rank_window"},
		{`{"retriever":{"rescorer":{"rescore":[{"window_size":30},{"window_size":20}],"retriever":{}}}}`, 20, 20, ""},
		{`{"retriever":{"diversify":{"rank_window_size":60,"size":30}}}`, 30, 30, ""},
		{`{"retriever":{"diversify":{"rank_window_size":60,"size":0}}}`, 0, 0, "not_understood"},
		{`{"size":20,"retriever":{"diversify":{}}}`, 10, 20, ""},
		{`{"retriever":{"pinned":{"rank_window_size":60,"ids":["a"],"retriever":{"standard":{}}}}}`, 60, 60, ""},
		{`{"from":8,"size":10,"retriever":{"rule":{"rank_window_size":12,"retriever":{"standard":{}}}}}`, 12, 10, ""},
		{`{"retriever":{"knn":{"field":"v","query_vector":[1],"k":40}}}`, maxResultWindow, 10, ""},
		{`{"rank":{"rrf":{"rank_window_size":7}},"sub_searches":[]}`, 0, 0, "rank_window"},
		{`{"rank":{"rrf":{"rank_window_size":30}},"sub_searches":[]}`, 30, 10, ""},
		{`{"rank":{"rrf":{}},"knn":{"field":"v","query_vector":[1]}}`, 10, 10, `{"rank":{"rrf":{}},"knn":{"field":"v","query_vector":[1],"k":10}}`},
		{`{"rank":{"other":{}}}`, 0, 0, "vector"},
		{`{"sub_searches":[]}`, 0, 0, "vector"},
		{`{"retriever":{"unheard_of":{}}}`, 0, 0, "vector"},
		{`{"retriever":{"standard":{"query":{},"sort":["n"],"terminate_after":5,"min_score":1,"filter":[],"_name":"a"}}}`, maxResultWindow, 10, ""},
		{`{"retriever":{"standard":{"sort":"_doc"}}}`, 0, 0, "export"},
		{`{"retriever":{"standard":{"collapse":{"field":"n"}}}}`, 0, 0, "client_collapse"},
		{`{"retriever":{"standard":{"search_after":[1]}}}`, 0, 0, "cursor"},
		{`{"retriever":{"standard":{"unheard_of":1}}}`, 0, 0, "not_understood"},
	} {
		class, r := searchFor("/news-1/_search", "", c.body)
		parsed := Dialect{}.ParseSearch(class, r, plan)
		if c.limit == 0 {
			expect.Same(t, adapters.Reason(c.base), parsed.Reason, "%s", c.body)
			continue
		}
		if parsed.Left() {
			t.Errorf("%s is left alone: %s", c.body, parsed.Reason)
			continue
		}
		q := parsed.List[0].(*clientSearch)
		if c.base == "" {
			c.base = c.body
		}
		expect.Same(t, c.base, string(q.base), "what is asked for")
		expect.Same(t, c.limit, q.asked.Limit, "the limit of %s", c.body)
		expect.Same(t, c.size, q.asked.Size, "the size of %s", c.body)
		fused := c.limit < maxResultWindow
		if fused && (q.asked.Scope.Window > c.limit || q.asked.Sequence != nil || q.asked.Point != nil || q.asked.Cursor != nil || q.picks || q.raised != nil) {
			t.Errorf("%s is read as if its list did not depend on what is asked for", c.body)
		}
	}
}

// TestPipelines: a search of OpenSearch is collapsed if the pipeline that it goes through only makes one list of several, and a hybrid query only then.
func TestPipelines(t *testing.T) {
	const norm, cut = `{"description":"d","phase_results_processors":[{"normalization-processor":{"ignore_failure":true}}]}`,
		`{"phase_results_processors":[{"score-ranker-processor":{}}],"response_processors":[{"truncate_hits":{}}]}`
	const plain, hybrid = `{"query":{"match_all":{}}}`, `{"query":{"hybrid":{"queries":[]}}}`
	with := func(body, pipeline string) string { return body[:len(body)-1] + `,"search_pipeline":` + pipeline + `}` }
	for _, c := range []struct {
		query, body    string
		scope          adapters.Scope
		reason, lookUp adapters.Reason // lookUp of a pipeline that cuts hits
	}{
		{"", plain, adapters.Scope{}, "", ""},
		{"", plain, adapters.Scope{Piped: true}, "search_pipeline", ""},
		{"", plain, adapters.Scope{Fuses: true}, "", ""},
		{"", hybrid, adapters.Scope{}, "search_pipeline", ""},
		{"", hybrid, adapters.Scope{Fuses: true}, "", ""},
		{"", with(hybrid, norm), adapters.Scope{Piped: true}, "", ""},
		{"", with(plain, norm), adapters.Scope{}, "", ""},
		{"", with(hybrid, cut), adapters.Scope{}, "search_pipeline", ""},
		{"", with(plain, `{}`), adapters.Scope{}, "search_pipeline", ""},
		{"", with(hybrid, `"_none"`), adapters.Scope{Fuses: true}, "search_pipeline", ""},
		{"", with(plain, `"_none"`), adapters.Scope{Piped: true}, "", ""},
		{"", with(hybrid, `"a/b"`), adapters.Scope{}, "", "search_pipeline"},
		{"search_pipeline=a%2Fb", plain, adapters.Scope{Piped: true}, "", "search_pipeline"},
		{"search_pipeline=a", with(plain, `"a"`), adapters.Scope{}, "not_understood", ""},
		{"", hybrid[:len(hybrid)-1] + `,"from":5}`, adapters.Scope{Fuses: true}, "rank_window", ""},
		{"", hybrid[:len(hybrid)-1] + `,"ext":{"mmr":{}}}`, adapters.Scope{Fuses: true}, "ext", ""},
	} {
		plan := searchPlan(t, false)
		scope := plan.Scope("news-1")
		scope.Piped, scope.Fuses = c.scope.Piped, c.scope.Fuses
		plan.Scope = func(string) adapters.Scope { return scope }
		class, r := searchFor("/news-1/_search", c.query, c.body)
		parsed := Dialect{OpenSearch: true}.ParseSearch(class, r, plan)
		expect.Same(t, c.reason, parsed.Reason, "%s %s", c.query, c.body)
		expect.Same(t, c.lookUp != "", parsed.Ahead != nil, "%s %s is looked up", c.query, c.body)
		if parsed.Ahead == nil {
			continue
		}
		expect.Same(t, "/_search/pipeline/a%2Fb", parsed.Ahead.Request().Path, "where it is looked up")
		found := expect.Value(parsed.Ahead.Searches(&adapters.Reply{Status: 200, Body: []byte(`{"a/b":` + norm + `}`)}))(t)
		expect.Same(t, 1, len(found.List), "searches")
		for status, body := range map[int]string{200: `{"a/b":` + cut + `}`, 403: `{}`, 404: `{}`} {
			_, err := parsed.Ahead.Searches(&adapters.Reply{Status: status, Body: []byte(body)})
			expect.Same(t, c.lookUp, adapters.ReasonOf(err), "the reason after a reply with status %d", status)
		}
	}
}

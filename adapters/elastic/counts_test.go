package elastic

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
)

// TestCountsAsks: which searches count groups, which can't, and which are left alone.
func TestCountsAsks(t *testing.T) {
	p := searchPlan(t, false)
	p.Scope = func(string) adapters.Scope { return adapters.Scope{Configured: true, Window: 30, VectorWindow: 50} }
	const aggs = `"aggs":{"h":{"terms":{"field":"host"}}}`
	for _, c := range []struct {
		query, body string
		counting    bool
		uncounted   bool
		reason      adapters.Reason
	}{
		{"", `{` + aggs + `}`, false, false, ""},
		{"neardup_counts=groups", `{` + aggs + `}`, true, false, ""},
		{"neardup_counts=groups", `{"size":0,` + aggs + `}`, true, false, ""},
		{"", `{"size":0,"neardup_counts":"groups",` + aggs + `}`, true, false, ""},
		{"neardup_counts=groups&q=a", `{"min_score":1,"sort":["n"],"rescore":{"window_size":500,"query":{}},` + aggs + `}`, true, false, ""},
		{"neardup_counts=groups&neardup=dry_run", `{` + aggs + `}`, false, false, ""},
		{"neardup_counts=groups", `{}`, false, false, ""},
		{"neardup_counts=groups", `{"size":0}`, false, false, "size_zero"},
		{"neardup_counts=groups&neardup=dry_run", `{"size":0,` + aggs + `}`, false, false, "size_zero"},
		{"", `{"size":0,` + aggs + `}`, false, false, "size_zero"},
		{"neardup_counts=groups", `{"post_filter":{"term":{"n":1}},` + aggs + `}`, false, true, ""},
		{"neardup_counts=groups", `{"post_filter":null,` + aggs + `}`, true, false, ""},
		{"neardup_counts=groups", `{"size":0,"post_filter":{"term":{"n":1}},` + aggs + `}`, false, false, "uncountable"},
		{"neardup_counts=groups", `{"sort":["n"],"search_after":[1],` + aggs + `}`, false, true, ""},
		{"neardup_counts=groups", `{"knn":{"field":"v","query_vector":[1],"k":3,"num_candidates":9},` + aggs + `}`, false, true, ""},
		{"neardup_counts=groups", `{"aggs":{"a":{"global":{},` + aggs + `}}}`, false, true, ""},
		{"neardup_counts=groups", `{"aggs":{"a":{"terms":{"field":"host"},"aggs":{"b":{"top_hits":{}}}}}}`, false, true, ""},
		{"neardup_counts=groups", `{"aggs":{"a":{"diversified_sampler":{"field":"host"}}}}`, false, true, ""},
		{"neardup_counts=groups", `{"aggs":{"a":{"sum":{"script":"_score"}}}}`, false, true, ""},
		{"neardup_counts=groups", `{"aggs":{"a":{"gl\u006fbal":{}}}}`, false, true, ""},
	} {
		class, r := searchFor("/news-1/_search", c.query, c.body)
		s := Dialect{}.ParseSearch(class, r, p)
		expect.Same(t, c.reason, s.Reason, "%s %s", c.query, c.body)
		if s.Left() {
			continue
		}
		asked := s.List[0].Asked()
		if asked.Counting != nil != c.counting || asked.Uncounted != c.uncounted {
			t.Errorf("%s %s: counting %t, uncounted %t", c.query, c.body, asked.Counting != nil, asked.Uncounted)
		}
	}
}

// TestByCluster: each bucket gets a count of its clusters, and those in the order of their counts are in that of clusters; what can't be counted so is
// refused.
func TestByCluster(t *testing.T) {
	const ours, order = `"neardup_clusters":{"cardinality":{"field":"neardup_cluster","precision_threshold":3000}}`, `"order":[{"neardup_clusters":"desc"},{"_key":"asc"}]`
	for _, c := range []struct{ aggs, want string }{
		{`{"a":{"terms":{"field":"h"}}}`, `{"a":{"terms":{"field":"h",` + order + `},"aggs":{` + ours + `}}}`},
		{`{"a":{"terms":{"field":"h","order":{ "_count" : "desc" }}}}`, `{"a":{"terms":{"field":"h",` + order + `},"aggs":{` + ours + `}}}`},
		{`{"a":{"terms":{"field":"h","order":{"_key":"asc"},"min_doc_count":1}}}`, `{"a":{"terms":{"field":"h","order":{"_key":"asc"},"min_doc_count":1},"aggs":{` + ours + `}}}`},
		{`{"a":{"meta":{"x":1},"filters":{"filters":{"f":{"match_all":{}}}},"aggregations":{"b":{"missing":{"field":"h"}}}}}`,
			`{"a":{"meta":{"x":1},"filters":{"filters":{"f":{"match_all":{}}}},"aggregations":{"b":{"missing":{"field":"h"},"aggs":{` + ours + `}},` + ours + `}}}`},
		{`{"a":{"terms":{"field":"h","order":{"_count":"asc"}}}}`, ""}, {`{"a":{"terms":{"field":"h","order":{"x":"asc"}},"aggs":{"x":{"max":{"field":"n"}}}}}`, ""},
		{`{"a":{"terms":{"field":"h","min_doc_count":2}}}`, ""}, {`{"a":{"histogram":{"field":"n","interval":5,"order":{"_count":"desc"}}}}`, ""},
		{`{"a":{"max":{"field":"n"}}}`, ""}, {`{"a":{"terms":{"field":"h"},"aggs":{"b":{"avg":{"field":"n"}}}}}`, ""}, {`{"a":{"composite":{}}}`, ""},
		{`{"a":{"nested":{"path":"p"}}}`, ""}, {`{"a":{"significant_terms":{"field":"h"}}}`, ""}, {`{"a":[]}`, ""}, {`[]`, ""},
	} {
		got, ok := byCluster([]byte(c.aggs), false)
		if ok != (c.want != "") || ok && string(got) != c.want {
			t.Errorf("%s: %t\n%s\nwant\n%s", c.aggs, ok, got, c.want)
		}
	}
	got := expect.Value(withClusters([]byte(`{"sterms#a":{"sum_other_doc_count":4,"buckets":[{"key":"x","doc_count":9,"filter#b":{"doc_count":5,"cardinality#neardup_clusters":{"value":2}},` +
		`"cardinality#neardup_clusters":{"value":3}}]},"filters#c":{"meta":{"doc_count":7},"buckets":{"f":{"doc_count":0,"neardup_clusters":{"value":0}}}}}`)))(t)
	expect.Same(t, `{"sterms#a":{"sum_other_doc_count":4,"buckets":[{"key":"x","doc_count":3,"filter#b":{"doc_count":2}}]},`+
		`"filters#c":{"meta":{"doc_count":7},"buckets":{"f":{"doc_count":0}}}}`, string(got), "")
	if _, err := withClusters([]byte(`{"a":{"doc_count":1`)); err == nil {
		t.Error("takes a broken reply")
	}
}

// TestCountsUnnameable: where ids don't tell documents apart the search is left alone.
func TestCountsUnnameable(t *testing.T) {
	class, r := searchFor("/news-1/_search", "neardup_counts=groups", `{"size":2,"aggs":{"h":{"terms":{"field":"host"}}}}`)
	for ids, want := range map[string]adapters.Reason{"a b": "", "a a": "uncountable"} {
		s := Dialect{}.ParseSearch(class, r, searchPlan(t, false))
		var hits []string
		for id := range strings.SplitSeq(ids, " ") {
			hits = append(hits, `{"_index":"news-1","_id":"`+id+`","_score":1,"_source":{"title":"`+strings.Repeat("one two three ", 30)+`"}}`)
		}
		asked := 0
		answer, err := adaptertest.Run(s, func(*adapters.Request) *adapters.Reply {
			asked++
			return fakeReply(200, []byte(`{"_shards":{"total":1,"failed":0},"hits":{"total":{"value":2,"relation":"eq"},"hits":[`+strings.Join(hits, ",")+`]},"aggregations":{}}`))
		})
		if want == "" {
			expect.OK(t, err)
			if o := answer.Outcomes[0]; o.Folded != 1 || o.Counts != adapters.CountsExact || o.Rounds != asked {
				t.Errorf("%s: %+v", ids, o)
			}
		} else if err == nil || adapters.ReasonOf(err) != want {
			t.Errorf("%s: %v, want %s", ids, err, want)
		}
	}
}

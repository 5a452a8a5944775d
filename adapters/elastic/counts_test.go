package elastic

import (
	"errors"
	"fmt"
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
		{"neardup_counts=groups", `{"rescore":{"window_size":20,"query":{}},` + aggs + `}`, false, true, ""}, // of a window of 30
		{"neardup_counts=groups", `{"size":0,"rescore":{"window_size":20,"query":{}},` + aggs + `}`, false, false, "uncountable"},
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
		{"neardup_counts=groups", `{"aggs":{"a":{"significant_terms":{"field":"host"}}}}`, false, true, ""},
		{"neardup_counts=groups", `{"aggs":{"a":{"terms":{"field":"host"},"aggs":{"b":{"significant_text":{"field":"title"}}}}}}`, false, true, ""},
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

// TestCountsOddNames: a client's aggregation or filter may have any name, also one that the engine's own replies use.
func TestCountsOddNames(t *testing.T) {
	bucket := func(hits, clusters int, more string) string {
		return fmt.Sprintf(`{"doc_count":%d%s,"neardup_clusters":{"value":%d}}`, hits, more, clusters)
	}
	for _, name := range []string{"doc_count", "buckets", "value", "key", "meta", "aggs", "terms"} {
		reply := fmt.Sprintf(`{%[1]q:{"buckets":{%[1]q:%[2]s,"other":%[3]s}}}`, name, bucket(9, 4, fmt.Sprintf(`,%q:%s`, name, bucket(5, 2, ""))), bucket(3, 1, ""))
		got := expect.Value(withClusters([]byte(reply)))(t)
		expect.Same(t, fmt.Sprintf(`{%[1]q:{"buckets":{%[1]q:{"doc_count":4,%[1]q:{"doc_count":2}},"other":{"doc_count":1}}}}`, name), string(got), "%s", name)
		asked, ok := byCluster(fmt.Appendf(nil, `{%[1]q:{"filters":{"filters":{%[1]q:{"match_all":{}}}},"aggs":{%[1]q:{"missing":{"field":"h"}}}}}`, name), false)
		if n := strings.Count(string(asked), `"neardup_clusters":`); !ok || n != 2 {
			t.Errorf("%s: %d counts in %s", name, n, asked)
		}
	}
}

// TestCountsUnnameable: where ids don't tell documents apart, or there are too many indices, a page keeps its hits and the engine's own facets. A search
// for no hits is left alone.
func TestCountsUnnameable(t *testing.T) {
	var days []string
	for day := range mostIndices + 1 {
		days = append(days, fmt.Sprintf("news-%d a", day))
	}
	days = append(days, "news-0 b")
	for _, c := range []struct {
		name, size string
		documents  []string
		want       adapters.Counts
		reason     adapters.Reason
	}{
		{"ids", "2", []string{"news-1 a", "news-1 b"}, adapters.CountsExact, ""},
		{"one id twice", "2", []string{"news-1 a", "news-1 b", "news-1 a"}, adapters.CountsEngine, ""},
		{"one id twice", "0", []string{"news-1 a", "news-1 b", "news-1 a"}, 0, adapters.ReasonUncountable},
		{"many indices", "2", days, adapters.CountsEngine, ""},
		{"many indices", "0", days, 0, adapters.ReasonUncountable},
	} {
		class, r := searchFor("/news-*/_search", "neardup_counts=groups&neardup_window=100", `{"size":`+c.size+`,"aggs":{"h":{"terms":{"field":"host"}}}}`)
		s := Dialect{}.ParseSearch(class, r, searchPlan(t, false))
		var hits []string
		for _, document := range c.documents {
			index, id, _ := strings.Cut(document, " ")
			text := strings.Repeat(fmt.Sprintf("one%[1]s two%[1]s three%[1]s ", index), 30) // those of one index fold
			hits = append(hits, `{"_index":"`+index+`","_id":"`+id+`","_score":1,"_source":{"title":"`+text+`"}}`)
		}
		asked := 0
		answer, err := adaptertest.Run(s, func(*adapters.Request) *adapters.Reply {
			asked++
			return fakeReply(200, fmt.Appendf(nil, `{"_shards":{"total":1,"failed":0},"hits":{"total":{"value":%d,"relation":"eq"},"hits":[%s]},"aggregations":{"h":%d}}`,
				len(hits), strings.Join(hits, ","), asked))
		})
		if c.reason != "" {
			if err == nil || adapters.ReasonOf(err) != c.reason {
				t.Errorf("%s: %v, want %s", c.name, err, c.reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if o := answer.Outcomes[0]; o.Folded == 0 || o.Counts != c.want || o.Rounds != asked || o.Reason != "" {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
}

// TestCountsLacking: facets of a reply that lacks shards which the page has, or that was cut off, are not put beside it.
func TestCountsLacking(t *testing.T) {
	for _, c := range []struct {
		page, counts string
		lacks        bool
	}{
		{`"timed_out":false,"_shards":{"failed":0}`, `"timed_out":false,"_shards":{"failed":0}`, false},
		{`"timed_out":false,"_shards":{"failed":1}`, `"timed_out":false,"_shards":{"failed":1}`, false},
		{`"timed_out":true,"_shards":{"failed":0}`, `"timed_out":true,"_shards":{"failed":0}`, false},
		{`"timed_out":false,"_shards":{"failed":0}`, `"timed_out":false,"_shards":{"failed":1}`, true},
		{`"timed_out":false,"_shards":{"failed":9}`, `"timed_out":false,"_shards":{"failed":10}`, true},
		{`"timed_out":false,"_shards":{"failed":0}`, `"timed_out":true,"_shards":{"failed":0}`, true},
		{`"took":1`, `"timed_out":false,"_shards":{"failed":1}`, true},
	} {
		counts := &adapters.Listing{Parsed: &parsedReply{text: []byte(`{` + c.counts + `,"aggregations":{"h":2}}`)}}
		got, err := (&clientSearch{}).WithCounts([]byte(`{`+c.page+`,"aggregations":{"h":1}}`), counts)
		if errors.Is(err, adapters.ErrMoved) != c.lacks || !c.lacks && string(got) != `{`+c.page+`,"aggregations":{"h":2}}` {
			t.Errorf("%s beside %s: %s, %v", c.counts, c.page, got, err)
		}
	}
}

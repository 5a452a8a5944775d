package elastic

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

func TestClassify(t *testing.T) {
	for _, c := range classified() {
		got := Dialect{}.Classify(&adapters.Request{Method: c.method, Path: c.path})
		if got.MayLeaveOut != (got.Kind == adapters.KindWrite && got.Form != formUpdate) {
			t.Errorf("%s %s: %v says whether its reply can be taken apart", c.method, c.path, got.MayLeaveOut)
		}
		got.MayLeaveOut = false
		expect.Same(t, c.want, got, "%s %s", c.method, c.path)
		if got.Kind == adapters.KindPass && got.Target != "" {
			t.Errorf("%s %s: passes with a target", c.method, c.path)
		}
	}
}

// classification is a request and what it is.
type classification struct {
	method, path string
	want         adapters.Class
}

func classified() []classification {
	const pass, write, read, search = adapters.KindPass, adapters.KindWrite, adapters.KindRead, adapters.KindSearch
	return []classification{
		{"POST", "/_bulk", adapters.Class{Kind: write, Form: formBulk, ReplyMayHoldOurs: true, Elsewhere: true}},
		{"PUT", "/news-1/_bulk", adapters.Class{Kind: write, Target: "news-1", Form: formBulk, ReplyMayHoldOurs: true, Elsewhere: true}},
		{"POST", "/news-1/_doc", adapters.Class{Kind: write, Target: "news-1", Form: formDoc, ReplyMayHoldOurs: true}},
		{"PUT", "/news-1/_doc/a%2Fb", adapters.Class{Kind: write, Target: "news-1", ID: "a/b", Form: formDoc, ReplyMayHoldOurs: true}},
		{"PUT", "/news-1/_doc", adapters.Class{}},
		{"PUT", "/news-1/_create/1", adapters.Class{Kind: write, Target: "news-1", ID: "1", Form: formDoc, ReplyMayHoldOurs: true}},
		{"POST", "/news-1/_update/1", adapters.Class{Kind: write, Target: "news-1", ID: "1", Form: formUpdate, ReplyMayHoldOurs: true}},
		{"POST", "/news-1/_update_by_query", adapters.Class{Kind: read, Target: "news-1", Form: formByQuery}},
		{"POST", "/_reindex", adapters.Class{Kind: read, Form: formByQuery, Alters: true}},
		{"GET", "/_search", adapters.Class{Kind: search, Form: formSearch}},
		{"POST", "//_search", adapters.Class{Kind: search, Form: formSearch}},
		{"POST", "/news-1//_search", adapters.Class{Alters: true}},
		{"POST", "/%3Cnews-%7Bnow%2Fd%7D%3E/_search", adapters.Class{Kind: search, Target: "<news-{now/d}>", Form: formSearch}},
		{"GET", "/_all/_search", adapters.Class{Kind: search, Form: formSearch}},
		{"PUT", "/news-1/_search", adapters.Class{}},
		{"POST", "/news-1/_msearch", adapters.Class{Kind: search, Target: "news-1", Form: formMulti, Elsewhere: true}},
		{"POST", "/_search/scroll", adapters.Class{Kind: read, Reason: "export"}},
		{"DELETE", "/_search/scroll", adapters.Class{}},
		{"POST", "/news-1/_search/point_in_time", adapters.Class{}},
		{"POST", "/_msearch/template", adapters.Class{Kind: read, Reason: "template", Elsewhere: true}},
		{"GET", "/_async_search/abc", adapters.Class{Kind: read, Reason: "async"}},
		{"POST", "/_plugins/_asynchronous_search", adapters.Class{Kind: read, Reason: "async"}},
		{"GET", "/news-1/_eql/search", adapters.Class{Kind: read, Target: "news-1", Reason: "eql"}},
		{"POST", "/news-1/_knn_search", adapters.Class{Kind: read, Target: "news-1", Reason: "vector"}},
		{"POST", "/news-1/_rank_eval", adapters.Class{Kind: read, Target: "news-1", Reason: "rank_eval"}},
		{"POST", "/_application/search_application/x/_search", adapters.Class{Kind: read, Reason: "template"}},
		{"POST", "/_ingest/news-1/_simulate", adapters.Class{Kind: read, Form: formMapping}},
		{"PUT", "/_data_stream/news/_mappings", adapters.Class{Kind: read, Form: formMapping, Alters: true}},
		{"GET", "/_transform/x/_preview", adapters.Class{Kind: read, Form: formPreview}},
		{"GET", "/news-1/_sample", adapters.Class{Kind: read, Target: "news-1", Form: formPreview}},
		{"GET", "/news-1/_sample/stats", adapters.Class{}},
		{"POST", "/_query", adapters.Class{Kind: read, Form: formTable, Reason: "esql"}},
		{"POST", "/_query/async/abc/stop", adapters.Class{Kind: read, Form: formTable, Reason: "esql"}},
		{"DELETE", "/_query/async/abc", adapters.Class{}},
		{"GET", "/_sql/async/abc", adapters.Class{Kind: read, Form: formSQL, Reason: "sql"}},
		{"POST", "/_sql/close", adapters.Class{Kind: read, Form: formSQL}},
		{"POST", "/_sql/translate", adapters.Class{}},
		{"POST", "/_opendistro/_sql", adapters.Class{Kind: read, Form: formSQL, Reason: "sql"}},
		{"POST", "/_plugins/_ppl", adapters.Class{Kind: read, Form: formSQL, Reason: "ppl"}},
		{"POST", "/news-1/_fleet/_fleet_search", adapters.Class{Kind: read, Target: "news-1", Reason: "not_understood"}},
		{"GET", "/news-1/_termvectors/1", adapters.Class{Kind: read, Target: "news-1"}},
		{"POST", "/_mtermvectors", adapters.Class{Kind: read, Elsewhere: true}},
		{"GET", "/news-1/_validate/query", adapters.Class{Kind: read, Target: "news-1", Form: formFields}},
		{"POST", "/news-1/_disk_usage", adapters.Class{Kind: read, Target: "news-1", Form: formFields}},
		{"GET", "/news-1/_field_usage_stats", adapters.Class{Kind: read, Target: "news-1", Form: formFields}},
		{"GET", "/_index_template", adapters.Class{Kind: read, Form: formMapping}},
		{"POST", "/_index_template/_simulate_index/news-1", adapters.Class{Kind: read, Form: formMapping}},
		{"PUT", "/_index_template/news", adapters.Class{Alters: true}},
		{"GET", "/news-1/_doc/1", adapters.Class{Kind: read, Target: "news-1"}},
		{"GET", "/news-1/_source/1", adapters.Class{Kind: read, Target: "news-1", Form: formSource}},
		{"GET", "/news-1/_mget", adapters.Class{Kind: read, Target: "news-1", Elsewhere: true}},
		{"GET", "/news-1", adapters.Class{Kind: read, Target: "news-1", Form: formIndex}},
		{"GET", "/_all", adapters.Class{Kind: read, Form: formIndex}},
		{"GET", "/", adapters.Class{}},
		{"PUT", "/news-1", adapters.Class{Alters: true, NewIndex: "news-1"}},
		{"POST", "/news/_rollover/news-2", adapters.Class{Alters: true, NewIndex: "news"}},
		{"GET", "/news-1/_mapping", adapters.Class{Kind: read, Target: "news-1", Form: formMapping}},
		{"PUT", "/news-1/_mapping", adapters.Class{Alters: true}},
	}
}

// TestAlters tells what may change an index from what can't.
func TestAlters(t *testing.T) {
	for _, request := range []string{
		"POST /_aliases", "POST /news/_rollover", "POST /news/_rollover/news-2", "POST /news-1/_clone/news-2",
		"POST /_snapshot/s/1/_restore",
		"POST /news-1/_open", "POST /news-1/_close", "PUT /news-1", "DELETE /news-*", "DELETE /_all", "PUT /_all/_mapping",
		"PUT /news-1/_settings", "PUT /_index_template/x", "POST /_component_template/x", "DELETE /news-1/_alias/news",
		"PUT /_data_stream/x",
		"POST /_plugins/_ism/add/news-1", "BREW /x/_unheard_of",
	} {
		if c := classOf(request); !c.Alters || c.Kind != adapters.KindPass {
			t.Errorf("%s is said to change nothing", request)
		}
	}
	for _, request := range []string{
		"GET /", "POST /news-1/_refresh", "POST /_refresh", "POST /news-1/_count", "DELETE /news-1/_doc/1",
		"POST /news-1/_delete_by_query",
		"POST /news-1/_update_by_query", "DELETE /_search/scroll", "POST /news-1/_search/point_in_time", "POST /news-1/_pit",
		"DELETE /_pit",
		"POST /_all/_flush", "POST /news-1/_cache/clear", "POST /_analyze", "POST /_sql", "GET /_aliases", "HEAD /news-1", "OPTIONS *",
		"POST /news-1/_search", "POST /_bulk", "POST /news-1/_doc", "GET /news-1/_mapping",
	} {
		if classOf(request).Alters {
			t.Errorf("%s is said to change an index", request)
		}
	}
}

func classOf(request string) adapters.Class {
	method, path, _ := strings.Cut(request, " ")
	return Dialect{}.Classify(&adapters.Request{Method: method, Path: path})
}

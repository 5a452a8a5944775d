package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestRescoredSearch folds within what the engine rescores, and leaves alone what reaches beyond.
func TestRescoredSearch(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	index := "rescore-1"
	through, direct := api{e, serve(t, e, setup{match: "rescore-*"})}, api{e, e.URL}
	through.create(t, index)
	through.load(t, index, documents(t))
	search := func(base string, from, size, window int) reply {
		return call(t, e, "POST", base+"/"+index+"/_search", fmt.Sprintf(`{"query":{"match":{"body":"the"}},"from":%d,"size":%d,`+
			`"rescore":{"window_size":%d,"query":{"rescore_query":{"match":{"title":"for to in"}},"rescore_query_weight":-2}}}`, from, size, window)).want(t, 200)
	}
	raw, _ := idsOf(t, search(e.URL, 0, 100, 100))
	want := newOracle(t, direct, documents(t)).collapsed(raw)
	for _, from := range []int{0, 10, 20} {
		r := search(through.base, from, 10, 100)
		got, _ := idsOf(t, r)
		if outcome := r.header.Get("Neardup"); !strings.HasPrefix(outcome, "collapsed; ") {
			t.Fatal(outcome)
		}
		same(t, want[from:from+10], got, "from %d: the definition (-), the page (+)", from)
	}
	for _, c := range []struct{ from, size, window int }{{0, 10, 10}, {0, 20, 10}, {90, 10, 100}} {
		r := search(through.base, c.from, c.size, c.window)
		if outcome := r.header.Get("Neardup"); outcome != "bypassed; reason=rescore" {
			t.Errorf("%+v: %s", c, outcome)
		}
		got, _ := idsOf(t, r)
		own, _ := idsOf(t, search(e.URL, c.from, c.size, c.window))
		same(t, own, got, "%+v: directly (-), through us (+)", c)
	}
}

// TestCompletionSuggester has suggestions whose options are hits, beside a search whose hits fold or that has none.
func TestCompletionSuggester(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	index := "suggest-1"
	through, direct := api{e, serve(t, e, setup{match: "suggest-*"})}, api{e, e.URL}
	direct.drop(t, index)
	call(t, e, "PUT", through.base+"/"+index, `{"mappings":{"properties":{"title":{"type":"text"},"body":{"type":"text"},"s":{"type":"completion"},"n":{"type":"integer"}}}}`).want(t, 200)
	var lines strings.Builder
	for i := range 6 {
		fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n{\"n\":%d,\"s\":\"river %d\",\"title\":\"about %d\",\"body\":\"%s\"}\n", index, i, i, i, i/2, strings.Repeat(fmt.Sprintf("word%d ", i/2), 12))
	}
	through.loadLines(t, index, lines.String())
	for _, extra := range []string{``, `,"docvalue_fields":["n"]`, `,"_source":["n"]`, `,"query":{"match_none":{}}`} {
		body := `{"sort":"n","suggest":{"mine":{"prefix":"ri","completion":{"field":"s","size":6}}}` + extra + `}`
		want := jsonedit.Get(members(t, call(t, e, "POST", e.URL+"/"+index+"/_search", body).want(t, 200).body), "suggest")
		r := call(t, e, "POST", through.base+"/"+index+"/_search", body).want(t, 200)
		same(t, string(ourMember.ReplaceAll(want, nil)), string(jsonedit.Get(members(t, r.body), "suggest")), "%s: directly (-), through us (+)", extra)
		if outcome := r.header.Get("Neardup"); !strings.HasPrefix(outcome, "collapsed; ") {
			t.Error(outcome)
		}
	}
}

func members(t *testing.T, object []byte) []jsonedit.Member {
	t.Helper()
	list := must(jsonedit.Members(object))(t)
	return list
}

var ourMember = regexp.MustCompile(`,"neardup_sketch":"[^"]*"`)

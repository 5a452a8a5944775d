package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestRescoredSearch folds within what the engine rescores, and leaves alone what reaches beyond.
func TestRescoredSearch(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	index := "rescore-1"
	through, direct := api{e, serve(t, e, setup{match: "rescore-*"})}, api{e, e.URL}
	direct.drop(t, index)
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
		if diff := cmp.Diff(want[from:from+10], got); diff != "" {
			t.Errorf("from %d: the definition (-), the page (+):\n%s", from, diff)
		}
	}
	for _, c := range []struct{ from, size, window int }{{0, 10, 10}, {0, 20, 10}, {90, 10, 100}} {
		r := search(through.base, c.from, c.size, c.window)
		if outcome := r.header.Get("Neardup"); outcome != "bypassed; reason=rescore" {
			t.Errorf("%+v: %s", c, outcome)
		}
		got, _ := idsOf(t, r)
		own, _ := idsOf(t, search(e.URL, c.from, c.size, c.window))
		if diff := cmp.Diff(own, got); diff != "" {
			t.Errorf("%+v: directly (-), through us (+):\n%s", c, diff)
		}
	}
}

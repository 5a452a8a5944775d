package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// atQueryTime is a control that changes nothing but that a search is collapsed at query time.
const atQueryTime = "&neardup_window=1000"

// TestNativePages walks all pages of searches that the engine collapses: each is the first of every cluster in the engine's own list; and
// where clusters are groups, the same page that query time gives.
func TestNativePages(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		for _, c := range []*clustered{newClustered(t, e, "native-cliques", cliquesOnly(t)), newClustered(t, e, "native-all", documents(t))} {
			folded, differ := 0, 0
			for _, q := range queries {
				raw := c.raw(t, c.index, q)
				want := c.byCluster(raw)
				folded += len(raw) - len(want)
				same(t, slices.Collect(slices.Chunk(want, 17)), c.through.whole(t, c.index, q, 17, ""), "%s: %q", c.index, q)
				first := c.through.search(t, c.index, q, 0, 10, "")
				isNative(t, first.outcome)
				late := c.through.search(t, c.index, q, 9000, 10, "")
				if isNative(t, late.outcome); len(late.ids) != 0 {
					t.Errorf("%s: %q behind its end: %q", c.index, q, late.ids)
				}
				if figures := fmt.Sprintf("raw=%d; folded=%d;", len(raw), len(raw)-len(want)); !strings.Contains(first.outcome, figures) {
					t.Errorf("%s: %q: %s, want %s", c.index, q, first.outcome, figures)
				}
				slow := c.through.whole(t, c.index, q, 60, atQueryTime)
				same(t, slices.Collect(slices.Chunk(c.collapsed(raw), 60)), slow, "%s: %q at query time", c.index, q)
				if !cmp.Equal(slow, slices.Collect(slices.Chunk(want, 60))) {
					differ++
				}
			}
			if folded < 200 {
				t.Errorf("%s: only %d hits fold", c.index, folded)
			}
			if c.index == "native-cliques" && differ > 0 {
				t.Errorf("%d walks differ from query time's where every cluster is a group", differ)
			}
		}
	})
}

// TestNativeTotals: the engine's total, or the number of clusters where that is asked for; Typesense's is of groups unless it is asked for
// the other.
func TestNativeTotals(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		c := newClustered(t, e, "native-totals", documents(t))
		always := api{e, serve(t, e, setup{match: c.index, rule: "totals: collapsed\nnative: true"})}
		for _, q := range queries {
			raw := c.raw(t, c.index, q)
			groups := len(c.byCluster(raw))
			usual, exact := len(raw), "false"
			if c.direct.typesense() {
				usual, exact = groups, "true"
			}
			for _, ask := range []struct {
				through api
				params  string
				want    int
			}{{c.through, "", usual}, {c.through, "&neardup_totals=engine", len(raw)}, {c.through, "&neardup_totals=collapsed", groups},
				{always, "", groups}, {always, "&neardup_totals=engine", len(raw)}} {
				p := ask.through.search(t, c.index, q, 0, 10, ask.params)
				isNative(t, p.outcome)
				if p.total != ask.want || !strings.Contains(p.outcome, "; exact="+exact+"; ") {
					t.Errorf("%q%s: total %d, want %d: %s", q, ask.params, p.total, ask.want, p.outcome)
				}
			}
		}
	})
}

// TestNativeEverything: Typesense 0.24 groups no more than the first hits of a search for everything that nothing narrows, sorts or counts.
// Asked by us it groups all.
func TestNativeEverything(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	c := newClustered(t, e, "native-everything", documents(t))
	for _, params := range []string{"", "&filter_by=at:<9", "&sort_by=at:asc", "&sort_by=at:desc&filter_by=at:>2", "&facet_by=host", "&facet_by=host&sort_by=at:asc"} {
		for _, q := range []string{"*", " * "} {
			raw := slices.Concat(c.direct.whole(t, c.index, q, 250, params)...)
			want := c.byCluster(raw)
			for _, size := range []int{10, 250} {
				same(t, slices.Collect(slices.Chunk(want, size)), c.through.whole(t, c.index, q, size, params), "%q%s in pages of %d", q, params, size)
			}
			isNative(t, c.through.search(t, c.index, q, 0, 10, params).outcome)
		}
	}
}

// TestNativeAsWritten: documents that come through the sidecar have an id each, of a cluster that only the same text shares, so that
// searches are native before any job has run. One whose text a partial update changes in part is in a cluster of its own: it is shown.
func TestNativeAsWritten(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "native-written", documents(t)
		direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: index, rule: "native: true"})}
		through.create(t, index, list...)
		o := newOracle(t, direct, list)
		raw := o.raw(t, index, "the")
		seen := map[uint64]bool{}
		var want []string
		folded := ""
		for _, id := range raw {
			if number := o.sketches[id].Fingerprint; !seen[number] {
				seen[number] = true
				want = append(want, id)
			} else {
				folded = id
			}
		}
		if len(want) == len(raw) {
			t.Fatal("no two documents have the same text")
		}
		same(t, slices.Collect(slices.Chunk(want, 60)), through.whole(t, index, "the", 60, ""), "")
		isNative(t, through.search(t, index, "the", 0, 10, "").outcome)
		if direct.typesense() {
			call(t, e, "PATCH", through.base+"/collections/"+index+"/documents/"+folded, `{"title":"the new title"}`).want(t, 201)
		} else {
			call(t, e, "POST", through.base+"/"+index+"/_update/"+folded+"?refresh=true", `{"doc":{"title":"the new title"}}`).want(t, 200)
		}
		isNative(t, through.search(t, index, "the", 0, 10, "").outcome)
		if shown := slices.Concat(through.whole(t, index, "the", 60, "")...); !slices.Contains(shown, folded) {
			t.Errorf("%s has a text of its own and is not shown", folded)
		}
	})
}

// TestNativeAfterTheJob: the clusters that the job stores are those of the definition, and so are the pages.
func TestNativeAfterTheJob(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "native-job", documents(t)
		file := config(t, e, setup{match: index, rule: "native: true"})
		direct, through := api{e, e.URL}, api{e, serveFile(t, file)}
		through.create(t, index, list...)
		succeed(t, "cluster", "--config", file, "--index", index, "--write")
		direct.refresh(t, index)
		c := &clustered{oracle: newOracle(t, direct, list), index: index, ids: map[string]string{}}
		for id, number := range clustersOf(t).least {
			c.ids[id] = nativeRule(t).ClusterID(number)
		}
		for _, q := range queries {
			want := c.byCluster(c.raw(t, index, q))
			same(t, slices.Collect(slices.Chunk(want, 20)), through.whole(t, index, q, 20, ""), "%q", q)
			isNative(t, through.search(t, index, q, 0, 10, "").outcome)
		}
	})
}

// TestNativeMulti sends searches for the engine, for query time and for neither in one request: each is answered as it is alone.
func TestNativeMulti(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		c := newClustered(t, e, "native-multi", cliquesOnly(t))
		bodies := []string{
			`"query":{"match":{"body":"the"}}`, `"query":{"match":{"body":"river"}},"neardup_window":1000`, `"query":{"match":{"body":"town"}},"aggs":{"a":{"max":{"field":"at"}}}`,
			`"query":{"match":{"body":"the"}},"neardup":"off"`, `"query":{"match":{"body":"old"}},"sort":"nosuch"`, `"query":{"match":{"body":"old"}},"from":10,"size":3`,
			`"query":{"match":{"body":"the"}},"size":0,"aggs":{"h":{"terms":{"field":"host"}}},"neardup_counts":"groups","neardup_window":1000`,
		}
		if c.direct.typesense() {
			bodies = []string{
				`"q":"the"`, `"q":"river","neardup_window":1000`, `"q":"town","facet_by":"host"`, `"q":"the","neardup":"off"`, `"q":"old","facet_by":"nosuch"`, `"q":"*","page":2,"per_page":3`,
				`"q":"the","facet_by":"host","per_page":0,"neardup_counts":"groups","neardup_window":1000`,
			}
		}
		ask := func(bodies []string) ([][]byte, string) {
			path, body, key := "/_msearch", "", "responses"
			if c.direct.typesense() {
				path, key = "/multi_search", "results"
				var searches []string
				for _, b := range bodies {
					searches = append(searches, `{"collection":"`+c.index+`","query_by":"title,body",`+b+`}`)
				}
				body = `{"searches":[` + strings.Join(searches, ",") + `]}`
			} else {
				for _, b := range bodies {
					body += `{"index":"` + c.index + `"}` + "\n{" + b + "}\n"
				}
			}
			r := call(t, e, "POST", c.through.base+path, body).want(t, 200)
			var parts map[string]json.RawMessage
			decode(t, r.body, &parts)
			list, err := jsonedit.Elements(parts[key])
			if err != nil || len(list) != len(bodies) {
				t.Fatalf("%d answers: %s", len(list), r.body)
			}
			return list, r.header.Get("Neardup")
		}
		all, header := ask(bodies)
		if !strings.HasPrefix(header, "collapsed; reason=off,refused; ") || strings.Contains(header, "native") {
			t.Errorf("not all of them are native: %s", header)
		}
		for i, body := range bodies {
			alone, header := ask([]string{body})
			same(t, spent.ReplaceAllString(string(alone[0]), ""), spent.ReplaceAllString(string(all[i]), ""), "%s: alone (-), among others (+)", body)
			if native := strings.Contains(header, "; native; "); native != (i == 0 || i == 2 || i == 5) {
				t.Errorf("%s: %s", body, header)
			}
		}
		_, header = ask([]string{bodies[0], bodies[2], bodies[5]})
		isNative(t, header)
	})
}

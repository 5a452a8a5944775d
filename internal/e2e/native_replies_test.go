package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestNativeReplies compares replies that the engine collapsed with its own to the same search, byte for byte: all around the hits, but for
// the time it took and Typesense's number of groups; and each hit with the same document's.
func TestNativeReplies(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		c := newClustered(t, e, "native-replies", cliquesOnly(t))
		query := `"query":{"multi_match":{"query":"the river","fields":["title","body"]}}`
		hosts := `{"hosts":{"terms":{"field":"host","size":5},"aggs":{"best":{"avg":{"field":"at"}}}},"last":{"max":{"field":"published_at"}}}`
		for _, v := range []struct{ params, more string }{
			{"", ""}, {"pretty", `,"aggs":` + hosts}, {"", `,"aggregations":` + hosts}, {"", `,"aggs":{}`}, {"typed_keys", `,"aggs":` + hosts},
			{"", `,"aggs":` + manyAggregations(10)}, {"rest_total_hits_as_int=true", ""}, {"", `,"track_total_hits":false`}, {"", `,"track_total_hits":50`},
			{"filter_path=hits.hits._id,hits.total,aggregations", `,"aggs":` + hosts}, {"filter_path=-took,-hits.hits._source", ``},
			{"", `,"post_filter":{"range":{"at":{"lt":5}}},"aggs":` + hosts}, {"", `,"_source":["title"]`},
			{"", `,"highlight":{"fields":{"*":{}}}`}, {"", `,"docvalue_fields":["host","at"]`}, {"", `,"version":true,"seq_no_primary_term":true`},
			{"", `,"explain":true`}, {"", `,"from":7,"sort":[{"id":"asc"}],"track_scores":true`},
			{"", `,"suggest":{"s":{"text":"rivr","term":{"field":"body"}}}`}, {"_source_includes=title&preference=_local", ""},
		} {
			ask := func(control string, size int) reply {
				more := fmt.Sprintf(`,"size":%d`, size) + v.more
				if size == 100 {
					more = regexp.MustCompile(`"from":\d+`).ReplaceAllString(more, `"from":0`)
				}
				return call(t, e, "POST", c.through.base+"/"+c.index+"/_search?"+control+v.params, "{"+query+more+"}").want(t, 200)
			}
			native, plain, all := ask("", 10), ask("neardup=off&", 10), ask("neardup=off&", 100)
			c.sameReply(t, fmt.Sprintf("%q %s", v.params, v.more), native, plain, all)
		}
	})
	t.Run("typesense", func(t *testing.T) {
		e := engines.Shared(t, engines.Typesense)
		c := newClustered(t, e, "native-replies", cliquesOnly(t))
		for _, q := range []string{"*", "the", "river bridge"} {
			for _, v := range []string{
				"", "&facet_by=host,url&max_facet_values=3", "&include_fields=title", "&exclude_fields=body,id", "&filter_by=at:<5&facet_by=url",
				"&sort_by=at:asc&facet_by=host", "&highlight_full_fields=body", "&page=2", "&page=3&facet_by=host", "&snippet_threshold=5",
			} {
				ask := func(control string, size int) reply {
					rest := v
					if size > 10 {
						rest = regexp.MustCompile(`&page=\d`).ReplaceAllString(rest, "")
					}
					return call(t, e, "GET", c.through.base+"/collections/"+c.index+"/documents/search?query_by=title,body&q="+url.QueryEscape(q)+
						fmt.Sprintf("&per_page=%d", size)+rest+control, "").want(t, 200)
				}
				all := ask("&neardup=off", 250)
				if second := ask("&neardup=off&page=2", 250); !strings.Contains(string(second.body), `"hits":[]`) {
					all.body = joined(t, e, all.body, second.body)
				}
				c.sameReply(t, q+v, ask("", 10), ask("&neardup=off", 10), all)
			}
		}
	})
}

// manyAggregations returns so many, in an order that no hash has.
func manyAggregations(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"%c%d":{"max":{"field":"at"}}`, 'a'+(i*7)%26, i))
	}
	return "{" + strings.Join(list, ",") + "}"
}

// joined returns a reply with the hits of another behind its own.
func joined(t *testing.T, e *engines.Engine, reply, more []byte) []byte {
	t.Helper()
	hits := strings.TrimSuffix(hitsOnly(t, e, reply), "]") + "," + strings.TrimPrefix(hitsOnly(t, e, more), "[")
	return must(jsonedit.Set(reply, "hits", []byte(hits)))(t)
}

var spent = regexp.MustCompile(`"(took|search_time_ms)"( ?: ?)\d+`)

// sameReply compares the reply to a native search with the engine's own page and its whole list.
func (c *clustered) sameReply(t *testing.T, name string, native, plain, all reply) {
	t.Helper()
	if header := native.header.Get("Neardup"); !strings.Contains(header, "; native; ") {
		t.Errorf("%s: %s", name, header)
	}
	outside, own := c.outside(t, native.body), c.outside(t, plain.body)
	same(t, own, outside, "%s: around the hits the engine's (-) and the native reply (+)", name)
	known := map[string]bool{}
	for _, hit := range c.hits(t, all.body) {
		known[string(hit)] = true
	}
	hits := c.hits(t, native.body)
	for _, hit := range hits {
		if !known[string(hit)] {
			t.Errorf("%s: no hit of the engine's: %s", name, hit)
		}
	}
	if len(hits) == 0 && len(c.hits(t, plain.body)) > 0 && !strings.Contains(name, "page=") {
		t.Errorf("%s: no hits", name)
	}
	for _, header := range []string{"Content-Type", "X-Elastic-Product", "Access-Control-Allow-Origin"} {
		same(t, plain.header.Get(header), native.header.Get(header), "%s: %s", name, header)
	}
}

// hits returns the hits of a reply, none if a filter took them.
func (c *clustered) hits(t *testing.T, body []byte) [][]byte {
	t.Helper()
	if !bytes.Contains(body, []byte(`"hits"`)) {
		return nil
	}
	list, err := jsonedit.Elements([]byte(hitsOnly(t, c.e, body)))
	if err != nil {
		return nil
	}
	return list
}

// outside returns a reply less its hits, the time it took, and Typesense's number of hits.
func (c *clustered) outside(t *testing.T, body []byte) string {
	t.Helper()
	members := must(jsonedit.Members(body))(t)
	hits := jsonedit.Get(members, "hits")
	switch {
	case c.direct.typesense():
		hits, body = []byte("[]"), must(jsonedit.Set(body, "found", []byte("0")))(t)
	case hits != nil:
		if inner, _ := jsonedit.Members(hits); jsonedit.Get(inner, "hits") != nil {
			hits = must(jsonedit.Set(hits, "hits", []byte("[]")))(t)
		}
	}
	if hits != nil {
		body = must(jsonedit.Set(body, "hits", hits))(t)
	}
	return spent.ReplaceAllString(string(body), `"$1"${2}0`)
}

// TestNativeGuards takes the id from a document, or gives it one of another rule: nothing is hidden for it, on any page.
func TestNativeGuards(t *testing.T) {
	other := nativeRule(t)
	other.Profile.Threshold = 0.5
	if other.ClusterMark() == nativeRule(t).ClusterMark() {
		t.Fatal("the mark does not tell rules apart")
	}
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		c := newClustered(t, e, "native-guard", cliquesOnly(t))
		whole, raw := maps.Clone(c.ids), c.raw(t, c.index, "the")
		for _, g := range []struct {
			name string
			// change gives the documents of the ranks in the engine's list other ids.
			change func(rank int, id string) string
		}{
			{"the first", func(rank int, id string) string { return either(rank == 0, "", id) }},
			{"two of another rule in one cluster", func(rank int, id string) string { return either(rank == 40 || rank == 41, other.ClusterID(7), id) }},
			{"no id at all", func(rank int, id string) string { return either(rank == 5, "x", id) }},
		} {
			t.Run(g.name, func(t *testing.T) {
				for rank, id := range raw {
					c.ids[id] = g.change(rank, whole[id])
				}
				c.write(t, c.list)
				want := c.collapsed(c.raw(t, c.index, "the"))                             // what is deleted changes scores
				fresh := api{e, serve(t, e, setup{match: c.index, rule: "native: true"})} // which remembers nothing
				for _, from := range []int{30, 0} {
					p := fresh.search(t, c.index, "the", from, 10, "")
					isntNative(t, p.outcome, string(adapters.ReasonUnclustered))
					same(t, want[from:from+10], p.ids, "from %d: the definition (-), the page (+)", from)
				}
			})
		}
	})
}

func either(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// TestNativeUndeclared: an index without our field is collapsed at query time.
func TestNativeUndeclared(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "native-bare", cliquesOnly(t)
		direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "native-bare", rule: "native: true"})}
		direct.create(t, index, list...)
		o := newOracle(t, direct, list)
		p := through.search(t, index, "the", 0, 10, "")
		isntNative(t, p.outcome, string(adapters.ReasonNativeRefused))
		same(t, o.list(t, index, "the")[:10], p.ids, "")
		empty := through.search(t, index, "nothingmatchesthis", 0, 10, "")
		same(t, 0, len(empty.ids), "%q: %s", empty.ids, empty.outcome)
	})
}

// TestNativeCursors: exports are left alone, pages behind a cursor take query time and go on well from a page that was native.
func TestNativeCursors(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	c := newClustered(t, e, "native-cursors", cliquesOnly(t))
	at := "/" + c.index + "/_search"
	sort := `"sort":[{"at":"asc"},{"id":"asc"}]`
	ask := func(base, more string) ([]string, reply) {
		r := call(t, e, "POST", base+at, `{"size":10,"query":{"match":{"body":"the"}},`+sort+more+`}`).want(t, 200)
		ids, _ := idsOf(t, r)
		return ids, r
	}
	raw, _ := idsOf(t, call(t, e, "POST", e.URL+at, `{"size":1000,"query":{"match":{"body":"the"}},`+sort+`}`).want(t, 200))
	want := c.collapsed(raw)
	ids, first := ask(c.through.base, "")
	isNative(t, first.header.Get("Neardup"))
	got := slices.Clone(ids)
	for page := 1; page < 6; page++ {
		last := ids[len(ids)-1]
		i := slices.IndexFunc(c.list, func(d corpus.Document) bool { return d.ID == last })
		var r reply
		ids, r = ask(c.through.base, fmt.Sprintf(`,"search_after":[%d,%q]`, i%13, last))
		isntNative(t, r.header.Get("Neardup"), "")
		got = append(got, ids...)
	}
	same(t, want[:60], got, "a walk by search_after")
	for _, export := range []string{at + "?scroll=1m", at + "?sort=_doc"} {
		r := call(t, e, "POST", c.through.base+export, `{"query":{"match":{"body":"the"}}}`).want(t, 200)
		same(t, "bypassed; reason=export", r.header.Get("Neardup"), "%s", export)
	}
	if r := call(t, e, "POST", c.through.base+at, `{"collapse":{"field":"host"}}`); r.header.Get("Neardup") != "bypassed; reason=client_collapse" {
		t.Error(r.header.Get("Neardup"))
	}
	for _, body := range []string{`{"min_score":0.1}`, `{"terminate_after":50}`, `{"aggs":{"t":{"top_hits":{"size":1}}}}`} {
		r := call(t, e, "POST", c.through.base+at, body).want(t, 200)
		isntNative(t, r.header.Get("Neardup"), "")
	}
}

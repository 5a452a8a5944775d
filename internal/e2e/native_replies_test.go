package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

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
	out := must(jsonedit.Set(reply, "hits", []byte(hits)))(t)
	return out
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
		if got, want := native.header.Get(header), plain.header.Get(header); got != want {
			t.Errorf("%s: %s is %q, want %q", name, header, got, want)
		}
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

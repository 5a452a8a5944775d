package typesense

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
)

// TestCountsAsks: which searches count groups, which can't, and which are left alone.
func TestCountsAsks(t *testing.T) {
	p, _ := nativePlan(t)
	for _, c := range []struct {
		imposes   string // by its key
		search    string
		counting  bool
		uncounted bool
		reason    adapters.Reason
	}{
		{"", `"facet_by":"k"`, false, false, ""}, {"", `"neardup_counts":"groups"`, false, false, ""}, {"", `"facet_by":"k","neardup_counts":"groups"`, true, false, ""},
		{"", `"facet_by":"k","per_page":0,"neardup_counts":"groups"`, true, false, ""}, {"", `"facet_by":"k","facet_query":"k:x","neardup_counts":"groups"`, true, false, ""},
		{"", `"per_page":0,"neardup_counts":"groups"`, false, false, "size_zero"}, {"", `"facet_by":"k","per_page":0`, false, false, "size_zero"},
		{"", `"facet_by":"k","limit_hits":20,"neardup_counts":"groups"`, false, true, ""}, {"", `"facet_by":"k","per_page":0,"limit_hits":20,"neardup_counts":"groups"`, false, false, "uncountable"},
		{"", `"facet_by":"k","limit_hits":5000,"neardup_counts":"groups"`, true, false, ""},
		{"", `"facet_by":"k","offset":3,"neardup_counts":"groups"`, false, true, ""}, {"", `"preset":"p","neardup_counts":"groups"`, false, true, ""},
		{"", `"facet_by":"k","limit":0,"neardup_counts":"groups"`, false, false, "uncountable"}, {"", `"facet_by":"k","facet_sample_percent":9,"neardup_counts":"groups"`, false, true, ""},
		{`{"filter_by":"n:1"}`, `"facet_by":"k","neardup_counts":"groups"`, true, false, ""}, {`{"q":"x"}`, `"facet_by":"k","neardup_counts":"groups"`, false, true, ""},
		{`{"per_page":7}`, `"facet_by":"k","neardup_counts":"groups"`, false, true, ""}, {`{"exclude_fields":"id"}`, `"facet_by":"k","neardup_counts":"groups"`, false, true, ""},
	} {
		r := post(`/multi_search`, `{"searches":[{"collection":"news","q":"a",`+c.search+`}]}`)
		r.Header = adapters.Header{keyHeader: {base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", scopedHead) + c.imposes))}}
		s := Dialect{}.ParseSearch(adapters.Class{Form: formMulti}, r, p)
		expect.Same(t, c.reason, s.Reason, "%s %s", c.imposes, c.search)
		if s.Left() {
			continue
		}
		if asked := s.List[0].Asked(); asked.Counting != nil != c.counting || asked.Uncounted != c.uncounted {
			t.Errorf("%s %s: counting %t, uncounted %t", c.imposes, c.search, asked.Counting != nil, asked.Uncounted)
		}
	}
}

// TestCountsSteer: a request for facets is one for the documents that are shown and for nothing else, though what the client's query string says counts
// before its body.
func TestCountsSteer(t *testing.T) {
	p, _ := nativePlan(t)
	text := strings.Repeat("one two three ", 30)
	f := &fake{documents: []map[string]any{{"id": "a", "title": text}, {"id": "b", "title": text}}}
	r := &adapters.Request{Method: "GET", Path: "/collections/news/documents/search", Header: adapters.Header{},
		RawQuery: "q=one&query_by=title&filter_by=n:1&pinned_hits=c:1&facet_by=k&max_facet_values=3&neardup_counts=groups&neardup_window=9"}
	s := Dialect{}.ParseSearch(Dialect{}.Classify(r), r, p)
	var last *adapters.Request
	answer := expect.Value(adaptertest.Run(s, func(r *adapters.Request) *adapters.Reply {
		last = r
		return f.reply(r)
	}))(t)
	if o := answer.Outcomes[0]; o.Folded != 1 || o.Counts != adapters.CountsExact {
		t.Fatalf("%+v", o)
	}
	params := valuesOf(paramsOf(last.RawQuery))
	for name, want := range map[string]string{"q": "*", "filter_by": "id:[`a`]", "pinned_hits": "", "facet_by": "k", "max_facet_values": "3", "per_page": "0"} {
		expect.Same(t, want, params[name], "%s in %s", name, last.RawQuery)
	}
}

// TestCountsUnnameable: where a filter can't name a document, or the engine turns out to fuse lists, a page keeps its hits and the engine's own facets. A search
// for no hits is left alone.
func TestCountsUnnameable(t *testing.T) {
	p, _ := nativePlan(t)
	for _, c := range []struct {
		id, mark string
		counted  bool
	}{{"b", "", true}, {"b`", "", false}, {" b", "", false}, {"b", `"hybrid_search_info":{"rank_fusion_score":1.0},`, false}} {
		for _, size := range []int{2, 0} {
			text := strings.Repeat("one two three ", 30)
			f := &fake{documents: []map[string]any{{"id": c.id, "title": text}, {"id": "a", "title": text}}}
			search := fmt.Sprintf(`{"searches":[{"collection":"news","q":"one","query_by":"title","facet_by":"k","per_page":%d,"neardup_counts":"groups","neardup_window":9}]}`, size)
			s := Dialect{}.ParseSearch(adapters.Class{Form: formMulti}, post(`/multi_search`, search), p)
			answer := expect.Value(adaptertest.Run(s, func(r *adapters.Request) *adapters.Reply {
				reply := f.reply(r)
				reply.Body = []byte(strings.ReplaceAll(string(reply.Body), `"highlights":[]`, c.mark+`"highlights":[]`))
				return reply
			}))(t)
			o := answer.Outcomes[0]
			var reason adapters.Reason
			counts := adapters.CountsExact
			if !c.counted && size == 0 {
				reason, counts = adapters.ReasonUncountable, adapters.CountsUnasked
			} else if !c.counted {
				counts = adapters.CountsEngine
			}
			if o.Reason != reason || o.Counts != counts || reason == "" && o.Folded != 1 {
				t.Errorf("%q %s, %d hits: %+v", c.id, c.mark, size, o)
			}
		}
	}
}

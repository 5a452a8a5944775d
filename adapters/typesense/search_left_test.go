package typesense

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
)

func TestLeftAlone(t *testing.T) {
	rule := newRule(t, "news", "body")
	plan := planFor(adapters.Scope{}, rule)
	for _, c := range []struct {
		query  string
		reason adapters.Reason
	}{
		{"q=x", ""},
		{"q=x&neardup=off", "off"},
		{"q=x&group_by=n", "grouped"},
		{"q=x&group_by=", ""},
		{"q=x&vector_query=v:([])", ""},
		{"q=x&vector_query=v:([1], k:3)&page=5&per_page=50", ""},
		{"q=x&vector_query=v:([1], k:3)&page=6&per_page=50", "rank_window"},
		{"q=&vector_query=v:([1])", "vector"},
		{"q=x&vector_query=v:([], queries:[a, b])", "vector"},
		{"q=*&vector_query=v:([1,2])", ""},
		{"q=*&vector_query=v:([], id: 7, k: 3)", ""},
		{"q=*&vector_query=v:([1],k:3", "vector"},
		{"q=*&vector_query=v:([1],k:x)", "vector"},
		{"q=*&preset=p&vector_query=v:([1])", "vector"},
		{"q=x&limit_hits=5", "limit_hits"},
		{"q=x&limit_hits=10", ""},
		{"q=x&limit_hits=10&page=2", "limit_hits"},
		{"q=x&limit_hits=ten", "not_understood"},
		{"q=x&preset=p", ""},
		{"q=x&vector_query=v:([1])&offset=5", "vector"},
		{"q=x&limit=251", "per_page"},
		{"q=x&limit=0", "size_zero"},
		{"q=x&limit=some", "not_understood"},
		{"q=x&offset=-1", "not_understood"},
		{"q=x&conversation=true", "conversation"},
		{"q=x&conversation=false", ""},
		{"q=x&facet_by=n&facet_query=n:1", "size_zero"},
		{"q=x&facet_by=n&facet_query=n:1&per_page=5", ""},
		{"q=x&facet_by=n&facet_query=", ""},
		{"q=x&page=0", "not_understood"},
		{"q=x&page=-1", "not_understood"},
		{"q=x&per_page=251", "per_page"},
		{"q=x&per_page=ten", "not_understood"},
		{"q=x&per_page=0", "size_zero"},
		{"q=x&per_page=5&per_page=0", "size_zero"},
		{"q=x&include_fields=ti*", "not_understood"},
		{"q=x&use_cache=true", ""},
		{"q=x&pinned_hits=1:1", ""},
		{"q=x&x=" + strings.Repeat("a", 4000), "query_length"},
	} {
		s := search(get("/collections/news/documents/search?"+c.query), plan)
		expect.Same(t, c.reason, s.Reason, "%s: the reason", c.query)
		expect.Same(t, c.reason != "", s.Left(), "%s: left alone", c.query)
	}
	expect.Same(t, adapters.Reason("unconfigured"), search(get("/collections/other/documents/search?q=x"), plan).Reason, "another collection")
	for body, reason := range map[string]adapters.Reason{
		`{"searches":[{"collection":"other","group_by":"n"},{"collection":"none","q":null}]}`:                        "unconfigured",
		`{"searches":[{"collection":"other"},{"collection":"news","group_by":"n"}]}`:                                 "grouped",
		`{"searches":[{"collection":"news","x-typesense-api-key":"a"},{"collection":"news"}]}`:                       "scoped_key",
		`{"searches":[{"collection":"other","x-typesense-api-key":"a"},{"collection":"news","group_by":"n","q":1}]}`: "scoped_key",
	} {
		if s := search(post("/multi_search", body), plan); s.Reason != reason || !s.Left() {
			t.Errorf("%s: %q, want %q", body, s.Reason, reason)
		}
	}
	s := search(post("/multi_search?preset=p", `{"searches":[{"collection":"other"}]}`), plan)
	expect.Same(t, adapters.Reason("preset"), s.Reason, "a preset in the query of a multi-search")
	for _, body := range []string{``, `{}`, `[]`, `{"searches":[]}`, `{"searches":[{"collection":"news","q":null}]}`, `{"searches":[{"collection":"news"},3]}`, `{"searches":[/*x*/{"collection":"news"}]}`, `{"searches":[{"collection":"news"}],"union":1}`, `{"searches":[` + strings.Repeat(`{"collection":"news"},`, 50) + `{}]}`} {
		r := post("/multi_search", body)
		if s := search(r, plan); !s.Left() || s.Reason != "not_understood" || string(s.Plain.Body) != body {
			t.Errorf("%s: %+v", body, s)
		}
	}
}

// What a key imposes decides, too, whether a search is left alone, wherever the key stands.
func TestLeftAloneForItsKey(t *testing.T) {
	plan := planFor(adapters.Scope{}, newRule(t, "news", "body"))
	for imposed, reason := range map[string]adapters.Reason{
		`{"filter_by":"a:1","expires_at":1}`: "", `{"exclude_fields":"body"}`: "", `{"include_fields":"n"}`: "", `{"group_by":"n"}`: "grouped",
		`{"page":1}`: "scoped_key", `{"limit_multi_searches":1}`: "",
		`{"per_page":"7"}`: "", `{"per_page":300}`: "per_page", `{"per_page":0}`: "size_zero", `{"per_page":null}`: "",
		`{"limit_hits":9}`: "limit_hits", `{"limit_hits":10}`: "", `{"preset":"p"}`: "preset", `{"vector_query":"v:([1])"}`: "vector",
		`{"collection":"other"}`: "unconfigured", `{"collection":["other"]}`: "",
	} {
		for _, tail := range []string{"", "!", "\n=="} {
			r := get("/collections/news/documents/search?q=*")
			r.Header = adapters.Header{keyHeader: {scopedKey(imposed) + tail}}
			expect.Same(t, reason, search(r, plan).Reason, "a key with %s", imposed)
			r.RawQuery, r.Header = r.RawQuery+"&x-typesense-api-key="+url.QueryEscape(scopedKey(imposed)+tail), nil
			expect.Same(t, reason, search(r, plan).Reason, "a key in the query with %s", imposed)
		}
		// A key of the search's own may not count beside one of the request.
		body := fmt.Sprintf(`{"searches":[{"collection":"news","q":"*","x-typesense-api-key":%q}]}`, scopedKey(imposed))
		expect.Same(t, steers(embedded(scopedKey(imposed))), search(post("/multi_search", body), plan).Left(), "a search's key with %s: left alone", imposed)
		r := post("/multi_search", body)
		r.Header = nil
		expect.Same(t, reason, search(r, plan).Reason, "a search's key with %s alone", imposed)
	}
	r := get("/collections/news/documents/search?q=x")
	r.Header = adapters.Header{keyHeader: {scopedKey(`{"limit_multi_searches":0}`)}}
	if s := search(r, plan); s.Reason != "scoped_key" || !s.Left() {
		t.Errorf("a key for no multi-search: %q", s.Reason)
	}
}

// TestLeftMultiSearch: of a multi-search with too many searches only our controls are read, not each search with the whole query string.
func TestLeftMultiSearch(t *testing.T) {
	searches := strings.Repeat(`{"q":"*","collection":"news","neardup":"off"},`, 2000)
	r := post("/multi_search", `{"searches":[`+strings.TrimSuffix(searches, ",")+`]}`)
	r.RawQuery = strings.Repeat("a=b&", 1000)
	plan := planFor(adapters.Scope{}, adaptertest.Rules(t)...)
	plan.Scope = func(target string) adapters.Scope {
		t.Fatalf("a search that is left alone is taken apart: it is of %s", target)
		return adapters.Scope{}
	}
	s := Dialect{}.ParseSearch(adapters.Class{Form: formMulti}, r, plan)
	if s.Reason != adapters.ReasonTooLarge || strings.Contains(string(s.Plain.Body), "neardup") || strings.Count(string(s.Plain.Body), `{"q":"*","collection":"news"}`) != 2000 {
		t.Errorf("%q, and %.200s is sent", s.Reason, s.Plain.Body)
	}
}

// A preset that groups is seen in the engine's reply alone, which is then the answer, without another request.
func TestPresetThatGroups(t *testing.T) {
	const grouped = `{"facet_counts":[],"found":1,"grouped_hits":[{"group_key":["x"],"hits":[{"document":{"id":"1"SKETCH}}]}],"out_of":2,"page":1,` +
		`"request_params":{"collection_name":"news","per_page":10,"q":"x"},"search_cutoff":false,"search_time_ms":0}`
	stored, bare := strings.Replace(grouped, "SKETCH", `,"neardup_sketch":"s"`, 1), strings.Replace(grouped, "SKETCH", "", 1)
	asked := 0
	plan := planFor(adapters.Scope{}, newRule(t, "news", "body"))
	answer := expect.Value(adaptertest.Run(search(get("/collections/news/documents/search?q=x&preset=p"), plan), func(r *adapters.Request) *adapters.Reply {
		asked++
		searches, _ := fakeSearches(r)
		return fakeReply(200, `{"results":[`+strings.Join(slices.Repeat([]string{stored}, len(searches)), ",")+`]}`)
	}))(t)
	if o := answer.Outcomes[0]; o.Reason != "grouped" || o.Again || asked != 1 || string(answer.Body) != bare {
		t.Errorf("%+v after %d requests: %s", o, asked, answer.Body)
	}
}

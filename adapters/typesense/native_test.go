package typesense

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// nativePlan is a plan in which the engine may group.
func nativePlan(t testing.TB) (adapters.Plan, *rule.Rule) {
	t.Helper()
	sketcher := expect.Value(sketch.New(sketch.Scheme{Family: sketch.FastSimilarity, Words: 4, Positions: 32}))(t)
	r := &rule.Rule{Match: "news", Fields: []string{"title"}, Profile: rerank.Profile{Threshold: 0.6}, Window: 30, Compute: true,
		Native: true, Clusters: true, Sketcher: sketcher}
	scope := adapters.Scope{Native: r}
	scope.Add(r)
	return adapters.Plan{Rules: rule.Rules{r}, MaxWindow: 1000, Scope: func(string) adapters.Scope { return scope }}, r
}

// firstAsk returns what a search asks first.
func firstAsk(t testing.TB, s *adapters.Searches) (ask *adapters.Request) {
	t.Helper()
	_, err := adaptertest.Run(s, func(r *adapters.Request) *adapters.Reply {
		ask = r
		return &adapters.Reply{Status: 503}
	})
	if ask == nil {
		t.Fatal(err)
	}
	return ask
}

// TestNativeAsks: which searches the engine is asked to group, and how.
func TestNativeAsks(t *testing.T) {
	p, _ := nativePlan(t)
	const group, only = `"group_by":"neardup_cluster","group_limit":"1"`, `,"filter_by":"neardup_cluster:!=neardup_none"`
	count := func(facets, more string) string {
		return `"page":"1","per_page":"0","facet_by":"` + facets + `","enable_analytics":"false"` + more
	}
	const most = `,"max_facet_values":"100"`
	for _, c := range []struct{ search, page, counts string }{
		{`"q":"a"`, `"q":"a",` + group, `"q":"a",` + count("neardup_cluster", most)},
		{`"q":"*"`, `"q":"*",` + group + only, `"q":"*",` + count("neardup_cluster", most)},
		{`"q":" * "`, `"q":" * ",` + group + only, `"q":" * ",` + count("neardup_cluster", most)},
		{`"q":"*","sort_by":"n:asc"`, `"q":"*","sort_by":"n:asc",` + group, `"q":"*","sort_by":"n:asc",` + count("neardup_cluster", most)},
		{`"q":"*","filter_by":"n:1"`, `"q":"*","filter_by":"n:1",` + group, `"q":"*","filter_by":"n:1",` + count("neardup_cluster", most)},
		{`"q":"a","facet_by":"k","page":2,"per_page":3`, `"q":"a","page":2,"per_page":3,` + group,
			`"q":"a",` + count("k,neardup_cluster", "")},
		{`"q":"a","neardup_totals":"engine","neardup_threshold":0.6`, `"q":"a",` + group, `"q":"a",` + count("neardup_cluster", most)},
		{`"q":"a","neardup_keep":1,"neardup":"on","neardup_expand":"off"`, `"q":"a",` + group, `"q":"a",` + count("neardup_cluster", most)},
		{`"q":"a","facet_by":"k","neardup_counts":"groups"`, `"q":"a","facet_by":"k",` + group, `"q":"a",` + count("neardup_cluster", most)},
		{`"q":"a","neardup_keep":2`, "", ""}, {`"q":"a","neardup_explain":true`, "", ""}, {`"q":"a","neardup":"dry_run"`, "", ""},
		{`"q":"a","neardup_threshold":0.7`, "", ""}, {`"q":"a","neardup_expand":"ids"`, "", ""}, {`"q":"a","neardup_window":3`, "", ""},
		{`"q":"a","pinned_hits":"1:2"`, "", ""}, {`"q":"a","hidden_hits":"1"`, "", ""}, {`"q":"a","preset":"p"`, "", ""}, {`"q":"a","offset":3`, "", ""},
		{`"q":"a","facet_query":"k:x","facet_by":"k","per_page":3`, "", ""}, {`"q":"a","include_fields":"neardup_cluster"`, "", ""},
		{`"q":"*","filter_by":""`, "", ""}, {`"q":"a","group_by":""`, "", ""},
		{`"q":"*","vector_query":"v:([0.1], k:3)"`, "", ""}, {`"q":"a","filter_by":"neardup_cluster:=x"`, "", ""}, {`"q":"a","search_cutoff_ms":3`, "", ""},
	} {
		s := Dialect{}.ParseSearch(adapters.Class{Form: formMulti}, post(`/multi_search`, `{"searches":[{"collection":"news",`+c.search+`}]}`), p)
		if s.Left() {
			t.Errorf("%s: left alone: %s", c.search, s.Reason)
			continue
		}
		ask := firstAsk(t, s)
		want := `{"searches":[{"collection":"news",` + c.page + `},{"collection":"news",` + c.counts + `}]}`
		if native := strings.Contains(string(ask.Body), group); native != (c.page != "") || native && string(ask.Body) != want {
			t.Errorf("%s: asks\n%s\nwant\n%s", c.search, ask.Body, want)
		}
	}
}

// groupsReply is the engine's reply to a search with groups of the keys, counted that of the one without.
func groupsReply(found int, keys ...string) string {
	var groups []string
	for i, key := range keys {
		groups = append(groups, fmt.Sprintf(`{"group_key":[%s],"hits":[{"document":{"id":"%d","neardup_cluster":"x","neardup_sketch":"y"},"highlights":[]}]}`, key, i))
	}
	return fmt.Sprintf(`{"facet_counts":[],"found":%d,"grouped_hits":[%s],"out_of":40,"page":1,"request_params":{"collection_name":"news_1","per_page":2,"q":"a"},`+
		`"search_cutoff":false,"search_time_ms":9}`, found, strings.Join(groups, ","))
}

func countedReply(found, ids int, listed ...string) string {
	var values []string
	for _, id := range listed {
		values = append(values, `{"count":2,"highlighted":`+id+`,"value":`+id+`}`)
	}
	return fmt.Sprintf(`{"facet_counts":[{"counts":[],"field_name":"k","stats":{"total_values":5}},{"counts":[%s],"field_name":"neardup_cluster","stats":{"total_values":%d}}],`+
		`"found":%d,"hits":[],"out_of":40,"page":1,"request_params":{"collection_name":"news_1","per_page":0,"q":"a"},"search_cutoff":false,"search_time_ms":1}`,
		strings.Join(values, ","), ids, found)
}

// TestNativeTakes: the answer, or why a search goes on at query time.
func TestNativeTakes(t *testing.T) {
	p, rule := nativePlan(t)
	id := func(n uint64) string { return `"` + rule.ClusterID(n) + `"` }
	other := *rule
	other.Profile.Threshold = 0.9
	good, counted := groupsReply(20, id(1), id(2)), countedReply(30, 20, id(1), id(7))
	want := func(found int) string {
		return fmt.Sprintf(`{"facet_counts":[{"counts":[],"field_name":"k","stats":{"total_values":5}}],"found":%d,`+
			`"hits":[{"document":{"id":"0"},"highlights":[]},{"document":{"id":"1"},"highlights":[]}],"out_of":40,"page":1,`+
			`"request_params":{"collection_name":"news_1","per_page":2,"q":"a"},"search_cutoff":false,"search_time_ms":9}`, found)
	}
	refusal := `{"code":404,"error":"Could not find a field named neardup_cluster"}`
	for _, c := range []struct {
		name, more, groups, counted, want string
		fell                              adapters.Reason
	}{
		{"good", "", good, counted, want(20), ""},
		{"the engine's total", `,"neardup_totals":"engine"`, good, counted, want(30), ""},
		{"facets of groups", `,"neardup_counts":"groups"`, strings.Replace(good, `"facet_counts":[]`, `"facet_counts":[7]`, 1), countedReply(30, 20, id(1)), strings.Replace(want(20), `{"counts":[],"field_name":"k","stats":{"total_values":5}}`, "7", 1), ""},
		{"cut off", "", strings.Replace(good, `"search_cutoff":false`, `"search_cutoff":true`, 1), counted, strings.Replace(want(20), `"search_cutoff":false`, `"search_cutoff":true`, 1), ""},
		{"a group more than clusters", "", groupsReply(21, id(1), id(2)), counted, "", adapters.ReasonUnclustered},
		{"more clusters than groups", "", groupsReply(19, id(1), id(2)), counted, "", adapters.ReasonMoved},
		{"two groups more than clusters", "", groupsReply(22, id(1), id(2)), counted, "", adapters.ReasonMoved},
		{"a group without a key", "", groupsReply(20, id(1), ""), counted, "", adapters.ReasonUnclustered},
		{"a group of another rule", "", groupsReply(20, `"`+other.ClusterID(1)+`"`), counted, "", adapters.ReasonUnclustered},
		{"a large cluster of another rule", "", good, countedReply(30, 20, id(1), `"`+other.ClusterID(1)+`"`), "", adapters.ReasonUnclustered},
		{"a hit in its place", "", strings.Replace(good, `"highlights"`, `"curated":true,"highlights"`, 1), counted, "", "curated"},
		{"hits of a fused list", "", strings.ReplaceAll(good, `"highlights"`, `"hybrid_search_info":{},"highlights"`), counted, "", "not_understood"},
		{"another page", "", strings.Replace(good, `"page":1`, `"page":2`, 1), counted, "", "not_understood"},
		{"no groups", "", strings.Replace(good, `grouped_hits`, `hits`, 1), counted, "", "not_understood"},
		{"not counted", "", good, strings.Replace(counted, `"field_name":"neardup_cluster"`, `"field_name":"x"`, 1), "", "not_understood"},
		{"no facet", "", good, strings.Replace(counted, `total_values":20`, `x":20`, 1), "", "not_understood"},
		{"no group_by", "", refusal, counted, "", adapters.ReasonNativeRefused},
		{"no facet_by", "", good, refusal, "", adapters.ReasonNativeRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Dialect{}.ParseSearch(adapters.Class{Form: formMulti}, post(`/multi_search`,
				`{"searches":[{"collection":"news","q":"a","per_page":2,"facet_by":"k"`+c.more+`}]}`), p)
			var asks []string
			f := &fake{documents: []map[string]any{{"id": "a"}}}
			answer := expect.Value(adaptertest.Run(s, func(r *adapters.Request) *adapters.Reply {
				if asks = append(asks, string(r.Body)); len(asks) == 1 {
					return &adapters.Reply{Status: 200, Body: []byte(`{"results":[` + c.groups + `,` + c.counted + `]}`)}
				}
				return f.reply(r)
			}))(t)
			o := answer.Outcomes[0]
			switch {
			case c.fell != "":
				if len(asks) != 2 || strings.Contains(asks[1], "group_by") || o.Fell != c.fell || !o.Tried || o.Native {
					t.Errorf("want it to fall for %q: %+v, asks %q", c.fell, o, asks)
				}
				expect.Same(t, c.fell == adapters.ReasonUnclustered || c.fell == adapters.ReasonNativeRefused, o.Unfit, "remembered")
			default:
				expect.Same(t, `{"results":[`+c.want+`]}`, string(answer.Body), "")
				if !o.Native || !o.Exact || o.Raw != 30 || o.Folded != 10 || o.Target != "news" {
					t.Errorf("outcome %+v", o)
				}
			}
		})
	}
}

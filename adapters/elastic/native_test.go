package elastic

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
)

// nativePlan is a plan in which the engine may collapse.
func nativePlan(t testing.TB) (adapters.Plan, *adapters.Rule) {
	rule := exchangeRules(t)[0]
	rule.Native, rule.Clusters = true, true
	scope := adapters.Scope{Native: rule}
	scope.Add(rule)
	return adapters.Plan{Rules: adapters.Rules{rule}, MaxWindow: 1000, Scope: func(string) adapters.Scope { return scope }}, rule
}

func nativeSearch(t testing.TB, p adapters.Plan, d Dialect, query, body string) adapters.ParsedSearch {
	t.Helper()
	r := parseRequest("POST /news-1/_search?" + query + "\n" + body)
	return d.Search(d.Classify(r), r, p)
}

// TestNativeAsks: which searches the engine is asked to collapse, and how.
func TestNativeAsks(t *testing.T) {
	p, rule := nativePlan(t)
	mark := rule.ClusterMark()
	behind := mark[:3] + string(mark[3]+1)
	ours := func(filter string) string {
		return `"neardup_native":{"filter":` + filter + `,"aggs":{"alien":{"filter":{"bool":{"should":[{"bool":{"must_not":{"exists":{"field":"neardup_cluster"}}}},` +
			`{"range":{"neardup_cluster":{"lt":"` + mark + `"}}},{"range":{"neardup_cluster":{"gte":"` + behind + `"}}}]}}},` +
			`"clusters":{"cardinality":{"field":"neardup_cluster"}}}}`
	}
	const collapse = `"collapse":{"field":"neardup_cluster"}`
	all := `{"match_all":{}}`
	var many []string
	for i := range 11 {
		many = append(many, fmt.Sprintf(`"a%d":{"max":{"field":"n"}}`, i))
	}
	for _, c := range []struct{ query, body, want string }{
		{"", `{}`, `{` + collapse + `,"aggs":{` + ours(all) + `}}`},
		{"", ``, `{` + collapse + `,"aggs":{` + ours(all) + `}}`},
		{"size=3", `{"from":20,"query":{"match":{"a":"b"}}}`, `{"from":20,"query":{"match":{"a":"b"}},` + collapse + `,"aggs":{` + ours(all) + `}}`},
		{"", `{"aggregations":{"x":{"max":{"field":"n"}}}}`, `{"aggregations":{"x":{"max":{"field":"n"}},` + ours(all) + `},` + collapse + `}`},
		{"", `{"post_filter":{"term":{"n":1}},"sort":"n"}`, `{"post_filter":{"term":{"n":1}},"sort":"n",` + collapse + `,"aggs":{` + ours(`{"term":{"n":1}}`) + `}}`},
		{"neardup_totals=collapsed&neardup_threshold=0.6", `{"docvalue_fields":["n"]}`, `{"docvalue_fields":["n"],` + collapse + `,"aggs":{` + ours(all) + `}}`},
		{"neardup_threshold=0.61", `{}`, ""}, {"neardup_window=10", `{}`, ""}, {"neardup_keep=2", `{}`, ""}, {"neardup_expand", `{}`, ""},
		{"neardup_explain", `{}`, ""}, {"neardup=dry_run", `{}`, ""}, {"", `{"aggs":{` + strings.Join(many, ",") + `}}`, ""}, {"", `{"aggs":[]}`, ""},
		{"", `{"aggs":{},"aggregations":{}}`, ""}, {"", `{"sort":["n"],"search_after":[1]}`, ""}, {"", `{"min_score":1}`, ""}, {"", `{"profile":true}`, ""},
		{"", `{"query":{"knn":{"field":"v","query_vector":[1],"k":3}}}`, ""}, {"", `{"knn":{"field":"v","query_vector":[1],"k":3,"num_candidates":9}}`, ""},
		{"", `{"rescore":{"window_size":50,"query":{}}}`, ""}, {"", `{"pit":{"id":"x"}}`, ""}, {"terminate_after=3", `{}`, ""}, {"search_type=dfs_query_then_fetch", `{}`, ""},
		{"", `{"query":{"exists":{"field":"neardup_cluster"}}}`, ""}, {"", `{"fields":["title"]}`, ""}, {"", `{"docvalue_fields":["*"]}`, ""},
		{"", `{"aggs":{"neardup\u005fnative":{"max":{"field":"n"}}}}`, ""}, {"", `{"runtime_mappings":{"\u006Eeardup_cluster":{"type":"keyword"}}}`, ""},
		{"", `{"aggs":{"x":{"top_hits":{}}}}`, ""},
	} {
		s := nativeSearch(t, p, Dialect{}, c.query, c.body)
		if !s.Collapses() {
			t.Errorf("%s %s: left alone: %s", c.query, c.body, s.Reason)
			continue
		}
		ask, _, err := s.Exchange.Next(nil)
		if err != nil {
			t.Fatal(err)
		}
		if native := strings.Contains(string(ask.Body), `"collapse"`); native != (c.want != "") || native && string(ask.Body) != c.want {
			t.Errorf("%s %s: asks\n%s\nwant\n%s", c.query, c.body, ask.Body, c.want)
		}
		if strings.Contains(ask.RawQuery, "neardup") {
			t.Errorf("the engine gets our controls: %s", ask.RawQuery)
		}
	}
}

// nativeReply is a reply of the engine's: docs with so many aliens, and hits of the clusters.
func nativeReply(docs, aliens, clusters int, ids ...string) string {
	var hits []string
	for i, id := range ids {
		hits = append(hits, fmt.Sprintf(`{"_index":"news-1","_id":"%d","_score":1.5,"_source":{"n":1,"neardup_cluster":"x"},"fields":{"neardup_cluster":[%s]}}`, i, id))
	}
	return fmt.Sprintf(`{"took":3,"_shards":{"total":1,"failed":0},"hits":{"total":{"value":%d,"relation":"eq"},"max_score":1.5,"hits":[%s]},`+
		`"aggregations":{"max#own":{"value":7},"filter#neardup_native":{"doc_count":%d,"filter#alien":{"doc_count":%d},"cardinality#clusters":{"value":%d}}}}`,
		docs, strings.Join(hits, ","), docs, aliens, clusters)
}

// TestNativeTakes: the answer, or why a search goes on at query time.
func TestNativeTakes(t *testing.T) {
	p, rule := nativePlan(t)
	id := func(n uint64) string { return `"` + rule.ClusterID(n) + `"` }
	other := *rule
	other.Profile.Threshold = 0.9
	good := nativeReply(30, 0, 20, id(1), id(2))
	shown := func(value int) string {
		return fmt.Sprintf(`{"took":3,"_shards":{"total":1,"failed":0},"hits":{"total":{"value":%d,"relation":"eq"},"max_score":1.5,"hits":[`+
			`{"_index":"news-1","_id":"0","_score":1.5,"_source":{"n":1}},{"_index":"news-1","_id":"1","_score":1.5,"_source":{"n":1}}]},"aggregations":{"max#own":{"value":7}}}`, value)
	}
	for _, c := range []struct {
		name, query string
		status      int
		reply, want string // the answer, or else:
		fell        adapters.Reason
		refused     bool
	}{
		{"good", "", 200, good, shown(30), "", false},
		{"clusters for the total", "neardup_totals=collapsed", 200, good, shown(20), "", false},
		{"without ours none are left", "", 200, strings.Replace(good, `"max#own":{"value":7},`, "", 1), strings.Replace(shown(30), `,"aggregations":{"max#own":{"value":7}}`, "", 1), "", false},
		{"filter_path", "filter_path=hits.total", 200, good, `{"hits":{"total":{"value":30,"relation":"eq"}}}`, "", false},
		{"an alien", "", 200, nativeReply(30, 1, 20, id(1)), "", adapters.ReasonUnclustered, false},
		{"a hit without an id", "", 200, nativeReply(30, 0, 20, id(1), "null"), "", adapters.ReasonUnclustered, false},
		{"a hit of two clusters", "", 200, nativeReply(30, 0, 20, id(1)+","+id(2)), "", adapters.ReasonUnclustered, false},
		{"not counted", "", 200, strings.Replace(good, "neardup_native", "x", 1), "", "not_understood", false},
		{"a shard failed", "", 200, strings.Replace(good, `"failed":0`, `"failed":1`, 1), "", adapters.ReasonNativeRefused, false},
		{"broken", "", 200, good[:100], "", "not_understood", false},
		{"no mapping", "", 400, `{"error":"no mapping found for neardup_cluster in order to collapse on"}`, "", adapters.ReasonNativeRefused, false},
		{"forbidden", "", 403, `{"error":"collapse"}`, "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := nativeSearch(t, p, Dialect{}, c.query, `{"size":2,"aggs":{"own":{"max":{"field":"n"}}}}`).Exchange
			if strings.HasPrefix(c.name, "without") {
				x = nativeSearch(t, p, Dialect{}, c.query, `{"size":2}`).Exchange
			}
			if _, _, err := x.Next(nil); err != nil {
				t.Fatal(err)
			}
			ask, answer, err := x.Next(&adapters.Reply{Status: c.status, Body: []byte(c.reply)})
			switch {
			case c.refused:
				if !errors.Is(err, adapters.ErrRefused) {
					t.Errorf("got %v, want the engine's refusal", err)
				}
			case err != nil:
				t.Error(err)
			case c.fell != "":
				if ask == nil || strings.Contains(string(ask.Body), "collapse") || x.(*native).fell != c.fell {
					t.Errorf("fell for %q, want %q, and asks %v", x.(*native).fell, c.fell, ask)
				}
				if remembered := c.fell != "not_understood"; x.(*native).unfit != remembered {
					t.Errorf("remembered: %v", !remembered)
				}
			case answer == nil:
				t.Errorf("no answer: fell for %q", x.(*native).fell)
			default:
				if diff := cmp.Diff(c.want, string(answer.Body)); diff != "" {
					t.Error(diff)
				}
				if o := answer.Outcomes[0]; !o.Native || o.Exact || o.Raw != 30 || o.Target != "news-1" || o.Reason+o.Fell != "" {
					t.Errorf("outcome %+v", o)
				}
			}
		})
	}
}

// FuzzNativeReply: whatever the engine says, it is an answer without our fields or the search goes on.
func FuzzNativeReply(f *testing.F) {
	p, rule := nativePlan(f)
	good := nativeReply(30, 0, 20, `"`+rule.ClusterID(1)+`"`)
	f.Add(good)
	f.Add(nativeReply(0, 0, 0))
	f.Add(strings.ReplaceAll(good, `"fields"`, `"field"`))
	f.Fuzz(func(t *testing.T, reply string) {
		x := nativeSearch(t, p, Dialect{}, "neardup_totals=collapsed", `{"size":2}`).Exchange
		if _, _, err := x.Next(nil); err != nil {
			t.Fatal(err)
		}
		ask, answer, err := x.Next(&adapters.Reply{Status: 200, Body: []byte(reply)})
		if (ask == nil) == (answer == nil) || err != nil {
			t.Fatalf("%v %v %v", ask, answer, err)
		}
		if answer != nil && answer.Outcomes[0].Folded < 0 {
			t.Errorf("%+v", answer.Outcomes[0])
		}
	})
}

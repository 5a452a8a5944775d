package elastic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// nativePlan is a plan in which the engine may collapse.
func nativePlan(t testing.TB) (adapters.Plan, *rule.Rule) {
	r := exchangeRules(t)[0]
	r.Native, r.Clusters = true, true
	scope := adapters.Scope{Native: r}
	scope.Add(r)
	return adapters.Plan{Rules: rule.Rules{r}, MaxWindow: 1000, Scope: func(string) adapters.Scope { return scope }}, r
}

func searchNative(t testing.TB, p adapters.Plan, d Dialect, query, body string) *adapters.Searches {
	t.Helper()
	r := parseRequest("POST /news-1/_search?" + query + "\n" + body)
	return d.ParseSearch(d.Classify(r), r, p)
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
		{"neardup_keep=1&neardup=on&neardup_expand=off", `{}`, `{` + collapse + `,"aggs":{` + ours(all) + `}}`},
		{"neardup_threshold=0.61", `{}`, ""}, {"neardup_window=10", `{}`, ""}, {"neardup_keep=2", `{}`, ""}, {"neardup_expand", `{}`, ""},
		{"neardup_explain", `{}`, ""}, {"neardup=dry_run", `{}`, ""}, {"", `{"aggs":{` + strings.Join(many, ",") + `}}`, ""}, {"", `{"aggs":[]}`, ""},
		{"", `{"aggs":{},"aggregations":{}}`, ""}, {"", `{"sort":["n"],"search_after":[1]}`, ""}, {"", `{"min_score":1}`, ""}, {"", `{"profile":true}`, ""},
		{"", `{"query":{"knn":{"field":"v","query_vector":[1],"k":3}}}`, ""}, {"", `{"knn":{"field":"v","query_vector":[1],"k":3,"num_candidates":9}}`, ""},
		{"", `{"rescore":{"window_size":50,"query":{}}}`, ""}, {"", `{"pit":{"id":"x"}}`, ""}, {"terminate_after=3", `{}`, ""}, {"search_type=dfs_query_then_fetch", `{}`, ""},
		{"", `{"query":{"exists":{"field":"neardup_cluster"}}}`, ""}, {"", `{"fields":["title"]}`, ""}, {"", `{"docvalue_fields":["*"]}`, ""},
		{"", `{"aggs":{"neardup\u005fnative":{"max":{"field":"n"}}}}`, ""}, {"", `{"runtime_mappings":{"\u006Eeardup_cluster":{"type":"keyword"}}}`, ""},
		{"", `{"aggs":{"x":{"top_hits":{}}}}`, ""},
	} {
		s := searchNative(t, p, Dialect{}, c.query, c.body)
		if s.Left() {
			t.Errorf("%s %s: left alone: %s", c.query, c.body, s.Reason)
			continue
		}
		ask := firstAsk(t, s)
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
			body := `{"size":2,"aggs":{"own":{"max":{"field":"n"}}}}`
			if strings.HasPrefix(c.name, "without") {
				body = `{"size":2}`
			}
			answer, asked, err := answerNative(searchNative(t, p, Dialect{}, c.query, body), c.status, c.reply)
			if c.refused {
				if !errors.Is(err, adapters.ErrRefused) {
					t.Errorf("got %v, want the engine's refusal", err)
				}
				return
			}
			expect.OK(t, err)
			switch o := answer.Outcomes[0]; {
			case c.fell != "":
				if len(asked) != 2 || strings.Contains(asked[1], "collapse") || o.Fell != c.fell || !o.Tried {
					t.Errorf("fell for %q, want %q, and asks %v", o.Fell, c.fell, asked)
				}
				expect.Same(t, c.fell != "not_understood", o.Unfit, "remembered")
			case len(asked) != 1:
				t.Errorf("fell for %q", o.Fell)
			default:
				expect.Same(t, c.want, string(answer.Body), "")
				if !o.Native || o.Exact || o.Raw != 30 || o.Target != "news-1" || o.Reason+o.Fell != "" {
					t.Errorf("outcome %+v", o)
				}
			}
		})
	}
}

// answerNative answers a search that the engine is asked to collapse with its reply to that, and by an empty list after it.
func answerNative(s *adapters.Searches, status int, reply string) (answer *adaptertest.Answer, asked []string, err error) {
	answer, err = adaptertest.Run(s, func(ask *adapters.Request) *adapters.Reply {
		if asked = append(asked, string(ask.Body)); len(asked) == 1 {
			return &adapters.Reply{Status: status, Body: []byte(reply)}
		}
		return fakeReply(200, []byte(`{"hits":{"total":{"value":0,"relation":"eq"},"hits":[]}}`))
	})
	return answer, asked, err
}

// TestNativeCountsTooMuch: where the engine's breaker refuses to count groups, the search is collapsed at query time. All other refusals are the answer.
func TestNativeCountsTooMuch(t *testing.T) {
	const breaker = `{"error":{"root_cause":[],"type":"search_phase_execution_exception","caused_by":{"type":"circuit_breaking_exception"}},"status":429}`
	p, _ := nativePlan(t)
	for _, c := range []struct {
		name, query string
		status      int
		reply       string
		falls       bool
	}{
		{"counting", "neardup_counts=groups", 429, breaker, true},
		{"counting, by another status", "neardup_counts=groups", 503, breaker, true},
		{"not counting", "", 429, breaker, false},
		{"a full queue", "neardup_counts=groups", 429, `{"error":{"type":"es_rejected_execution_exception"},"status":429}`, false},
		{"forbidden", "neardup_counts=groups", 403, breaker, false},
	} {
		answer, asked, err := answerNative(searchNative(t, p, Dialect{}, c.query, `{"size":2,"aggs":{"own":{"terms":{"field":"n"}}}}`), c.status, c.reply)
		if !c.falls {
			if !errors.Is(err, adapters.ErrRefused) || len(asked) != 1 {
				t.Errorf("%s: got %v after %d requests, want the engine's refusal", c.name, err, len(asked))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if o := answer.Outcomes[0]; o.Fell != adapters.ReasonNativeRefused || !o.Tried || o.Unfit || !o.Costly {
			t.Errorf("%s: %+v", c.name, o)
		}
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
		for _, search := range []struct{ query, body string }{
			{"neardup_totals=collapsed", `{"size":2}`}, {"neardup_counts=groups", `{"size":2,"aggs":{"own":{"terms":{"field":"n"}}}}`},
		} {
			answer, _, err := answerNative(searchNative(t, p, Dialect{}, search.query, search.body), 200, reply)
			expect.OK(t, err)
			if answer.Outcomes[0].Folded < 0 || answer.Outcomes[0].Native && !json.Valid(answer.Body) {
				t.Errorf("%+v: %s", answer.Outcomes[0], answer.Body)
			}
		}
	})
}

package elastic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/rule"
)

// pickedQueries are queries of all kinds; within each another scorer may be at work when few documents are left.
var pickedQueries = []string{
	``, `{"match":{"body":{"query":"%s","_name":"m"}}}`, `{"match":{"body":{"query":"%s","minimum_should_match":2}}}`,
	`{"multi_match":{"query":"%s","fields":["title^3","body"],"type":"most_fields"}}`,
	`{"dis_max":{"tie_breaker":0.3,"queries":[{"match":{"body":"%s"}},{"match":{"title":"alpha t1 t2"}},{"term":{"host":"a"}}]}}`,
	`{"bool":{"should":[{"match":{"body":"%s"}},{"range":{"n":{"gte":5,"_name":"r"}}},{"term":{"host":{"value":"b","boost":0.7}}}]}}`,
	`{"bool":{"must":[{"bool":{"must":[{"match":{"title":"alpha"}},{"match":{"body":"%s"}}]}}],"should":[{"term":{"host":"c"}}],"must_not":[{"term":{"n":3}}]}}`,
	`{"function_score":{"query":{"match":{"body":"%s"}},"functions":[{"field_value_factor":{"field":"n","missing":1,"modifier":"ln2p"}},{"filter":{"term":{"host":"a"}},"weight":3}],"score_mode":"sum","boost_mode":"multiply"}}`,
	`{"script_score":{"query":{"match":{"body":"%s"}},"script":{"source":"_score * 0.3 + doc['n'].value"}}}`,
	`{"more_like_this":{"fields":["body"],"like":"%s","min_term_freq":1,"min_doc_freq":1}}`,
}

// TestRealPickedPages: the hits of a deep page, or of one of representatives that stand far apart, picked by a filter beside the client's
// query, are those read in their row, to the byte: with the same scores, names of matching clauses, sort values and sources.
func TestRealPickedPages(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		r := seeded(t)
		l.fillPages(r, 300)
		pick := func(list ...string) string { return list[r.IntN(len(list))] }
		picked := 0
		for tried := 0; tried < searches(60) || picked < searches(60)/4 && tried < 60; tried++ { // a short run goes on until it has picked some
			matched := pageRule(l)
			matched.Window, matched.DateField = 500, "at"
			query := pick(pickedQueries...)
			if strings.Contains(query, "%s") {
				query = fmt.Sprintf(query, sentence(r.IntN(12), 0, 6))
			}
			body := `"query":` + query
			if query == "" {
				body = `"timeout":"1m"`
			}
			for _, part := range []string{
				pick(``, ``, `"sort":["n"]`, `"sort":["_score",{"at":"desc"}]`, `"sort":[{"at":"desc"},"_score"],"track_scores":true`),
				pick(``, ``, `"min_score":0.5`, `"post_filter":{"range":{"n":{"lt":17,"_name":"p"}}}`), pick(``, ``, `"track_scores":true`),
				pick(``, `"aggs":{"a":{"terms":{"field":"host"}}}`), pick(``, `"version":true`, `"indices_boost":[{"`+l.name+`1":1.3}]`),
				pick(``, ``, `"track_total_hits":20`, `"track_total_hits":false`),
			} {
				if key, _, _ := strings.Cut(part, ":"); part != "" && !strings.Contains(body, key+":") {
					body += "," + part
				}
			}
			target, params, from, scattered := l.name+pick("1", "1", "1", "*"), "", 40+r.IntN(80), r.IntN(3) == 0
			if scattered {
				matched.Choice, target, from = rule.Choice{By: rule.ByNewest}, l.name+"*", r.IntN(40)
				body, params = randomSearch(r)
			}
			request := requestFor("POST", "/"+target+"/_search", params, fmt.Sprintf(`{%s"size":%d,"from":%d}`,
				strings.TrimPrefix(body+",", ","), 1+r.IntN(12), from))
			answers := []string{}
			for _, picks := range []bool{true, false} {
				plan := planOf(rule.Rules{matched}, scattered, 0.3)
				parsed := l.d.ParseSearch(l.d.Classify(request), request, plan)
				if parsed.Left() {
					t.Fatal(parsed.Reason)
				}
				search := readSearch(parsed)
				search.picks, search.numbers = search.picks && picks, search.numbers && picks
				answer, err := adaptertest.Run(parsed, func(ask *adapters.Request) *adapters.Reply {
					if strings.Contains(string(ask.Body), `{"ids":{"values":`) || strings.Contains(string(ask.Body), `{"terms":{"_seq_no":[`) {
						if picked++; !picks {
							t.Errorf("picked: %s", ask.Body)
						}
					}
					return l.send(ask)
				})
				if err != nil {
					t.Fatalf("%s: %v", request.Body, err)
				}
				answers = append(answers, comparable(string(answer.Body)))
			}
			if answers[0] != answers[1] {
				t.Fatalf("%s?%s %s:\n picked %s\n read   %s", target, params, request.Body, answers[0], answers[1])
			}
		}
		if t.Logf("%d pages were picked", picked); picked < searches(60)/4 {
			t.Error("few of them")
		}
	})
}

func readSearch(parsed *adapters.Searches) *clientSearch { return parsed.List[0].(*clientSearch) }

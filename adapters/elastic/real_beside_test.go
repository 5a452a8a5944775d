package elastic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
)

// TestRealNeighboursBesideHits asks for neighbours with hits elsewhere in the reply, which show what the client's own hits
// do: they are the engine's, of as many neighbours as the client asked for, and the list is collapsed.
func TestRealNeighboursBesideHits(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		r := seeded(t)
		index := l.name + "v"
		l.fillVectors(r, index, 80, 1)
		rule := pageRule(l)
		rule.DateField = "at"
		for _, choice := range []adapters.Choice{{}, {By: adapters.ByNewest}} {
			rule.Choice = choice
			for _, fields := range []string{``, `,"fields":["at"]`, `,"docvalue_fields":["at"]`} {
				for _, from := range []int{0, 3} {
					near := nearby{form: "knn", vector: "[0.4,0.5,0.6,0.5]", k: 20, candidates: 120}
					if l.d.OpenSearch {
						near.form = "opensearch"
					}
					body := near.of(near.k, from, 6, fields+`,"aggs":{"best":{"top_hits":{"size":3,"_source":["title"]}},`+
						`"n":{"value_count":{"field":"at"}}}`)
					request := requestFor("POST", "/"+index+"/_search", "", body)
					want := after(l.own(request), `"aggregations":`)
					answer, err := l.answer(request, planOf(adapters.Rules{rule}, true, 0.3))
					if err != nil {
						t.Fatalf("%s: %v", body, err)
					}
					if got := after(string(answer.Body), `"aggregations":`); got != want || want == "" {
						t.Errorf("%s: got\n%s\nwant\n%s", body, got, want)
					}
					o := answer.Outcomes[0]
					if o.Folded == 0 || len(fakeHits(answer.Body)[0]) != 6 {
						t.Errorf("%s: %s", body, fmt.Sprintf("%+v: %s", o, answer.Body))
					}
				}
			}
		}
	})
}

// after returns what follows a word.
func after(text, word string) string {
	_, rest, _ := strings.Cut(text, word)
	return rest
}

package typesense

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// walked is how many documents are walked over.
const walked = 450

// Walked page by page a long list shows every group once and in order, whatever is shown of each, in three requests a page at most (sketches, the
// texts of hits without one, the page's hits); and what is deleted in between changes the pages that follow as it does the engine's own.
func TestRealWalks(t *testing.T) {
	seed := effort.Seed(t)
	r := rand.New(rand.NewPCG(seed, 7))
	b := newBench(t, vectors, "body")
	b.loadVectors(r, walked, 0.6)
	for _, c := range []struct {
		name    string
		perPage int
		window  int
		deletes bool
		rule    choice
	}{
		{name: "by rank", perPage: 100, window: 10_000},
		{name: "newest", perPage: 50, window: 10_000, rule: choice{rule: rule.Rule{Choice: rule.Choice{By: rule.ByNewest}}}},
		{name: "newest of a part", perPage: 45, window: 300, rule: choice{rule: rule.Rule{Choice: rule.Choice{By: rule.ByNewest}}}},
		{name: "components", perPage: 70, window: 400, rule: choice{rule: rule.Rule{Transitive: true}}},
		{name: "within, kept", perPage: 100, window: 2000, deletes: true, rule: choice{rule: rule.Rule{
			Choice: rule.Choice{By: rule.ByLongest}, Together: rule.Together{Within: 20 * 3_600_000, WithinField: "at"},
		}}},
		{name: "deleted in between", perPage: 60, window: 250, deletes: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rule.rule.DateField = "at"
			c.rule.put(b.rule)
			if b.rule.Profile.Keep = 0; c.name == "within, kept" {
				b.rule.Profile.Keep = 2
			}
			b.rule.Window = c.window
			b.plan = planFor(adapters.Scope{Widening: rerank.Widening{Rate: 0.6}, Lacking: true}, b.rule)
			b.plan.MaxWindow = 10_000
			params := url.Values{"q": {"alpha"}, "query_by": {"title"}, "sort_by": {"n:desc"}, "include_fields": {"id"}, "per_page": {fmt.Sprint(c.perPage)}}
			var x expected
			for page := 1; ; page++ {
				params.Set("page", fmt.Sprint(page))
				q := trial{params: params, window: c.window, choice: c.rule}
				if page == 1 || c.deletes && page < 5 {
					x = b.expect(q, b.send(b.request("GET", "/collections/NAME/documents/search?"+params.Encode(), "")).Body)
				}
				var want []string
				for _, rank := range x.shown[min((page-1)*c.perPage, len(x.shown)):min(page*c.perPage, len(x.shown))] {
					want = append(want, x.list[rank].id)
				}
				got := ids(t, []byte(b.must(200)(b.through("GET", "/collections/NAME/documents/search?"+params.Encode(), ""))))
				expect.Must(t, want, got, "page %d, %+v", page, b.outcome)
				if o := b.outcome; o.Reason != "" || o.Rounds > 3 && !b.rule.Choice.Ranked() {
					t.Errorf("page %d: %+v", page, o)
				}
				if len(got) == 0 {
					return
				}
				for range 9 {
					if c.deletes && page < 4 {
						b.direct("DELETE", fmt.Sprintf("/collections/NAME/documents/d%d", r.IntN(walked)), "")
					}
				}
			}
		})
	}
}

// Pages of neighbours are those of one list, with whatever choices, whether or not anything in it folds.
func TestRealNeighbours(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 8))
	b := newBench(t, vectors, "body")
	b.loadVectors(r, 150, 0.4)
	key, sum := b.searchKey()(nil), sums{left: map[adapters.Reason]int{}}
	for _, choose := range []rule.Rule{
		{},
		{Profile: rerank.Profile{Keep: 100}},
		{Profile: rerank.Profile{Keep: 100}, Choice: rule.Choice{By: rule.ByNewest}}, // nothing folds, but places are swapped
		{Choice: rule.Choice{By: rule.ByOldest}, CollapsedTotals: true},
		{Transitive: true},
		{CollapsedTotals: true},
		{Together: rule.Together{Same: []string{"nosuch"}}}, // nothing folds
	} {
		choose.DateField = "at"
		for _, of := range []struct{ k, perPage int }{{2, 3}, {60, 3}, {60, 40}} {
			for page := range 2 {
				b.try(trial{
					params: url.Values{"q": {"*"}, "vector_query": {fmt.Sprintf("v:([0.5,0.4,0.6,0.5], k:%d)", of.k)},
						"page": {fmt.Sprint(page + 1)}, "per_page": {fmt.Sprint(of.perPage)}, "include_fields": {"id,n"}},
					window: 500, least: 100 * r.IntN(2), choice: choice{rule: choose},
				}, r, key, &sum)
			}
		}
	}
	if sum.folded == 0 || len(sum.left) > 0 {
		t.Errorf("%+v", sum)
	}
}

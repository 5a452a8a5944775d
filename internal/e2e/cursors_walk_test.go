package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// sorts of a walk. All but the last lead to each document by itself.
var sorts = []string{
	`["id"]`, `[{"place":"desc"},{"id":"asc"}]`, `[{"day":{"order":"desc"}},{"id":{"order":"desc"}}]`, `[{"word":"asc"},"id"]`,
	`[{"share":"asc"},"id"]`, `["_score",{"id":"asc"}]`, `[{"word":{"order":"desc","missing":"_first"}},{"place":"asc"},"id"]`,
}

// TestCursorWalks walks lists by search_after, page sizes and windows at random, and holds them against the definition over the
// list that the engine itself gives. The long form has every sort under every window.
func TestCursorWalks(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct := api{e, e.URL}
			r := rand.New(rand.NewPCG(7, uint64(len(kind))))
			pages, once := 0, 0
			for round, window := range []int{10, 60, 1000, 10_000} {
				if round > 2 && !soaking() {
					break
				}
				match := fmt.Sprintf("walk%d-*", round)
				index := fmt.Sprintf("walk%d-1", round)
				n := scale([]int{100, 200, 300, 0}[round], []int{120, 300, 500, 1500}[round])
				list := leaves(r, n, 0.4)
				keep := 1 + round%2
				base := serveFile(t, walking(t, e, walkRule{match: match, window: window, limits: "{max_window: 10000}", more: fmt.Sprintf("keep: %d", keep)}))
				plant(t, direct, base, index, 1+round%3, list)
				j := newJudge(t, direct, list, window)
				j.keep = keep
				for i, sort := range sorts {
					if n > 1000 && i != round || !soaking() && i%3 != round {
						continue
					}
					query := `{"match_all":{}}`
					if strings.Contains(sort, "_score") {
						query = fmt.Sprintf(`{"match":{"body":%q}}`, list[3].Body)
					}
					raw := walk{e: e, bases: always(e.URL), index: index, query: query, sort: sort, size: 2000}.run(t)
					want := j.collapsed(raw.ids)
					for _, size := range []int{1 + r.IntN(5), 10, 1 + r.IntN(250)} {
						if size < 7 && n > 200 {
							size = 7
						}
						w := walk{e: e, bases: always(base), index: index, query: query, sort: sort, size: size, pit: r.IntN(2) == 0}
						got := w.run(t)
						same(t, want, got.ids, "window %d, keep %d, sort %s, size %d, pit %v, headers %v", window, keep, sort, size, w.pit, got.headers[:min(3, len(got.headers))])
						got.full(t, size)
						for _, h := range got.headers {
							if pages++; strings.Contains(h, "; rounds=1; ") {
								once++
							}
						}
						if got.lost() > 0 {
							t.Errorf("sort %s, size %d: %d pages lost their cursor", sort, size, got.lost())
						}
					}
				}
			}
			if once*10 < pages*9 {
				t.Errorf("only %d pages of %d took one request", once, pages)
			}
			t.Logf("%d pages of %d took one request", once, pages)
		})
	}
}

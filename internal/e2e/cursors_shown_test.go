package e2e

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestCursorControls walks lists under every control and beside what a client may ask for with its hits.
func TestCursorControls(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	direct := api{e, e.URL}
	r := rand.New(rand.NewPCG(41, 1))
	list := leaves(r, scale(130, 300), 0.5)
	one := serveFile(t, walking(t, e, walkRule{match: "shown-*", window: 1000}))
	other := serveFile(t, walking(t, e, walkRule{match: "shown-*", window: 1000}))
	plant(t, direct, one, "shown-1", 2, list)
	several := func() string { return []string{one, other}[r.IntN(2)] }
	plain := walk{e: e, bases: always(e.URL), index: "shown-1", query: `{"match_all":{}}`, sort: `[{"place":"asc"},"id"]`, size: 2000}
	raw := plain.run(t).ids
	for _, c := range []struct {
		url, more    string
		window, keep int
		threshold    float64
		dry          bool
	}{
		{more: `,"_source":["id"]`},
		{more: `,"fields":["*"],"_source":false,"docvalue_fields":["place"]`},
		{url: "neardup_keep=3", keep: 3},
		{more: `,"neardup_keep":2`, keep: 2},
		{url: "neardup_window=40", window: 40},
		{url: "neardup_threshold=0.95", threshold: 0.95},
		{url: "neardup=dry_run&neardup_window=20", dry: true},
		{url: "neardup_totals=collapsed"},
		{url: "neardup_totals=collapsed&neardup_window=40", window: 40},
		{url: "neardup_expand=source&neardup_explain=true"},
		{url: "neardup_expand=source&neardup_window=40", more: `,"_source":["id"]`, window: 40},
		{more: `,"aggs":{"n":{"max":{"field":"place"}}},"track_total_hits":true`},
		{more: `,"track_total_hits":false`},
		{url: "filter_path=pit_id,hits.hits._id,hits.hits.sort"},
	} {
		for _, bases := range []func() string{always(one), several} {
			j := newJudge(t, direct, list, cmp.Or(c.window, 1000))
			j.keep, j.threshold = cmp.Or(c.keep, j.keep), cmp.Or(c.threshold, j.threshold)
			want, verb := j.collapsed(raw), "collapsed; "
			if c.dry {
				want, verb = raw, "dry-run; "
			}
			w := plain
			w.bases, w.size, w.more, w.url, w.pit = bases, 13, c.more, c.url, r.IntN(2) == 0
			got := w.run(t)
			if diff := gocmp.Diff(want, got.ids); diff != "" {
				t.Errorf("%s%s: headers %q: %s", c.url, c.more, got.headers[:3], diff)
			}
			for i, h := range got.headers {
				if !strings.HasPrefix(h, verb) || strings.Contains(h, "lost") {
					t.Errorf("%s%s: header %q", c.url, c.more, h)
				}
				if c.url == "neardup_totals=collapsed" && got.totals[i] != len(want) {
					t.Errorf("page %d has the total %d, want %d", i+1, got.totals[i], len(want))
				}
			}
		}
	}
}

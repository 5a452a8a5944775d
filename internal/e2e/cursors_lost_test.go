package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// TestCursorSeveralSidecars walks lists whose pages go to several sidecars in turn or at random, to sidecars that can remember
// next to nothing, that forget at once, and that are started anew between pages: every group comes once, and none is missing.
func TestCursorSeveralSidecars(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	direct := api{e, e.URL}
	r := rand.New(rand.NewPCG(23, 10))
	list := leaves(r, scale(250, 700), 0.5)
	rule := func(window int, limits string) string {
		return config(t, e, setup{match: "several-*", window: window, limits: limits})
	}
	for _, window := range []int{100, 1000} {
		one, other := serveFile(t, rule(window, "")), serveFile(t, rule(window, ""))
		tiny := serveFile(t, rule(window, "{cursor_memory: 3000}"))
		hasty := serveFile(t, rule(window, "{cursor_ttl: 1ms}"))
		index := fmt.Sprint("several-", window)
		plant(t, direct, one, index, 2, list)
		j := newJudge(t, direct, list, window)
		cases := map[string]func() string{
			"at random":   func() string { return []string{one, other}[r.IntN(2)] },
			"tiny":        always(tiny),
			"hasty":       func() string { time.Sleep(2 * time.Millisecond); return hasty },
			"all of them": func() string { return []string{one, other, tiny, hasty}[r.IntN(4)] },
		}
		if window == 100 {
			file := rule(window, "")
			cases["started anew"] = func() string { return serveFile(t, file) }
		}
		for name, bases := range cases {
			for _, pit := range []bool{false, true} {
				sort := sorts[r.IntN(5)]
				w := walk{e: e, bases: bases, index: index, query: `{"match_all":{}}`, sort: sort, size: 20 + r.IntN(15), pit: pit}
				if name == "started anew" {
					w.size = 60
				}
				raw := walk{e: e, bases: always(e.URL), index: index, query: w.query, sort: sort, size: 2000}.run(t)
				got := w.run(t)
				same(t, j.collapsed(raw.ids), got.ids, "%s, window %d, pit %v, sort %s: headers %q", name, window, pit, sort, got.headers)
				got.full(t, w.size)
				if got.lost() > 0 {
					t.Errorf("%s, window %d: %d pages of %d say that the cursor was lost, though the window holds it", name, window, got.lost(), len(got.pages))
				}
			}
		}
	}
}

// TestCursorBehindTheLastValue walks lists sorted by fields that many documents lack, which sort behind all others. OpenSearch passes over
// them behind the last value where it is asked not to count; pages are read in several readings here, and most forget the cursor at once.
func TestCursorBehindTheLastValue(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		list := leaves(rand.New(rand.NewPCG(23, 0)), 250, 0.5)
		file := func(limits string) string {
			return config(t, e, setup{match: "behind-*", limits: limits})
		}
		bases := []string{serveFile(t, file("{cursor_ttl: 1ms}")), serveFile(t, file(""))}
		plant(t, api{e, e.URL}, bases[0], "behind-1", 2, list)
		j := newJudge(t, api{e, e.URL}, list, 1000)
		for i := range 12 {
			base := bases[i/2%2]
			w := walk{e: e, index: "behind-1", query: `{"match_all":{}}`, sort: `[{"word":"asc"},"id"]`, size: 16 + i, pit: i%2 == 1}
			w.bases = func() string { time.Sleep(2 * time.Millisecond); return base }
			raw := walk{e: e, bases: always(e.URL), index: w.index, query: w.query, sort: w.sort, size: 2000}.run(t)
			got := w.run(t)
			same(t, j.collapsed(raw.ids), got.ids, "pages of %d, pit %v: headers %q", w.size, w.pit, got.headers)
		}
	})
}

// represented reports whether a document is shown, or near to one that is.
func (o *oracle) represented(id string, shown []string) bool {
	return slices.ContainsFunc(shown, func(s string) bool { return s == id || o.near(o.sketches[id], o.sketches[s]) })
}

// again counts the documents that are shown though they, or one near to them, were shown before.
func again(o *oracle, ids []string) (n int) {
	for i, id := range ids {
		if o.represented(id, ids[:i]) {
			n++
		}
	}
	return n
}

// TestCursorMovingList deletes and adds documents between the pages of a walk without a point in time. What stays in the index is
// shown, or near to something that was.
func TestCursorMovingList(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	direct := api{e, e.URL}
	r := rand.New(rand.NewPCG(9, 1))
	for round, limits := range []string{"", "", "{cursor_memory: 3000}"} {
		index := fmt.Sprintf("moving%d-1", round)
		list := leaves(r, 400, 0.5)
		base := serve(t, e, setup{match: fmt.Sprintf("moving%d-*", round), limits: limits})
		plant(t, direct, base, index, 2, list[:300])
		j := newJudge(t, direct, list, 1000)
		gone, next := map[string]bool{}, 300
		var late []string
		got := walk{e: e, bases: always(base), index: index, query: `{"match_all":{}}`, sort: `["id"]`, size: 15, each: func(page int) {
			var b strings.Builder
			for range 5 {
				id := list[r.IntN(300)].ID
				gone[id] = true
				fmt.Fprintf(&b, "{\"delete\":{\"_index\":%q,\"_id\":%q}}\n", index, id)
			}
			if round < 2 && next < len(list) { // at the end of the list
				fmt.Fprintf(&b, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n{\"id\":%q,\"title\":\"leaf\",\"body\":%q}\n", index, list[next].ID, list[next].ID, list[next].Body)
				late = append(late, list[next].ID)
				next++
			}
			call(t, e, "POST", base+"/_bulk?refresh=true", b.String()).want(t, 200)
		}}.run(t)
		missing := 0
		for _, id := range append(leafIDs(list[:300]), late...) {
			if !gone[id] && !j.represented(id, got.ids) {
				missing++
			}
		}
		if missing > 0 && round < 2 { // a walk found out anew goes by the leaders that are left
			t.Errorf("%d documents that stayed are neither shown nor near to what was", missing)
		}
		if missing > 3 {
			t.Errorf("rebuilt: %d documents that stayed are neither shown nor near to what was", missing)
		}
		if n := again(j, got.ids); n > 0 && round < 2 {
			t.Errorf("%d of %d are shown again", n, len(got.ids))
		}
	}
}

func leafIDs(list []leaf) (ids []string) {
	for _, l := range list {
		ids = append(ids, l.ID)
	}
	return ids
}

// TestCursorTies sorts by what many documents share, without anything to tell them apart: what the engine's own cursor gives,
// less what folds into something shown.
func TestCursorTies(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	direct := api{e, e.URL}
	r := rand.New(rand.NewPCG(4, 4))
	list := leaves(r, 300, 0.4)
	one := serve(t, e, setup{match: "ties-*"})
	other := serve(t, e, setup{match: "ties-*"})
	plant(t, direct, one, "ties-1", 1, list)
	j := newJudge(t, direct, list, 1000)
	places := map[string]int{}
	for _, l := range list {
		places[l.ID] = l.Place
	}
	several := func() string { return []string{one, other}[r.IntN(2)] }
	for _, c := range []struct {
		name  string
		bases func() string
		pit   bool
		again int // at most: the ranks before a cursor do not tell where in a place each page ended
	}{{"several", several, false, len(list) / 50}, {"one", always(one), false, 0}, {"several in a point in time", several, true, 0}} {
		w := walk{e: e, bases: c.bases, index: "ties-1", query: `{"match_all":{}}`, sort: `["place"]`, size: 9, pit: c.pit}
		got := w.run(t)
		if n := again(j, got.ids); n > c.again {
			t.Errorf("%s: %d of %d are shown again", c.name, n, len(got.ids))
		}
		if !slices.IsSortedFunc(got.ids, func(a, b string) int { return places[a] - places[b] }) {
			t.Errorf("%s: the order is not the engine's", c.name)
		}
		if w.bases, w.size = always(e.URL), 1000; c.pit { // where the engine tells ties apart
			same(t, j.collapsed(w.run(t).ids), got.ids, "%s", c.name)
		}
		if c.name != "one" {
			continue
		}
		// Behind each page the engine goes on with the next place: what it would have shown from there is shown, or near to something.
		after, at := -1, 0
		for _, n := range got.pages {
			at += n
			last := places[got.ids[at-1]]
			for _, l := range list {
				if l.Place > after && l.Place < last && !j.represented(l.ID, got.ids[:at]) {
					t.Errorf("%s of place %d is neither shown nor near to what is", l.ID, l.Place)
				}
			}
			after = last
		}
	}
}

// TestCursorControls walks lists under every control and beside what a client may ask for with its hits.
func TestCursorControls(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	direct := api{e, e.URL}
	r := rand.New(rand.NewPCG(41, 1))
	list := leaves(r, scale(130, 300), 0.5)
	one := serve(t, e, setup{match: "shown-*"})
	other := serve(t, e, setup{match: "shown-*"})
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
			expect.Same(t, want, got.ids, "%s%s: headers %q", c.url, c.more, got.headers[:3])
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

// TestPointInTimeTies: every hit that is shown in a client's point in time has the sort values that the engine itself gives it there, also
// where the page stands in one of the indices alone and its hits are read apart. Elasticsearch tells ties apart by the number of the shard;
// OpenSearch adds no such value.
func TestPointInTimeTies(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		direct := api{e, e.URL}
		through := serve(t, e, setup{match: "ties-*"})
		var lines strings.Builder
		for i := range 106 {
			index := "ties-a"
			if i >= 100 {
				index = "ties-b"
			}
			text := strings.Repeat("the ferry stays at its pier ", 3)
			if i%3 != 0 {
				text = fmt.Sprintf("a%d b%d c%d d%d e%d f%d g%d h%d i%d j%d", i, i, i, i, i, i, i, i, i, i)
			}
			fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n{\"title\":\"the river\",\"body\":%q,\"n\":%d}\n", index, i, text, i)
		}
		for name, shards := range map[string]int{"ties-a": 1, "ties-b": 2} {
			direct.drop(t, name)
			call(t, e, "PUT", through+"/"+name, fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0}}`, shards)).want(t, 200)
		}
		api{e, through}.loadLines(t, "", lines.String())
		pit := openPIT(t, e, e.URL, "ties-a,ties-b")
		defer closePIT(t, e, pit)
		type listed struct {
			Hits struct {
				Hits []struct {
					ID   string          `json:"_id"`
					Sort json.RawMessage `json:"sort"`
				}
			}
		}
		ask := func(base, body string) (l listed, header string) {
			r := call(t, e, "POST", base+"/_search", body).want(t, 200)
			decode(t, r.body, &l)
			return l, r.header.Get("Neardup")
		}
		apart := 0
		for _, more := range []string{``, `,"_source":false,"fields":["title","n"]`, `,"_source":["n"]`, `,"track_total_hits":false,"_source":false,"fields":["n"]`} {
			for _, after := range []int{-1, 60, 97, 99, 101} {
				for _, size := range []int{2, 6, 120} {
					common := fmt.Sprintf(`"query":{"match":{"title":"river"}},"pit":{"id":%q},"sort":[{"n":"asc"}]%s`, pit, more)
					own, cursor := map[string]string{}, ""
					all, _ := ask(e.URL, `{"size":200,`+common+`}`)
					for i, hit := range all.Hits.Hits {
						if own[hit.ID] = string(hit.Sort); i == after {
							cursor = `,"search_after":` + string(hit.Sort)
						}
					}
					shown, header := ask(through, fmt.Sprintf(`{"size":%d,%s%s}`, size, common, cursor))
					if !strings.HasPrefix(header, "collapsed") || len(shown.Hits.Hits) == 0 {
						t.Fatalf("Neardup: %s, %d hits", header, len(shown.Hits.Hits))
					}
					if !strings.Contains(header, "rounds=1;") {
						apart++
					}
					for _, hit := range shown.Hits.Hits {
						same(t, own[hit.ID], string(hit.Sort), "%s%s, %d hits (%s): the sort values of %s", more, cursor, size, header, hit.ID)
					}
				}
			}
		}
		if apart == 0 {
			t.Error("no page was read in several rounds")
		}
	})
}

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// TestNativeGuards takes the id from a document, or gives it one of another rule: nothing is hidden for it, on any page.
func TestNativeGuards(t *testing.T) {
	other := nativeRule(t)
	other.Profile.Threshold = 0.5
	if other.ClusterMark() == nativeRule(t).ClusterMark() {
		t.Fatal("the mark does not tell rules apart")
	}
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		c := newClustered(t, e, "native-guard", cliquesOnly(t))
		whole, raw := maps.Clone(c.ids), c.raw(t, c.index, "the")
		for _, g := range []struct {
			name string
			// change gives the documents of the ranks in the engine's list other ids.
			change func(rank int, id string) string
		}{
			{"the first", func(rank int, id string) string { return either(rank == 0, "", id) }},
			{"two of another rule in one cluster", func(rank int, id string) string { return either(rank == 40 || rank == 41, other.ClusterID(7), id) }},
			{"no id at all", func(rank int, id string) string { return either(rank == 5, "x", id) }},
		} {
			t.Run(g.name, func(t *testing.T) {
				for rank, id := range raw {
					c.ids[id] = g.change(rank, whole[id])
				}
				c.write(t, c.list)
				want := c.collapsed(c.raw(t, c.index, "the"))            // what is deleted changes scores
				fresh := api{e, serveFile(t, nativeFile(t, e, c.index))} // which remembers nothing
				for _, from := range []int{30, 0} {
					p := fresh.search(t, c.index, "the", from, 10, "")
					isntNative(t, p.outcome, string(adapters.ReasonUnclustered))
					same(t, want[from:from+10], p.ids, "from %d: the definition (-), the page (+)", from)
				}
			})
		}
	})
}

func either(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// TestNativeUndeclared: an index without our field is collapsed at query time.
func TestNativeUndeclared(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "native-bare", cliquesOnly(t)
		direct, through := api{e, e.URL}, api{e, serveFile(t, nativeFile(t, e, "native-bare"))}
		direct.create(t, index)
		direct.load(t, index, list)
		o := newOracle(t, direct, list)
		p := through.search(t, index, "the", 0, 10, "")
		isntNative(t, p.outcome, string(adapters.ReasonNativeRefused))
		same(t, o.list(t, index, "the")[:10], p.ids, "")
		empty := through.search(t, index, "nothingmatchesthis", 0, 10, "")
		if len(empty.ids) != 0 {
			t.Errorf("%q: %s", empty.ids, empty.outcome)
		}
	})
}

// TestNativeControls: what the engine's collapse can't do takes query time, without a reason: it is what the client asked for.
func TestNativeControls(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		c := newClustered(t, e, "native-controls", cliquesOnly(t))
		for _, control := range []string{
			"&neardup_threshold=0.9", "&neardup_keep=2", "&neardup_window=100", "&neardup_expand=ids", "&neardup_explain=true",
		} {
			isntNative(t, c.through.search(t, c.index, "the", 0, 10, control).outcome, "")
		}
		for _, control := range []string{"&neardup_threshold=0.7", "&neardup_keep=1", "&neardup=on", "&neardup_expand=off"} {
			isNative(t, c.through.search(t, c.index, "the", 0, 10, control).outcome)
		}
		if off := c.through.search(t, c.index, "the", 0, 10, "&neardup=off").outcome; off != "bypassed; reason=off" {
			t.Error(off)
		}
		if dry := c.through.search(t, c.index, "the", 0, 10, "&neardup=dry_run").outcome; !strings.HasPrefix(dry, "dry-run; raw=") || strings.Contains(dry, "native") {
			t.Error(dry)
		}
	})
}

// TestNativeCursors: exports are left alone, pages behind a cursor take query time and go on well from a page that was native.
func TestNativeCursors(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	c := newClustered(t, e, "native-cursors", cliquesOnly(t))
	at := "/" + c.index + "/_search"
	sort := `"sort":[{"at":"asc"},{"id":"asc"}]`
	ask := func(base, more string) ([]string, reply) {
		r := call(t, e, "POST", base+at, `{"size":10,"query":{"match":{"body":"the"}},`+sort+more+`}`).want(t, 200)
		ids, _ := idsOf(t, r)
		return ids, r
	}
	raw, _ := idsOf(t, call(t, e, "POST", e.URL+at, `{"size":1000,"query":{"match":{"body":"the"}},`+sort+`}`).want(t, 200))
	want := c.collapsed(raw)
	ids, first := ask(c.through.base, "")
	isNative(t, first.header.Get("Neardup"))
	got := slices.Clone(ids)
	for page := 1; page < 6; page++ {
		last := ids[len(ids)-1]
		i := slices.IndexFunc(c.list, func(d corpus.Document) bool { return d.ID == last })
		var r reply
		ids, r = ask(c.through.base, fmt.Sprintf(`,"search_after":[%d,%q]`, i%13, last))
		isntNative(t, r.header.Get("Neardup"), "")
		got = append(got, ids...)
	}
	same(t, want[:60], got, "a walk by search_after")
	for _, export := range []string{at + "?scroll=1m", at + "?sort=_doc"} {
		r := call(t, e, "POST", c.through.base+export, `{"query":{"match":{"body":"the"}}}`).want(t, 200)
		if got := r.header.Get("Neardup"); got != "bypassed; reason=export" {
			t.Errorf("%s: %s", export, got)
		}
	}
	if r := call(t, e, "POST", c.through.base+at, `{"collapse":{"field":"host"}}`); r.header.Get("Neardup") != "bypassed; reason=client_collapse" {
		t.Error(r.header.Get("Neardup"))
	}
	for _, body := range []string{`{"min_score":0.1}`, `{"terminate_after":50}`, `{"aggs":{"t":{"top_hits":{"size":1}}}}`} {
		r := call(t, e, "POST", c.through.base+at, body).want(t, 200)
		isntNative(t, r.header.Get("Neardup"), "")
	}
}

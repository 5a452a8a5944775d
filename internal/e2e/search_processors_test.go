package e2e

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// tally is what pages of ten hits are like, of several searches together, as far as the engine's own lists go.
type tally struct {
	first   int // hits on first pages
	copies  int // of them near-duplicates of another one on the page
	missing int // groups that first pages do not show, though only fewer than ten come before
	short   int // pages with fewer hits than asked for, though a later one has some
	again   int // groups that a later page shows again
	lost    int // groups that no page shows
	total   int // what the replies say how many hits there are
	shown   int // hits on all pages
}

// TestSearchProcessors compares OpenSearch's own way to rid pages of duplicates (oversample, collapse and truncate_hits in a search
// pipeline) with its collapse and with ours, over a key that people can make (a hash of the text), one that some documents lack, and one
// without a mistake. It holds what docs/comparison.md says of them; go test -v prints the figures.
func TestSearchProcessors(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	if e.Name == engines.OpenSearch2 {
		t.Skip("its packages have none of these processors")
	}
	const index, size = "sproc-1", 10
	list := documents(t)
	direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "sproc-*", threshold: 0.64})}
	through.create(t, index)
	call(t, e, "PUT", e.URL+"/"+index+"/_mapping", `{"properties":{"hash":{"type":"keyword"},"some":{"type":"keyword"},"group":{"type":"keyword"}}}`).want(t, 200)
	through.load(t, index, list)
	groups := map[string]string{}
	lines := ""
	for i, d := range list {
		groups[d.ID] = d.Group
		keys := fmt.Sprintf(`"hash":"%x","group":%q`, hashed(d), d.Group)
		if i%20 != 0 {
			keys += fmt.Sprintf(`,"some":%q`, d.Group)
		}
		lines += fmt.Sprintf("{\"update\":{\"_index\":%q,\"_id\":%q}}\n{\"doc\":{%s}}\n", index, d.ID, keys)
	}
	direct.loadLines(t, index, lines)

	walk := func(name string, a api, params, more string) (sum tally) {
		t.Helper()
		for _, q := range queries {
			raw := direct.search(t, index, q, 0, 1000, "").ids
			var all []string
			for _, id := range raw {
				if !slices.Contains(all, groups[id]) {
					all = append(all, groups[id])
				}
			}
			seen := map[string]bool{}
			var lengths []int // of the pages
			for from := 0; from < len(raw); from += size {
				p := a.searchMore(t, index, q, from, size, params, more)
				page := map[string]bool{}
				for _, id := range p.ids {
					g := groups[id]
					if from == 0 && page[g] {
						sum.copies++
					}
					if from > 0 && seen[g] && !page[g] {
						sum.again++
					}
					page[g] = true
				}
				maps.Copy(seen, page)
				sum.shown += len(p.ids)
				if from == 0 {
					sum.first += len(p.ids)
					sum.total += p.total
					for _, g := range all[:min(size, len(all))] {
						if !page[g] {
							sum.missing++
						}
					}
				}
				lengths = append(lengths, len(p.ids))
			}
			for i, n := range lengths {
				if n < size && slices.Max(append(slices.Clone(lengths[i+1:]), 0)) > 0 {
					sum.short++
				}
			}
			sum.lost += len(all) - len(seen)
		}
		t.Logf("%-32s %+v", name, sum)
		return sum
	}
	plain := walk("plain", direct, "", "")
	for _, ours := range []tally{walk("ours", through, "", ""), walk("ours, collapsed totals", through, "neardup_totals=collapsed", "")} {
		if ours.copies+ours.missing+ours.short+ours.lost > 0 || ours.total != plain.total && ours.total != ours.shown {
			t.Errorf("ours: %+v", ours)
		}
	}
	for _, key := range []string{"hash", "some", "group"} {
		walk("collapse by "+key, direct, "", `,"collapse":{"field":"`+key+`"}`)
		for _, factor := range []int{2, 5} {
			p := walk(fmt.Sprintf("processors by %s, factor %d", key, factor), direct, "", fmt.Sprintf(`,"search_pipeline":{"request_processors":[`+
				`{"oversample":{"sample_factor":%d}}],"response_processors":[{"collapse":{"field":%q}},{"truncate_hits":{}}]}`, factor, key))
			if p.short == 0 && key != "hash" || p.copies == 0 && key == "hash" || p.again < 100 || p.total != plain.total {
				t.Errorf("by %s, factor %d: %+v: docs/comparison.md says otherwise", key, factor, p)
			}
		}
	}
}

// hashed is a hash of a document's text, as copies share it.
func hashed(d corpus.Document) uint64 {
	h := fnv.New64()
	h.Write([]byte(d.Body))
	return h.Sum64()
}

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// onALine gives articles vectors by which the first is nearest to [0,1] and the last farthest.
func onALine(list []article) []article {
	for i := range list {
		list[i].V = []float64{float64(i), 1}
	}
	return list
}

// neighbours is a search for the k nearest by vector, mixed with one by field that holds some of them.
func neighbours(kind string, k int) string {
	if kind == engines.OpenSearch {
		return fmt.Sprintf(`"query":{"bool":{"should":[{"knn":{"v":{"vector":[0,1],"k":%d}}},{"range":{"n":{"lt":3}}}]}}`, k)
	}
	return fmt.Sprintf(`"query":{"range":{"n":{"lt":3}}},"knn":{"field":"v","query_vector":[0,1],"k":%d,"num_candidates":%d}`, k, k)
}

// TestComplaintC13HybridSearch is about searches that mix vectors and words: collapsed, they show fewer groups than asked
// for, since so many neighbours as were asked for are copies of a few, and the list is another than without. The hybrid query
// of OpenSearch needs a plugin that the tests' engine lacks; its mix of a query for neighbours and one for a field has the
// same trouble.
func TestComplaintC13HybridSearch(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, onALine(articles(copies(30, 3)...)))
		const size = 10
		if e.Kind == engines.OpenSearch {
			r := call(t, e, "POST", d.direct.base+"/"+d.index+"/_search", `{"query":{"hybrid":{"queries":[{"match_all":{}}]}}}`)
			if r.status != 400 {
				t.Errorf("the engine has the hybrid query by now: use it (%d)", r.status)
			}
		}
		own := d.search(d.direct, fmt.Sprintf(`{"size":%d,%s,"collapse":{"field":"dup"}}`, size, neighbours(e.Kind, size)), "")
		if len(own.ids) != 4 || own.total != size {
			t.Errorf("directly, %d groups of %d neighbours: the complaint is gone", len(own.ids), own.total)
		}
		long := d.search(d.direct, fmt.Sprintf(`{"size":100,%s}`, neighbours(e.Kind, 100)), "").ids
		want := d.definition().collapsed(long)[:size]
		for _, cut := range []int{size, 4, 3} {
			var got []string
			for from := 0; from < size; from += cut {
				f := d.search(d.through, fmt.Sprintf(`{"from":%d,"size":%d,%s}`, from, cut, neighbours(e.Kind, size)), "")
				got = append(got, f.ids...)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in pages of %d: the definition (-), the pages (+):\n%s", cut, diff)
			}
		}
		for _, k := range []int{size, 60} { // fewer than there are texts, and more
			f := d.search(d.through, fmt.Sprintf(`{"size":50,%s}`, neighbours(e.Kind, k)), "neardup_totals=collapsed")
			if raw, folded := f.reports(t, "raw"), f.reports(t, "folded"); raw != len(d.list) || raw-folded != 30 {
				t.Errorf("%d neighbours: of %d hits 30 are different: %s", k, len(d.list), f.outcome)
			}
			if f.total != len(f.ids) || f.total != min(k, 30) {
				t.Errorf("%d neighbours: the total is %d, to be seen are %d: %s", k, f.total, len(f.ids), f.outcome)
			}
		}
	})
}

// TestComplaintC19PagesOfGroupsOfNeighbours is about Qdrant, which takes no offset for groups, and Milvus, whose groups
// repeat on later pages and lose their size with an offset. The same on ours: pages of groups of neighbours, one or two hits
// of each.
func TestComplaintC19PagesOfGroupsOfNeighbours(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, onALine(articles(copies(25, 4)...)))
		const k, size = 20, 5
		ask := func(from int) string { return fmt.Sprintf(`"from":%d,"size":%d,%s`, from, size, neighbours(e.Kind, k)) }
		if own := d.search(d.direct, `{`+ask(size)+`,"collapse":{"field":"dup"}}`, ""); len(own.ids) > 0 {
			t.Errorf("directly, the second page has %d groups: the complaint is gone", len(own.ids))
		}
		long := d.search(d.direct, fmt.Sprintf(`{"size":100,%s}`, neighbours(e.Kind, 100)), "").ids
		d.foldsByKey(long)
		for keep, want := range map[int][]string{1: keptOf(d.texts(), long, 1), 2: keptOf(d.texts(), long, 2)} {
			want := pagesOf(want[:k], size)
			var got [][]string
			for from := 0; from < k; from += size {
				got = append(got, d.search(d.through, `{`+ask(from)+`}`, fmt.Sprintf("neardup_keep=%d", keep)).ids)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d of each: the definition (-), the pages (+):\n%s", keep, diff)
			}
			if all := slices.Concat(got...); len(repeats(all)) > 0 {
				t.Errorf("%d of each: twice %v", keep, repeats(all))
			}
		}
	})
}

// chunks are pieces of documents as they are retrieved for a model: each cut of a text that others cut with other edges, or
// quote.
func chunks() (list []article) {
	for i, a := range articles(copies(14, 3)...) {
		words := strings.Fields(a.Body)
		cut := words[i%3*2:][:70] // each cut two words later
		a.Title, a.Body = "", strings.Join(cut, " ")
		list = append(list, a)
	}
	return onALine(list)
}

// TestComplaintC24RetrievedChunks is about retrieval for models and agents: of the few chunks that fit most are copies. They
// want copies left out on demand, with a count of them, and nothing else changed. The rule is the preset for chunks, in which
// nothing is folded until a request asks.
func TestComplaintC24RetrievedChunks(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, chunks(), "threshold: default", "preset: chunks", "dry_run: true", "fields: [body]")
		const k = 6
		search := fmt.Sprintf(`{"size":%d,%s}`, k, neighbours(e.Kind, k))
		own := d.search(d.direct, search, "")
		if different := firstOf(d.texts(), own.ids); len(own.ids) != k || len(different) != 2 {
			t.Errorf("directly, %d of %d chunks are different: the complaint is gone", len(different), len(own.ids))
		}
		plain := d.search(d.through, search, "")
		diff := cmp.Diff(string(steadyReply(own.body)), string(steadyReply(plain.body)))
		if diff != "" || !strings.HasPrefix(plain.outcome, "dry-run;") {
			t.Errorf("unasked: %s: the engine's own (-), ours (+):\n%.2000s", plain.outcome, diff)
		}
		if plain.reports(t, "folded") == 0 {
			t.Errorf("nothing would be folded: %s", plain.outcome)
		}
		f := d.search(d.through, search, "neardup=on&neardup_expand=ids")
		long := d.search(d.direct, fmt.Sprintf(`{"size":100,%s}`, neighbours(e.Kind, 100)), "").ids
		if diff := cmp.Diff(keptOf(d.texts(), long, 1)[:k], f.ids); diff != "" {
			t.Errorf("asked: %s: the definition (-), the chunks (+):\n%s", f.outcome, diff)
		}
		for i, n := range d.similar(f.body) {
			if n != 2 {
				t.Errorf("chunk %d: +%d similar chunks, want +2", i+1, n)
			}
		}
		for name, r := range map[string]reply{
			"in the body":   call(t, e, "POST", d.through.base+"/"+d.index+"/_search", `{"neardup":"on",`+search[1:]),
			"in the header": call(t, e, "POST", d.through.base+"/"+d.index+"/_search", search, "Neardup-Control", "on"),
		} {
			if got := d.read(r.want(t, 200)); !slices.Equal(got.ids, f.ids) {
				t.Errorf("asked %s: %s: %v, in the URL %v", name, got.outcome, got.ids, f.ids)
			}
		}
		if off := d.search(d.through, search, "neardup=off"); !slices.Equal(off.ids, own.ids) {
			t.Errorf("switched off: %v, directly %v", off.ids, own.ids)
		}
	})
}

// similar returns how many hits each hit of a page says that it stands for beside itself.
func (d *desk) similar(body []byte) (counts []int) {
	d.t.Helper()
	var reply struct {
		Hits struct {
			Hits []struct {
				Inner map[string]struct {
					Hits struct {
						Total struct{ Value int }
						Hits  []json.RawMessage
					}
				} `json:"inner_hits"`
			}
		}
	}
	decode(d.t, body, &reply)
	for _, h := range reply.Hits.Hits {
		told := h.Inner["neardup"].Hits
		if len(told.Hits) != told.Total.Value {
			d.t.Errorf("%d hits under a total of %d", len(told.Hits), told.Total.Value)
		}
		counts = append(counts, told.Total.Value)
	}
	return counts
}

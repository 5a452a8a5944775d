package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// ungrouped walks all articles of Typesense in its own order, which is that without a filter and a sort.
func (d *desk) ungrouped() (pages [][]string) {
	d.t.Helper()
	for page := 1; ; page++ {
		f := d.query(d.direct, fmt.Sprintf("sort_by=&page=%d&per_page=250", page))
		if len(f.ids) == 0 {
			return pages
		}
		pages = append(pages, f.ids)
	}
}

// grouped is a page of Typesense's own groups, in that order.
func (d *desk) grouped(page, size, limit int) found {
	d.t.Helper()
	return d.query(d.direct, fmt.Sprintf("sort_by=&page=%d&per_page=%d&group_by=dup&group_limit=%d", page, size, limit))
}

// TestComplaintC15PagesOfGroups is about Typesense's own grouping without a filter and a sort: pages far behind come back empty
// though there are groups left, pages hold fewer groups the further one goes, and the number of groups grows from page to page.
func TestComplaintC15PagesOfGroups(t *testing.T) {
	d := newDesk(t, engines.Typesense, articles(strewn(700, 0.6)...))
	const size = 10
	raw := slices.Concat(d.ungrouped()...)
	d.foldsByKey(raw)
	want := keptOf(d.texts(), raw, 1)
	last := (len(want) + size - 1) / size
	var own []found
	shown := 0
	for page := 1; page <= last; page++ {
		own = append(own, d.grouped(page, size, 1))
		shown += len(own[page-1].ids)
	}
	if n := len(own[last-1].ids); n > 0 || shown >= len(want) || len(own[0].ids) != size {
		t.Errorf("directly, page %d has %d groups, and all pages %d of %d: the complaint is gone", last, n, shown, len(want))
	}
	if own[0].total >= own[3].total || own[3].total == len(want) {
		t.Errorf("directly, found is %d, then %d for %d groups: the complaint is gone", own[0].total, own[3].total, len(want))
	}
	for _, keep := range []int{1, 3} {
		want := pagesOf(keptOf(d.texts(), raw, keep), size)
		var got [][]string
		for page := range want {
			f := d.query(d.through, fmt.Sprintf("sort_by=&page=%d&per_page=%d&neardup_keep=%d&neardup_totals=collapsed", page+1, size, keep))
			if got = append(got, f.ids); f.total != len(slices.Concat(want...)) || !strings.Contains(f.outcome, "exact=true") {
				t.Errorf("page %d, keep %d: found %d: %s", page+1, keep, f.total, f.outcome)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keep %d: the definition (-), the pages (+):\n%s", keep, diff)
		}
	}
}

// foldsByKey fails the test unless the definition finds what the key tells, so that a list with several of each text can be
// told from it.
func (d *desk) foldsByKey(raw []string) {
	d.t.Helper()
	if diff := cmp.Diff(keptOf(d.texts(), raw, 1), d.definition().collapsed(raw)); diff != "" {
		d.t.Fatalf("the key (-), the definition (+):\n%s", diff)
	}
}

// keptOf leaves the first so many hits of each text, at their own ranks.
func keptOf(texts map[string]string, ids []string, keep int) (list []string) {
	seen := map[string]int{}
	for _, id := range ids {
		if seen[texts[id]]++; seen[texts[id]] <= keep {
			list = append(list, id)
		}
	}
	return list
}

// TestComplaintC30PinnedHitsInGroups is about Typesense's groups, of which the one of a pinned hit comes twice.
func TestComplaintC30PinnedHitsInGroups(t *testing.T) {
	d := newDesk(t, engines.Typesense, articles(strewn(80, 0.5)...))
	texts := d.texts()
	raw := d.raw()
	at := slices.IndexFunc(raw, func(id string) bool { return slices.Contains(repeats(of(texts, raw)), texts[id]) })
	pinned := raw[at+1+slices.IndexFunc(raw[at+1:], func(id string) bool { return texts[id] == texts[raw[at]] })]
	params := "per_page=100&pinned_hits=" + pinned + ":1"
	own := d.query(d.direct, params+"&group_by=dup&group_limit=1")
	again := repeats(of(texts, own.ids))
	if !slices.Equal(again, []string{texts[pinned]}) || own.total != len(firstOf(texts, raw))+1 {
		t.Errorf("directly, %v come twice, found %d of %d: the complaint is gone", again, own.total, len(firstOf(texts, raw)))
	}
	plain := d.query(d.direct, params).ids
	if diff := cmp.Diff(firstOf(texts, plain), d.query(d.through, params).ids); plain[0] != pinned || diff != "" {
		t.Errorf("the first of each text (-), the page (+):\n%s", diff)
	}
}

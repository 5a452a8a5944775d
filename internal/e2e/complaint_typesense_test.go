package e2e

import (
	"fmt"
	"slices"
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

// TestComplaintC15PagesOfGroupsGoEmpty is about Typesense's own grouping, of which pages far behind come back empty though
// there are groups left.
func TestComplaintC15PagesOfGroupsGoEmpty(t *testing.T) {
	d := newDesk(t, engines.Typesense, articles(strewn(700, 0.5)...))
	const size = 10
	want := d.definition().collapsed(slices.Concat(d.ungrouped()...))
	last := (len(want) + size - 1) / size
	var own [][]string
	for page := 1; page <= last; page++ {
		own = append(own, d.grouped(page, size, 1).ids)
	}
	shown := slices.Concat(own...)
	if n := len(own[last-1]); n > 0 || len(shown) >= len(want) {
		t.Errorf("directly, page %d has %d groups, and all pages %d of %d: the complaint is gone", last, n, len(shown), len(want))
	}
	t.Logf("directly, %d pages show %d of %d groups", last, len(shown), len(want))
	var got [][]string
	for page := 1; page <= last; page++ {
		got = append(got, d.query(d.through, fmt.Sprintf("sort_by=&page=%d&per_page=%d", page, size)).ids)
	}
	if diff := cmp.Diff(pagesOf(want, size), got); diff != "" {
		t.Errorf("the definition (-), the pages (+):\n%s", diff)
	}
	if again := repeats(of(d.texts(), slices.Concat(got...))); len(again) > 0 {
		t.Errorf("shown twice: %v", again)
	}
}

// TestComplaintC16PagesOfGroupsShrink is about Typesense's own grouping, of which pages hold fewer groups the further one
// goes, and fewer hits of each group than there are.
func TestComplaintC16PagesOfGroupsShrink(t *testing.T) {
	d := newDesk(t, engines.Typesense, articles(strewn(900, 0.7)...))
	const size, keep = 12, 3
	raw := slices.Concat(d.ungrouped()...)
	var own []int
	for page := 1; page <= 12; page++ {
		own = append(own, d.grouped(page, size, keep).groups)
	}
	if own[0] != size || own[11] >= own[0] || slices.Equal(own, slices.Repeat([]int{size}, 12)) {
		t.Errorf("directly, the pages hold %v groups: the complaint is gone", own)
	}
	t.Logf("directly, the pages hold %v groups", own)
	d.foldsByKey(raw)
	want := keptOf(d.texts(), raw, keep)
	var got [][]string
	for page := 1; len(got) < len(pagesOf(want, size)); page++ {
		got = append(got, d.query(d.through, fmt.Sprintf("sort_by=&page=%d&per_page=%d&neardup_keep=%d", page, size, keep)).ids)
	}
	if diff := cmp.Diff(pagesOf(want, size), got); diff != "" {
		t.Errorf("the definition (-), the pages (+):\n%s", diff)
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

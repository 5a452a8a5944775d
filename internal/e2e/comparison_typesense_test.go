package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestComparisonGroupBy is about what Typesense's group_by asks for, and where it ends.
func TestComparisonGroupBy(t *testing.T) {
	d := ownDesk(t, engines.Shared(t, engines.Typesense))
	d.create(1)
	d.add(d.direct, articles(strewn(60, 0.5)...))
	for _, c := range []struct{ what, params, reason string }{
		{"a field that is no facet", "group_by=title", "should be a facet field"},
		{"a number that is no facet", "group_by=n", "should be a facet field"},
		{"a field that is not declared", "group_by=other", "other"},
		{"no hit of a group", "group_by=dup&group_limit=0", "between 1 and 99"},
		{"a hundred hits of a group", "group_by=dup&group_limit=100", "between 1 and 99"},
		{"a long page", "group_by=dup&per_page=251", "250 hits"},
	} {
		v, err := url.ParseQuery("q=*&query_by=title&" + c.params)
		if err != nil {
			t.Fatal(err)
		}
		r := call(t, d.e, "GET", d.direct.base+"/collections/"+d.index+"/documents/search?"+v.Encode(), "")
		if r.status < 400 || !strings.Contains(string(r.body), c.reason) {
			t.Errorf("%s: %d %s", c.what, r.status, r.body)
		}
	}
	for _, limit := range []int{1, 99} {
		f := d.query(d.direct, fmt.Sprintf("group_by=dup&group_limit=%d&per_page=250", limit))
		if f.groups == 0 || (limit == 99) != (len(f.ids) == 60) {
			t.Errorf("group_limit=%d: %d hits in %d groups", limit, len(f.ids), f.groups)
		}
	}
}

// TestComparisonGroupByPages is about what Typesense's group_by does well: where the search has a word, a filter or a sort, its
// pages show each group once up to the last, found is the number of groups, and facets count groups.
func TestComparisonGroupByPages(t *testing.T) {
	d := ownDesk(t, engines.Shared(t, engines.Typesense))
	d.create(1)
	d.add(d.direct, articles(strewn(500, 0.5)...))
	for _, params := range []string{"sort_by=n:asc", "sort_by=&filter_by=n:>=0", "sort_by=&q=story"} {
		var plain, got []string
		for page := 1; page <= 2; page++ {
			plain = append(plain, d.query(d.direct, fmt.Sprintf("%s&page=%d&per_page=250", params, page)).ids...)
		}
		want := firstOf(d.texts(), plain)
		for page := 1; page <= (len(want)+19)/20; page++ {
			f := d.query(d.direct, fmt.Sprintf("%s&page=%d&per_page=20&group_by=dup&group_limit=1&facet_by=kind", params, page))
			if got = append(got, f.ids...); f.total != len(want) {
				t.Errorf("%s: page %d says %d groups, there are %d", params, page, f.total, len(want))
			}
			if diff := cmp.Diff(d.groupsOfKinds(), facetCounts(t, f.body)); diff != "" {
				t.Errorf("%s: groups of each kind (-), the engine's facets (+):\n%s", params, diff)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the first of each group (-), the engine's (+):\n%s", params, diff)
		}
	}
	hits := facetCounts(t, d.query(d.direct, "facet_by=kind").body)
	if hits["kind0"] <= d.groupsOfKinds()["kind0"] {
		t.Errorf("without group_by, facets count %v", hits)
	}
}

// groupsOfKinds is how many groups have a member of each kind.
func (d *desk) groupsOfKinds() map[string]int {
	keys := map[string][]string{}
	for _, a := range d.list {
		if !slices.Contains(keys[a.Kind], a.Dup) {
			keys[a.Kind] = append(keys[a.Kind], a.Dup)
		}
	}
	counts := map[string]int{}
	for kind, list := range keys {
		counts[kind] = len(list)
	}
	return counts
}

// facetCounts reads the facets of a reply of Typesense.
func facetCounts(t *testing.T, body []byte) map[string]int {
	t.Helper()
	var reply struct {
		Facets []struct {
			Counts []struct {
				Count int
				Value string
			}
		} `json:"facet_counts"`
	}
	decode(t, body, &reply)
	counts := map[string]int{}
	for _, f := range reply.Facets {
		for _, c := range f.Counts {
			counts[c.Value] = c.Count
		}
	}
	return counts
}

// TestComparisonGroupByStoredKey: the key is compared whole, a field that comes later is empty in the documents that are there,
// and these are one group.
func TestComparisonGroupByStoredKey(t *testing.T) {
	d := ownDesk(t, engines.Shared(t, engines.Typesense))
	d.create(1)
	list := articles(0, 1, 2, 3, 4, 5)
	list[0].Dup, list[1].Dup, list[2].Dup = "7f3a", "7f3a", "7f3b"
	d.add(d.direct, list[:3])
	if got := d.collapsing(0, 10).ids; !slices.Equal(got, []string{"a0000", "a0002"}) {
		t.Errorf("two of three keys differ in one place: %v", got)
	}
	d.add(d.direct, list[3:])
	change := `{"fields":[{"name":"later","type":"string","facet":true,"optional":true}]}`
	call(t, d.e, "PATCH", d.e.URL+"/collections/"+d.index, change).want(t, 200)
	if got := d.query(d.direct, "group_by=later&group_limit=1&filter_by=n:>=0"); len(got.ids) != 1 {
		t.Errorf("six documents without the new key: %v", got.ids)
	}
}

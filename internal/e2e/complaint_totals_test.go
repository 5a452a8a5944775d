package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestComplaintC02TotalOfGroups is about how many groups there are: the engine's total counts hits, and its count refuses to
// collapse.
func TestComplaintC02TotalOfGroups(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(160, 0.5)...))
		want := len(d.want())
		if got := d.collapsing(0, 10).total; got != len(d.list) {
			t.Errorf("directly, the total is %d, not that of hits, %d: the complaint is gone", got, len(d.list))
		}
		call(t, e, "POST", d.direct.base+"/"+d.index+"/_count", `{"collapse":{"field":"dup"}}`).want(t, 400)
		for _, c := range []struct {
			params string
			total  int
			says   string
		}{
			{"neardup_totals=collapsed", want, "exact=true"},
			{"neardup_totals=collapsed&rest_total_hits_as_int=true", want, "exact=true"},
			{"neardup_totals=engine", len(d.list), ""},
			{"neardup_totals=collapsed&track_total_hits=false", -1, ""},
		} {
			f := d.page(d.through, 0, 1, c.params)
			if f.total != c.total || !strings.Contains(f.outcome, c.says) {
				t.Errorf("%s: total %d, want %d: %s", c.params, f.total, c.total, f.outcome)
			}
		}
		o := d.definition()
		o.window = 50
		bound := len(o.collapsed(d.raw()))
		f := d.page(d.through, 0, 10, "neardup_totals=collapsed&neardup_window=50")
		if f.total != bound || f.total < want || !strings.Contains(f.outcome, "exact=false") {
			t.Errorf("with a window of 50 the total is %d, want %d, a bound: %s", f.total, bound, f.outcome)
		}
	})
}

const byKind = `"aggs":{"kinds":{"terms":{"field":"kind"}}}`

// facets asks for the numbers of hits by kind along with a page, and returns them as they stand in the reply.
func (d *desk) facets(a api, from, size int, params string) (found, string) {
	d.t.Helper()
	member, f := "aggregations", found{}
	if a.typesense() {
		member, f = "facet_counts", d.query(a, fmt.Sprintf("page=%d&per_page=%d&facet_by=kind&%s", from/size+1, size, params))
	} else {
		f = d.search(a, fmt.Sprintf(`{"from":%d,"size":%d,"sort":[{"n":"asc"}],%s}`, from, size, byKind), params)
	}
	all, err := adapters.Members(f.body)
	if err != nil {
		d.t.Fatal(err)
	}
	return f, string(adapters.Get(all, member))
}

var aCount = regexp.MustCompile(`"(?:doc_)?count":(\d+)`)

// counted is the sum of facets.
func counted(t *testing.T, facets string) (sum int) {
	t.Helper()
	for _, m := range aCount.FindAllStringSubmatch(facets, -1) {
		n := 0
		if _, err := fmt.Sscan(m[1], &n); err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// TestComplaintC08Facets is about facets that count the hits that were folded away. That stays: they are the engine's own,
// byte for byte, and the header says how many of the hits that they count are not shown.
func TestComplaintC08Facets(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(120, 0.5)...))
		want := len(d.want())
		own := d.search(d.direct, `{"size":10,"sort":[{"n":"asc"}],"collapse":{"field":"dup"},`+byKind+`}`, "")
		_, plain := d.facets(d.direct, 0, 10, "")
		if !strings.Contains(string(own.body), plain) || counted(t, plain) != len(d.list) {
			t.Errorf("directly, the facets of the collapsed list count %d: the complaint is gone", counted(t, plain))
		}
		for _, params := range []string{"", "neardup_totals=collapsed"} {
			f, facets := d.facets(d.through, 10, 10, params)
			if facets != plain {
				t.Errorf("the engine's facets %s, ours %s", plain, facets)
			}
			if params != "" && counted(t, facets)-f.reports(t, "folded") != want {
				t.Errorf("%d hits in facets, %d groups: %s", counted(t, facets), want, f.outcome)
			}
		}
	})
}

// TestComplaintC20TotalsThatMove is about Meilisearch, where totals and facets depend on how far a search has looked. Here
// they are the same on every page of every size.
func TestComplaintC20TotalsThatMove(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(150, 0.6)...))
		want := len(d.want())
		if e.Kind == engines.Typesense {
			totals := map[int]bool{}
			for page := 1; page < 9; page++ {
				totals[d.query(d.direct, fmt.Sprintf("sort_by=&page=%d&per_page=7&group_by=dup", page)).total] = true
			}
			if len(totals) < 3 {
				t.Errorf("directly, found has only %d values over eight pages: the complaint is gone", len(totals))
			}
		} else if got := d.collapsing(0, 10).total; got == want {
			t.Errorf("directly, the total is that of groups, %d", got)
		}
		_, own := d.facets(d.direct, 0, 10, "")
		for _, size := range []int{1, 7, 20, 100} {
			for _, page := range []int{0, 1, 2, 9} {
				f, facets := d.facets(d.through, page*size, size, "neardup_totals=collapsed")
				if f.total != want || facets != own || !strings.Contains(f.outcome, "exact=true") {
					t.Errorf("page %d of %d: total %d, want %d; facets %s, want %s; %s", page+1, size, f.total, want, facets, own, f.outcome)
				}
			}
		}
	})
}

// TestComplaintC17FoundOfGroups is about Typesense's number of groups: without a filter and a sort it is that of the groups
// looked at so far, and so grows from page to page.
func TestComplaintC17FoundOfGroups(t *testing.T) {
	d := newDesk(t, engines.Typesense, articles(strewn(600, 0.6)...))
	raw := slices.Concat(d.ungrouped()...)
	want := len(d.definition().collapsed(raw))
	if len(repeats(of(d.texts(), d.definition().collapsed(raw)))) > 0 {
		t.Fatal("the texts fold other than by their keys")
	}
	own := []int{}
	for page := 1; page <= 4; page++ {
		own = append(own, d.query(d.direct, fmt.Sprintf("sort_by=&page=%d&per_page=10&group_by=dup", page)).total)
	}
	if slices.Contains(own, want) || own[0] >= own[3] {
		t.Errorf("directly, found is %v for %d groups: the complaint is gone", own, want)
	}
	for _, page := range []int{1, 2, 5, 40} {
		for _, filter := range []string{"", "&filter_by=n:>=0"} {
			f := d.query(d.through, fmt.Sprintf("sort_by=&page=%d&per_page=10&neardup_totals=collapsed%s", page, filter))
			if f.total != want || !strings.Contains(f.outcome, "exact=true") {
				t.Errorf("page %d%s: found %d, want %d: %s", page, filter, f.total, want, f.outcome)
			}
		}
	}
	f := d.query(d.through, "sort_by=&per_page=10&neardup_totals=collapsed&neardup_window=100")
	o := d.definition()
	o.window = 100
	if bound := len(o.collapsed(raw)); f.total != bound || !strings.Contains(f.outcome, "exact=false") {
		t.Errorf("with a window of 100: found %d, want %d: %s", f.total, bound, f.outcome)
	}
}

// TestComplaintC22OmittedEntries is about an engine that hides too much and does not say what: here the number of those left
// out is told, each hit tells which they are, and one parameter shows the list as it was.
func TestComplaintC22OmittedEntries(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(100, 0.6)...))
		want := d.want()
		hidden := len(d.list) - len(want)
		own := d.collapsing(0, 100)
		if regexp.MustCompile(fmt.Sprintf(`\b%d\b`, hidden)).Match(sourceless(t, own.body)) {
			t.Errorf("directly, the reply tells of the %d hidden hits: the complaint is gone", hidden)
		}
		f := d.page(d.through, 0, 100, "neardup_expand=ids")
		if f.reports(t, "raw") != len(d.list) || f.reports(t, "folded") != hidden {
			t.Errorf("%d of %d hits are left out: %s", hidden, len(d.list), f.outcome)
		}
		omitted := d.omitted(f.body)
		all := slices.Concat(f.ids, slices.Concat(omitted...))
		if slices.Sort(all); !slices.Equal(all, d.raw()) {
			t.Errorf("%d hits are shown or told of, want %d", len(all), len(d.list))
		}
		shown := d.page(d.through, 0, 100, "neardup=off")
		if diff := cmp.Diff(string(steadyReply(d.page(d.direct, 0, 100, "").body)), string(steadyReply(shown.body))); diff != "" {
			t.Errorf("all shown: the engine's own (-), ours (+):\n%.2000s", diff)
		}
	})
}

// omitted returns the ids of the hits that each hit of a page tells of, by expand.
func (d *desk) omitted(body []byte) (list [][]string) {
	d.t.Helper()
	type told struct {
		Found int
		Total struct{ Value int }
		Hits  []struct {
			ID  string `json:"id"`
			Own string `json:"_id"`
		}
	}
	var typesense struct {
		Hits []struct{ Neardup told }
	}
	var elastic struct {
		Hits struct {
			Hits []struct {
				Inner struct{ Neardup struct{ Hits told } } `json:"inner_hits"`
			}
		}
	}
	groups := []told{}
	if d.direct.typesense() {
		decode(d.t, body, &typesense)
		for _, h := range typesense.Hits {
			groups = append(groups, h.Neardup)
		}
	} else {
		decode(d.t, body, &elastic)
		for _, h := range elastic.Hits.Hits {
			groups = append(groups, h.Inner.Neardup.Hits)
		}
	}
	for _, g := range groups {
		one := []string{}
		for _, h := range g.Hits {
			one = append(one, h.ID+h.Own)
		}
		if n := g.Found + g.Total.Value; n != len(one) {
			d.t.Errorf("a hit tells of %d hits, and shows %d", n, len(one))
		}
		list = append(list, one)
	}
	return list
}

// steadyReply returns a reply less what it took and our field, which is the engine's to show to those who ask it.
func steadyReply(body []byte) []byte { return untimed(ourMember.ReplaceAll(body, nil)) }

// sourceless returns a reply less the hits.
func sourceless(t *testing.T, body []byte) []byte {
	t.Helper()
	var all map[string]any
	decode(t, body, &all)
	if inner, ok := all["hits"].(map[string]any); ok {
		delete(inner, "hits")
	}
	delete(all, "grouped_hits")
	delete(all, "took")
	delete(all, "search_time_ms")
	rest, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return rest
}

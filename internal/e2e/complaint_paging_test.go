package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestComplaintC01PagingACollapsedList is about how to page a collapsed list: the engine's total counts what it folded, so
// the pages that it promises end in empty ones, and nothing says how many hits were left out.
func TestComplaintC01PagingACollapsedList(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(140, 0.6)...))
		const size = 10
		want := d.want()
		promised := d.collapsing(0, size).total / size
		if got := len(d.collapsing((promised-1)*size, size).ids); promised != 14 || got != 0 {
			t.Errorf("directly, the last of %d promised pages holds %d hits: the complaint is gone", promised, got)
		}
		pages := d.walk(d.through, size, "neardup_totals=collapsed")
		if diff := cmp.Diff(pagesOf(want, size), ids(pages)); diff != "" {
			t.Errorf("the definition (-), the pages (+):\n%s", diff)
		}
		for i, p := range pages {
			raw, folded := p.reports(t, "raw"), p.reports(t, "folded")
			if raw-folded != len(want) || raw != len(d.list) || p.total != len(want) || !strings.Contains(p.outcome, "exact=true") {
				t.Errorf("page %d of %d groups: total %d, %s", i+1, len(want), p.total, p.outcome)
			}
		}
		scroll := call(t, e, "POST", d.direct.base+"/"+d.index+"/_search?scroll=1m", `{"size":10,"collapse":{"field":"dup"}}`)
		if scroll.status < 400 || !strings.Contains(string(scroll.body), "scroll context") {
			t.Errorf("directly, a collapsed scroll is answered with %d", scroll.status)
		}
		body := fmt.Sprintf(`{"size":%d,"sort":[{"n":"asc"}]}`, size)
		var got []string
		for f := d.search(d.through, body, "scroll=1m&neardup=on"); len(f.ids) > 0; {
			var next struct {
				ID string `json:"_scroll_id"`
			}
			decode(t, f.body, &next)
			got = append(got, f.ids...)
			f = d.read(call(t, e, "POST", d.through.base+"/_search/scroll", `{"scroll":"1m","scroll_id":"`+next.ID+`"}`).want(t, 200))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the definition (-), the scroll (+):\n%s", diff)
		}
	})
}

// TestComplaintC03PageCountsOfLibraries is about libraries that count pages by the engine's total: they offer some that are
// empty. The rule has the total show the collapsed list, so that they need no change.
func TestComplaintC03PageCountsOfLibraries(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(130, 0.7)...), "totals: collapsed")
		const size = 7
		want := pagesOf(d.want(), size)
		offered := func(total int) int { return (total + size - 1) / size }
		if got := offered(d.collapsing(0, size).total); got <= len(want) {
			t.Errorf("directly, %d pages are offered where there are %d: the complaint is gone", got, len(want))
		}
		for _, params := range []string{"", "rest_total_hits_as_int=true", "track_total_hits=true"} {
			got := make([][]string, 0, len(want))
			for range offered(d.page(d.through, 0, size, params).total) {
				got = append(got, d.page(d.through, len(got)*size, size, params).ids)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the definition (-), the pages offered (+):\n%s", params, diff)
			}
		}
		var all strings.Builder
		for i := range want {
			fmt.Fprintf(&all, "{\"index\":%q}\n{\"from\":%d,\"size\":%d,\"sort\":[{\"n\":\"asc\"}]}\n", d.index, i*size, size)
		}
		var many struct{ Responses []json.RawMessage }
		decode(t, call(t, e, "POST", d.through.base+"/_msearch", all.String()).want(t, 200).body, &many)
		for i, body := range many.Responses {
			if f := d.read(reply{body: body}); offered(f.total) != len(want) || !slices.Equal(f.ids, want[i]) {
				t.Errorf("one search of many: page %d of %d is %v, want %v", i+1, offered(f.total), f.ids, want[i])
			}
		}
	})
}

// after walks a list by the sort values of each page's last hit.
func (d *desk) after(a api, sort string, size int, pit string) (pages [][]string) {
	d.t.Helper()
	path, context, last := "/"+d.index+"/_search", "", ""
	if pit != "" {
		path, context = "/_search", `,"pit":{"id":"`+pit+`","keep_alive":"1m"}`
	}
	for {
		body := fmt.Sprintf(`{"size":%d,"query":{"range":{"n":{"gte":0}}},"sort":%s%s%s}`, size, sort, context, last)
		r := call(d.t, d.e, "POST", a.base+path, body).want(d.t, 200)
		f := d.read(r)
		if len(f.ids) == 0 {
			return pages
		}
		if !strings.HasPrefix(f.outcome, "collapsed;") || strings.Contains(f.outcome, "cursor=lost") {
			d.t.Errorf("page %d: %s", len(pages)+1, f.outcome)
		}
		pages, last = append(pages, f.ids), `,"search_after":`+f.sort
	}
}

// pit opens a point in time, and closes it when the test ends.
func (d *desk) pit(a api) string {
	d.t.Helper()
	path, closing := "/_pit", "/_pit"
	if d.e.Kind == engines.OpenSearch {
		path, closing = "/_search/point_in_time", "/_search/point_in_time"
	}
	var body struct {
		ID  string `json:"id"`
		PIT string `json:"pit_id"`
	}
	decode(d.t, call(d.t, d.e, "POST", a.base+"/"+d.index+path+"?keep_alive=1m", "").want(d.t, 200).body, &body)
	id, field := body.ID, `{"id":"`+body.ID+`"}`
	if body.PIT != "" {
		id, field = body.PIT, `{"pit_id":["`+body.PIT+`"]}`
	}
	d.t.Cleanup(func() {
		r, err := http.NewRequest("DELETE", d.e.URL+closing, strings.NewReader(field))
		if err != nil {
			d.t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(r); err != nil {
			d.t.Error(err)
		} else {
			resp.Body.Close()
		}
	})
	return id
}

// TestComplaintC04SearchAfterUnderAnySort is about a cursor through a collapsed list that is not sorted by the key: the
// engines refuse it, since a group would come back on a later page, as it does for those who build it from a filter.
func TestComplaintC04SearchAfterUnderAnySort(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(150, 0.6)...))
		refused := call(t, e, "POST", d.direct.base+"/"+d.index+"/_search",
			`{"size":10,"sort":[{"at":"asc"}],"search_after":[0],"collapse":{"field":"dup"}}`)
		if refused.status < 400 || !strings.Contains(string(refused.body), "search_after") {
			t.Errorf("directly: %d %s", refused.status, refused.body)
		}
		var byFilter []string
		for last := -1; ; {
			f := d.search(d.direct, fmt.Sprintf(`{"size":10,"query":{"range":{"n":{"gt":%d}}},"sort":[{"n":"asc"}],`+
				`"collapse":{"field":"dup"}}`, last), "")
			if len(f.ids) == 0 {
				break
			}
			byFilter = append(byFilter, f.ids...)
			if _, err := fmt.Sscanf(f.sort, "[%d]", &last); err != nil {
				t.Fatal(err)
			}
		}
		if again := repeats(of(d.texts(), byFilter)); len(again) < 5 {
			t.Errorf("directly, with a filter in place of the cursor, %d groups come back: the complaint is gone", len(again))
		}
		for _, sort := range []string{`[{"at":"asc"},{"id":"asc"}]`, `[{"at":{"order":"desc"}}]`, `[{"kind":"asc"},{"n":"desc"}]`} {
			raw := slices.Concat(d.search(d.direct, `{"size":1000,"sort":`+sort+`}`, "").ids)
			want := d.definition().collapsed(raw)
			for _, size := range []int{10, 7} {
				for name, pit := range map[string]string{"": "", " in a point in time": d.pit(d.through)} {
					got := d.after(d.through, sort, size, pit)
					if diff := cmp.Diff(pagesOf(want, size), got); diff != "" {
						t.Errorf("%s in pages of %d%s: the definition (-), the walk (+):\n%s", sort, size, name, diff)
					}
					if again := repeats(of(d.texts(), slices.Concat(got...))); len(again) > 0 {
						t.Errorf("%s: came back: %v", sort, again)
					}
				}
			}
		}
	})
}

// TestComplaintC05TiebreakSort is about clients that add a second sort to break ties, with which the engine refuses the one
// cursor through a collapsed list that it knows.
func TestComplaintC05TiebreakSort(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(strewn(90, 0.5)...))
		tiebreak := "_shard_doc"
		if e.Kind == engines.OpenSearch { // that knows no _shard_doc
			tiebreak = "id"
		}
		own := call(t, e, "POST", d.direct.base+"/_search", `{"pit":{"id":"`+d.pit(d.direct)+`"},"size":5,`+
			`"sort":["dup","`+tiebreak+`"],"search_after":["d0002",4],"collapse":{"field":"dup"}}`)
		if says := string(own.body); own.status < 400 || !strings.Contains(says, "search_after") {
			t.Errorf("directly: %d %s", own.status, says)
		}
		for _, sort := range []string{`["kind","` + tiebreak + `"]`, `[{"dup":"desc"},"` + tiebreak + `"]`} {
			pit := d.pit(d.through)
			all := `{"size":1000,"pit":{"id":"` + pit + `"},"sort":` + sort + `}`
			raw := d.read(call(t, e, "POST", d.direct.base+"/_search", all).want(t, 200)).ids
			if diff := cmp.Diff(pagesOf(d.definition().collapsed(raw), 8), d.after(d.through, sort, 8, pit)); diff != "" {
				t.Errorf("%s: the definition (-), the walk (+):\n%s", sort, diff)
			}
		}
	})
}

// firstOf leaves the first hit of each text: what is done in an application, and by OpenSearch's processor, to a page that
// the engine has cut already. A hit without a key is one with all that lack it.
func firstOf(texts map[string]string, ids []string) (list []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		if !seen[texts[id]] {
			seen[texts[id]], list = true, append(list, id)
		}
	}
	return list
}

// TestComplaintC14FewerThanSize is about OpenSearch's processors oversample, collapse and truncate_hits: pages come back
// short, and from the second one on they repeat groups. The processors are in none of the packages that the
// tests' engine is put together from, so that the first half does by hand what they do.
func TestComplaintC14FewerThanSize(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		list := articles(slices.Concat(copies(4, 9), strewn(110, 0.5))...)
		for i := range list {
			list[i].N = i
		}
		d := newDesk(t, e.Kind, list)
		const size, factor, pages = 10, 3, 4
		short := 0
		var shown []string
		for i := range pages {
			page := firstOf(d.texts(), d.page(d.direct, i*size, size*factor, "").ids)
			page = page[:min(size, len(page))]
			if shown = append(shown, page...); len(page) < size {
				short++
			}
		}
		want := d.want()
		if again := repeats(of(d.texts(), shown)); short == 0 || len(again) == 0 {
			t.Errorf("oversampled, collapsed and truncated: %d short pages, %d groups twice: the complaint is gone", short, len(again))
		}
		got := d.walk(d.through, size, "")
		if diff := cmp.Diff(pagesOf(want, size), ids(got)); diff != "" {
			t.Errorf("the definition (-), the pages (+):\n%s", diff)
		}
	})
}

// TestComplaintC23EmptiedPages is about collapsing in the application: what is folded leaves a hole in the page.
func TestComplaintC23EmptiedPages(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(copies(40, 4)...))
		const size = 10
		if left := firstOf(d.texts(), d.page(d.direct, 0, size, "").ids); len(left) != 3 {
			t.Errorf("collapsed in the application, the page holds %d: the complaint is gone", len(left))
		}
		want := pagesOf(d.want(), size)
		before := d.asked.Load()
		pages := d.walk(d.through, size, "")
		if diff := cmp.Diff(want, ids(pages)); diff != "" {
			t.Errorf("the definition (-), the pages (+):\n%s", diff)
		}
		t.Logf("%d pages in %d requests to the engine", len(pages)+1, d.asked.Load()-before)
	})
}

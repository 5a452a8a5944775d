package elastic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/rerank"
)

// scrollPage returns a page of the scroll s1, of hits that carry the mark: each is a letter, which stands for its text, and a
// number.
func scrollPage(mark, hits string) *adapters.Reply {
	var list []string
	for _, id := range strings.Fields(hits) {
		text := strings.Repeat("text of the letter "+id[:1]+" ", 3)
		list = append(list, fmt.Sprintf(`{"_index":"news-1","_id":%q,"_source":{"title":%q},"matched_queries":[%s]}`, id, text, mark))
	}
	return fakeReply(200, fmt.Appendf(nil, `{"_scroll_id":"s1","hits":{"total":{"value":9,"relation":"eq"},"hits":[%s]}}`,
		strings.Join(list, ",")))
}

// markOf returns a mark as it stands in a reply.
func markOf(marks string) string { return string(adapters.AppendString(nil, scrollMark+marks)) }

// later asks for a later page of the scroll s1 and returns the ids of what is shown of the replies, its outcome, and how many of
// them it took.
func later(
	t *testing.T, kept adapters.Cursors, query string, replies ...*adapters.Reply,
) (ids string, o adapters.Outcome, took int) {
	t.Helper()
	class, r := searchFor("/_search/scroll", query, `{"scroll_id":"s1"}`)
	plan := searchPlan(t, false)
	plan.Cursors = kept
	answer, err := adaptertest.Run((Dialect{}).Search(class, r, plan).Exchange, func(ask *adapters.Request) *adapters.Reply {
		if took++; took > len(replies) {
			t.Fatalf("asks for more than there is: %s", ask.Body)
		}
		return replies[took-1]
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range fakeHits(answer.Body)[0] {
		ids += idIn(t, h) + " "
	}
	return strings.TrimSpace(ids), answer.Outcomes[0], took
}

// TestScrollStateIsNotChangedInPlace goes on twice from one state, as two requests at once do, and beyond the end.
func TestScrollStateIsNotChangedInPlace(t *testing.T) {
	mark := markOf(`{"window":30,"texts":true}`)
	kept := shelf{}
	if ids, _, _ := later(t, nil, "", scrollPage(mark, "a1 b2")); ids != "a1 b2" {
		t.Fatal(ids)
	}
	kept.Put(scrollKey("s1"), walkedOver(t, mark, "a1"))
	first := kept[scrollKey("s1")]
	leaders, ranks := first.Leaders(), first.Ranks()
	for range 2 {
		kept[scrollKey("s1")] = first
		if ids, o, _ := later(t, kept, "", scrollPage(mark, "a3 b4 b5")); ids != "b4" || o.CursorLost || o.Folded != 2 {
			t.Errorf("shows %q, %+v", ids, o)
		}
		kept[scrollKey("s1")] = first
		if ids, o, _ := later(t, kept, "", scrollPage(mark, "")); ids != "" || o.CursorLost || !o.Exact {
			t.Errorf("the end shows %q, %+v", ids, o)
		}
		if first.Leaders() != leaders || first.Ranks() != ranks || leaders != 1 {
			t.Fatalf("what was remembered has changed: %d leaders, %d ranks", first.Leaders(), first.Ranks())
		}
	}
}

// walkedOver returns what a scroll of one page has shown.
func walkedOver(t *testing.T, mark, hits string) *rerank.Walk {
	t.Helper()
	plan, walk := searchPlan(t, false), new(rerank.Walk)
	list, _, err := hitsOf(scrollPage(mark, hits).Body)
	if err != nil {
		t.Fatal(err)
	}
	judge := adapters.NewJudge(plan.Rules, adapters.Controls{})
	for _, raw := range list {
		hit, err := Dialect{}.scrolledHit(raw, judge, &scrollMarks{Texts: true})
		if err != nil || hit.Sketch == nil {
			t.Fatal("no sketch", err)
		}
		walk.Take(&hit, 30)
	}
	return walk
}

// TestScrollPageIsNeverEmpty has every hit of many pages folded: one answer does not go on for ever, and is not taken for the
// end.
func TestScrollPageIsNeverEmpty(t *testing.T) {
	mark, kept := markOf(`{"window":1000,"texts":true}`), shelf{}
	kept.Put(scrollKey("s1"), walkedOver(t, mark, "a0"))
	var pages []*adapters.Reply
	for i := range 30 {
		pages = append(pages, scrollPage(mark, fmt.Sprintf("a%d a%d", 2*i+1, 2*i+2)))
	}
	ids, o, took := later(t, kept, "", pages...)
	if want := fmt.Sprintf("a%d", 2*maxFolded-1); ids != want || took != maxFolded || !o.CursorLost || o.Exact || o.Rounds != took {
		t.Errorf("shows %q of %d pages, want %q: %+v", ids, took, want, o)
	}
	if ids, o, took := later(t, kept, "", pages[took], scrollPage(mark, "c1")); ids != "c1" || took != 2 || o.CursorLost {
		t.Errorf("then shows %q of %d pages: %+v", ids, took, o)
	}
}

// TestForgedScrollMarks: a client can name a query as we do, and changes its own pages alone, within the bounds of all.
func TestForgedScrollMarks(t *testing.T) {
	for marks, window := range map[string]int{
		`{"window":1000000000}`: 100, `{"window":-5,"keep":-3,"threshold":-1}`: -5, `{}`: 0,
		`{"window":20,"hidden":["title"],"bare":true,"deciding":["_id"]}`: 20,
	} {
		ids, o, _ := later(t, shelf{}, "", scrollPage(markOf(marks), "a1 b2"))
		if ids != "a1 b2" || o.Window != window || !o.CursorLost {
			t.Errorf("%s: shows %q, %+v", marks, ids, o)
		}
	}
}

// TestScrollsThatShowMarks are left alone: hits stand elsewhere in their replies too, which engines mark alike.
func TestScrollsThatShowMarks(t *testing.T) {
	for body, want := range map[string]string{
		`{"query":{"nested":{"path":"c","query":{"match_all":{}},"inner_hits":{}}}}`: "cursor",
		`{"aggs":{"a":{"top_hits":{}}}}`:                                             "cursor",
		`{"aggs":{"a":{"max":{"field":"n"}}}}`:                                       "",
	} {
		class, r := searchFor("/news-1/_search", "scroll=1m&neardup=on", body)
		if p := (Dialect{}).Search(class, r, searchPlan(t, false)); p.Reason != want {
			t.Errorf("%s: %q, want %q", body, p.Reason, want)
		}
	}
	class, r := searchFor("/_search/scroll", "filter_path=-", `{"scroll_id":"s1"}`)
	if p := (Dialect{OpenSearch: true}).Search(class, r, searchPlan(t, false)); p.Reason != "filter_path" {
		t.Errorf("a filter that the engine refuses is taken: %q", p.Reason)
	}
}

// TestDocumentsKeepTextsLikeMarks: what only looks like a mark is a client's own.
func TestDocumentsKeepTextsLikeMarks(t *testing.T) {
	mark := markOf(`{"window":3}`)
	body := `{"hits":{"hits":[{"_source":{"t":` + mark + `,"matched_queries":[` + mark + `]},"highlight":{"t":[` + mark + `]}` +
		`,"matched_queries":["a",` + mark + `]}]}}`
	want := strings.TrimSuffix(body, mark+`]}]}}`) + `""]}]}}`
	if diff := cmp.Diff(want, string(adapters.Cleaned([]byte(body), Dialect{}.cuts(adapters.Class{Form: formScroll})))); diff != "" {
		t.Error(diff)
	}
}

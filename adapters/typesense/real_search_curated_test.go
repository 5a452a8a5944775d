package typesense

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// preset makes a preset that is gone when the test ends, and returns its name.
func (b *bench) preset(value string) string {
	name := "preset_" + b.collection
	b.t.Cleanup(func() { b.direct("DELETE", "/presets/"+name, "") })
	b.must(200)(b.direct("PUT", "/presets/"+name, `{"value":`+value+`}`))
	return name
}

// A preset's page and size are those of the answer where the client names none.
func TestRealPresetSetsThePage(t *testing.T) {
	b := newBench(t, vectors, "body")
	b.loadVectors(rand.New(rand.NewPCG(9, 2)), 90, 1)
	name := b.preset(`{"q":"*","per_page":3,"page":2,"include_fields":"n,title,id"}`)
	presetted := b.must(200)(b.through("GET", "/collections/NAME/documents/search?preset="+name, ""))
	if o := b.outcome; o.Reason != "" || o.Folded == 0 {
		t.Errorf("%+v", o)
	}
	named := b.must(200)(b.through("GET", "/collections/NAME/documents/search?q=*&per_page=3&page=2&include_fields=n,title,id", ""))
	expect.Same(t, took.ReplaceAllString(named, ""), took.ReplaceAllString(presetted, ""), "named, and by preset")
}

// Where a key hides a part of the sketched text, no sketch is computed of the rest. A field that decides and that a key hides is not got
// round: hits lack it, and stand each alone under its condition.
func TestRealKeyThatHidesText(t *testing.T) {
	b := newBench(t, articles, "title", "body")
	for i := range 6 {
		b.put([]map[string]any{{"id": string(rune('a' + i)), "title": familyText(1, 0), "body": familyText(2+i/2, 0), "n": 1}})
	}
	scoped := b.searchKey()
	for _, c := range []struct {
		imposed map[string]any
		same    []string
		folded  int
	}{
		{nil, nil, 3},
		{map[string]any{"exclude_fields": "neardup_sketch"}, nil, 3},
		{map[string]any{"exclude_fields": "body"}, nil, 0},
		{map[string]any{"include_fields": "title,id"}, nil, 0},
		{map[string]any{"include_fields": "title,body"}, nil, 3},
		{nil, []string{"n"}, 3},
		{map[string]any{"exclude_fields": "n"}, []string{"n"}, 0},
		{map[string]any{"include_fields": "id,title,body"}, []string{"n"}, 0},
	} {
		b.rule.Together.Same = c.same
		for _, lacking := range []bool{false, true} {
			b.plan = planFor(adapters.Scope{Lacking: lacking}, b.rule)
			r := get("/collections/" + b.collection + "/documents/search?q=*")
			r.Header = adapters.Header{keyHeader: {scoped(c.imposed)}}
			if _, _, outcome := b.answer(r); outcome.Reason != "" || outcome.Folded != c.folded {
				t.Errorf("%v: %+v, want %d folded", c.imposed, outcome, c.folded)
			}
		}
	}
}

// A collection without a single sketch, searched with a key that may do nothing else, is collapsed at once: whatever the client sees of
// the hits, the texts come with the same request, and are not shown.
func TestRealCollectionWithoutSketches(t *testing.T) {
	b := newBench(t, strings.Replace(vectors, `{"name":"neardup_sketch","type":"string","index":false,"optional":true},`, "", 1), "body")
	documents := make([]map[string]any, 300)
	for i := range documents {
		documents[i] = map[string]any{"id": fmt.Sprint("d", i), "title": "alpha", "body": familyText(i/5, i%3), "n": i % 7,
			"v": []float64{1, 0, 0, float64(i)}, "meta": map[string]any{"lang": "en"}, "host": fmt.Sprint("h", i%2), "at": 1_700_000_000 + i}
	}
	b.put(documents)
	b.rule.Together.Different = []string{"host"}
	key := b.searchKey()(nil)
	b.plan = planFor(adapters.Scope{Widening: rerank.Widening{Rate: 0.6}, Lacking: true}, b.rule)
	for _, seen := range []string{"", "include_fields=title", "exclude_fields=host,at,id"} {
		params := expect.Value(url.ParseQuery("q=alpha&query_by=title&per_page=20&" + seen))(t)
		c := trial{params: params, window: b.rule.Window}
		r := c.request(b.collection, false)
		r.Header = adapters.Header{keyHeader: {key}}
		own := b.send(r)
		_, got, o := b.answer(r)
		if o.Rounds != 1 || o.Folded < 20 || o.Without != o.Read {
			t.Errorf("%s: %+v", seen, o)
		}
		want := framed(t, own.Body, b.expect(c, own.Body))
		expect.Same(t, took.ReplaceAllString(want, ""), took.ReplaceAllString(got, ""), "%s", seen)
	}
}

// What an operator pins is shown where it is, were it a near-duplicate of a hit above it and whatever is chosen; hits below fold into it, and
// the others are chosen among the rest of its group.
func TestRealPinnedHits(t *testing.T) {
	b := newBench(t, articles, "body")
	for i, id := range []string{"a1", "a2", "a3", "a4", "a5", "b1", "b2"} {
		b.put([]map[string]any{{"id": id, "title": "alpha", "body": familyText(1+i/5, i%5), "n": i + 1}})
	}
	greatest := rule.Choice{By: rule.ByField, Field: "n"}
	for _, c := range []struct {
		query      string
		keep       int
		choice     rule.Choice
		transitive bool
		want       []string
	}{
		{"q=*", 1, rule.Choice{}, false, []string{"b2", "a5"}},
		{"q=*&pinned_hits=a1:2,a3:4", 1, rule.Choice{}, false, []string{"b2", "a1", "a3"}},
		{"q=*&pinned_hits=a1:1,a2:2,b1:3", 1, rule.Choice{}, false, []string{"a1", "a2", "b1"}},
		{"q=*&pinned_hits=b1:7", 1, rule.Choice{}, false, []string{"b2", "a5", "b1"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc", 1, greatest, false, []string{"a5"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc", 2, greatest, false, []string{"a5", "a4"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a3:1", 1, greatest, false, []string{"a3"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a3:1", 2, greatest, false, []string{"a3", "a5"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a3:2", 1, greatest, false, []string{"a5", "a3"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a1:1,a3:3", 1, greatest, true, []string{"a1", "a3"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a1:1,a3:3", 2, greatest, true, []string{"a1", "a3", "a5"}},
	} {
		b.rule.Profile.Keep, b.rule.Choice, b.rule.Transitive = c.keep, c.choice, c.transitive
		b.plan = planFor(adapters.Scope{Widening: rerank.Widening{Rate: 0.3}}, b.rule)
		got := ids(t, []byte(b.must(200)(b.through("GET", "/collections/NAME/documents/search?"+c.query, ""))))
		expect.Same(t, c.want, got, "%s, keep %d, transitive %t", c.query, c.keep, c.transitive)
	}
}

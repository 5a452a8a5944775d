package typesense

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

// preset makes a preset that is gone when the test ends, and returns its name.
func (b *bench) preset(value string) string {
	name := "preset_" + b.collection
	b.t.Cleanup(func() { b.direct("DELETE", "/presets/"+name, "") })
	b.must(200)(b.direct("PUT", "/presets/"+name, `{"value":`+value+`}`))
	return name
}

// A preset is obeyed by keys that may not read it, in one request for a first page whose size the client names.
func TestRealPresetInOneRequest(t *testing.T) {
	b := newBench(t, vectors, "body")
	b.loadVectors(rand.New(rand.NewPCG(9, 1)), 60, 1)
	name := b.preset(`{"q":"alpha","query_by":"title","exclude_fields":"body","facet_by":"n"}`)
	b.plan = planFor(adapters.Scope{Rate: 0.5, Lacking: true}, b.rule)
	r := get("/collections/" + b.collection + "/documents/search?per_page=5&preset=" + name)
	r.Header = adapters.Header{keyHeader: {b.searchKey()(nil)}}
	if _, _, outcome := b.answer(r); outcome.Reason != "" || outcome.Rounds != 1 || outcome.Folded == 0 {
		t.Errorf("%+v", outcome)
	}
}

// A preset's page and size are those of the answer where the client names none.
func TestRealPresetSetsThePage(t *testing.T) {
	b := newBench(t, vectors, "body")
	b.loadVectors(rand.New(rand.NewPCG(9, 2)), 90, 1)
	name := b.preset(`{"q":"*","per_page":3,"page":2,"include_fields":"n,title,id"}`)
	presetted := b.must(200)(b.through("GET", "/collections/NAME/documents/search?preset="+name, ""))
	if o := b.outcomes[0]; o.Reason != "" || o.Folded == 0 {
		t.Errorf("%+v", o)
	}
	named := b.must(200)(b.through("GET", "/collections/NAME/documents/search?q=*&per_page=3&page=2&include_fields=n,title,id", ""))
	if diff := cmp.Diff(took.ReplaceAllString(named, ""), took.ReplaceAllString(presetted, "")); diff != "" {
		t.Error(diff)
	}
}

// Where a key hides a part of the sketched text, no sketch is computed of the rest.
func TestRealKeyThatHidesText(t *testing.T) {
	b := newBench(t, articles, "title", "body")
	for i := range 6 {
		document, err := json.Marshal(map[string]any{"id": string(rune('a' + i)), "title": familyText(1, 0), "body": familyText(2+i/2, 0), "n": 1})
		if err != nil {
			t.Fatal(err)
		}
		b.must(201)(b.direct("POST", "/collections/NAME/documents", string(document)))
	}
	scoped := b.searchKey()
	for _, c := range []struct {
		imposed map[string]any
		folded  int
	}{
		{nil, 3},
		{map[string]any{"exclude_fields": "neardup_sketch"}, 3},
		{map[string]any{"exclude_fields": "body"}, 0},
		{map[string]any{"include_fields": "title,id"}, 0},
		{map[string]any{"include_fields": "title,body"}, 3},
	} {
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

// A page of neighbours that holds few near-duplicates takes one request and few hits, however many neighbours the page is cut from.
func TestRealNeighboursAreReadAsFarAsNeeded(t *testing.T) {
	b := newBench(t, vectors, "body")
	b.loadVectors(rand.New(rand.NewPCG(9, 3)), 400, 0.3)
	b.plan = planFor(adapters.Scope{Rate: 0.3, Lacking: true, VectorWindow: 100}, b.rule)
	query := "&vector_query=" + url.QueryEscape("v:([0.5,0.4,0.6,0.5], k:10)")
	s := search(b.request("GET", "/collections/NAME/documents/search?q=*&per_page=10"+query, ""), b.plan)
	asked := 0
	answer, err := adaptertest.Run(s.Exchange, func(r *adapters.Request) *adapters.Reply {
		searches, _ := fakeSearches(r)
		for _, search := range searches {
			n, _ := fakeNumber(search, "per_page", 10)
			asked += n
		}
		return b.send(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	if o := answer.Outcomes[0]; o.Rounds != 1 || asked > 40 {
		t.Errorf("%d hits were asked for: %+v", asked, o)
	}
}

// A collection without a single sketch, searched with a key that may do nothing else, is collapsed at once: whatever the client sees of
// the hits, the texts come with the same request, and are not shown.
func TestRealCollectionWithoutSketches(t *testing.T) {
	b := newBench(t, strings.Replace(vectors, `{"name":"neardup_sketch","type":"string","index":false,"optional":true},`, "", 1), "body")
	var lines strings.Builder
	for i := range 300 {
		line, err := json.Marshal(map[string]any{"id": fmt.Sprint("d", i), "title": "alpha", "body": familyText(i/5, i%3), "n": i % 7,
			"v": []float64{1, 0, 0, float64(i)}, "meta": map[string]any{"lang": "en"}, "host": fmt.Sprint("h", i%2), "at": 1_700_000_000 + i})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	b.must(200)(b.direct("POST", "/collections/NAME/documents/import", lines.String()))
	b.rule.Together.Different = []string{"host"}
	key := b.searchKey()(nil)
	for _, seen := range []string{"", "include_fields=title", "include_fields=id,host", "exclude_fields=body", "exclude_fields=host,at,id", "include_fields=nosuch&exclude_fields=title"} {
		for _, multi := range []bool{false, true} {
			params, err := url.ParseQuery("q=alpha&query_by=title&per_page=20&" + seen)
			if err != nil {
				t.Fatal(err)
			}
			b.plan = planFor(adapters.Scope{Rate: 0.6, Lacking: true}, b.rule)
			c := trial{params: params, window: b.rule.Window}
			r := c.request(b.collection, multi)
			r.Header = adapters.Header{keyHeader: {key}}
			own := b.send(r)
			_, got, o := b.answer(r)
			if multi {
				own.Body, got = onlyResult(t, own.Body), string(onlyResult(t, []byte(got)))
			}
			if o.Rounds != 1 || o.Folded < 20 || o.Without != o.Read {
				t.Errorf("%s: %+v", seen, o)
			}
			want := framed(t, own.Body, b.expect(c, own.Body))
			if diff := cmp.Diff(took.ReplaceAllString(want, ""), took.ReplaceAllString(got, "")); diff != "" {
				t.Errorf("%s: %s", seen, diff)
			}
		}
	}
}

// What an operator pins is shown where it is, were it a near-duplicate of a hit above it and whatever is chosen; hits below fold into it, and
// the others are chosen among the rest of its group.
func TestRealPinnedHits(t *testing.T) {
	b := newBench(t, articles, "body")
	for i, id := range []string{"a1", "a2", "a3", "a4", "a5", "b1", "b2"} {
		document, err := json.Marshal(map[string]any{"id": id, "title": "alpha", "body": familyText(1+i/5, i%5), "n": i + 1})
		if err != nil {
			t.Fatal(err)
		}
		b.must(201)(b.through("POST", "/collections/NAME/documents", string(document)))
	}
	greatest := adapters.Choice{By: adapters.ByField, Field: "n"}
	for _, c := range []struct {
		query      string
		keep       int
		choice     adapters.Choice
		transitive bool
		want       []string
	}{
		{"q=*", 1, adapters.Choice{}, false, []string{"b2", "a5"}},
		{"q=*&pinned_hits=a1:2,a3:4", 1, adapters.Choice{}, false, []string{"b2", "a1", "a3"}},
		{"q=*&pinned_hits=a1:1,a2:2,b1:3", 1, adapters.Choice{}, false, []string{"a1", "a2", "b1"}},
		{"q=*&pinned_hits=b1:7", 1, adapters.Choice{}, false, []string{"b2", "a5", "b1"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc", 1, greatest, false, []string{"a5"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc", 2, greatest, false, []string{"a5", "a4"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a3:1", 1, greatest, false, []string{"a3"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a3:1", 2, greatest, false, []string{"a3", "a5"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a3:2", 1, greatest, false, []string{"a5", "a3"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a1:1,a3:3", 1, greatest, true, []string{"a1", "a3"}},
		{"q=*&filter_by=n:<6&sort_by=n:asc&pinned_hits=a1:1,a3:3", 2, greatest, true, []string{"a1", "a3", "a5"}},
	} {
		b.rule.Profile.Keep, b.rule.Choice, b.rule.Transitive = c.keep, c.choice, c.transitive
		b.plan = planFor(adapters.Scope{Rate: 0.3}, b.rule)
		got := ids(t, []byte(b.must(200)(b.through("GET", "/collections/NAME/documents/search?"+c.query, ""))))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, keep %d, transitive %t: %s", c.query, c.keep, c.transitive, diff)
		}
	}
}

// A field that decides and that a key hides is not got round: hits lack it, and stand each alone under its condition.
func TestRealKeyThatHidesADecidingField(t *testing.T) {
	b := newBench(t, vectors, "body")
	b.loadVectors(rand.New(rand.NewPCG(9, 5)), 60, 1)
	b.rule.Together.Same = []string{"meta.lang"}
	b.plan = planFor(adapters.Scope{Rate: 0.3}, b.rule)
	scoped := b.searchKey()
	for _, c := range []struct {
		imposed map[string]any
		folds   bool
	}{
		{nil, true}, {map[string]any{"exclude_fields": "title"}, true}, {map[string]any{"include_fields": "id,body,meta.lang,meta,neardup_sketch"}, true},
		{map[string]any{"exclude_fields": "meta.lang"}, false}, {map[string]any{"exclude_fields": "meta"}, false}, {map[string]any{"include_fields": "id,body,neardup_sketch"}, false},
	} {
		for _, seen := range []string{"", "&include_fields=title", "&exclude_fields=meta"} {
			r := get("/collections/" + b.collection + "/documents/search?q=*&per_page=60" + seen)
			r.Header = adapters.Header{keyHeader: {scoped(c.imposed)}}
			_, answer, o := b.answer(r)
			if o.Reason != "" || (o.Folded > 0) != c.folds || strings.Contains(seen, "=title") && c.imposed == nil && strings.Contains(answer, `"lang"`) {
				t.Errorf("%v%s: %+v: %.300s", c.imposed, seen, o, answer)
			}
		}
	}
}

// Controls in a scoped key or in a preset of the server's are no business of ours, and the engine takes no offence at them.
func TestRealControlsInKeysAndPresets(t *testing.T) {
	b := newBench(t, vectors, "body")
	b.loadVectors(rand.New(rand.NewPCG(9, 6)), 60, 1)
	name := b.preset(`{"q":"*","neardup":"off","neardup_keep":50}`)
	b.plan = planFor(adapters.Scope{Rate: 0.3}, b.rule)
	scoped := b.searchKey()
	for query, imposed := range map[string]map[string]any{
		"q=*": {"neardup": "off", "neardup_window": 1}, "q=*&x=1": {"neardup": "no such value"}, "preset=" + name: nil,
	} {
		r := get("/collections/" + b.collection + "/documents/search?per_page=20&" + query)
		r.Header = adapters.Header{keyHeader: {scoped(imposed)}}
		if status, answer, o := b.answer(r); status != 200 || o.Reason != "" || o.Folded == 0 || o.Window != b.rule.Window {
			t.Errorf("%s, %v: %d, %+v: %.200s", query, imposed, status, o, answer)
		}
	}
}

package typesense

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
)

// What an operator pins is shown, were it a near-duplicate of a hit above it; hits below fold into it.
func TestRealPinnedHits(t *testing.T) {
	b := newBench(t, articles, "body")
	for _, d := range []struct{ id, body string }{
		{"a1", familyText(1, 0)}, {"a2", familyText(1, 1)}, {"a3", familyText(1, 2)}, {"a4", familyText(1, 3)}, {"b1", familyText(2, 0)}, {"b2", familyText(2, 1)},
	} {
		document, err := json.Marshal(map[string]any{"id": d.id, "title": "alpha", "body": d.body, "n": 1})
		if err != nil {
			t.Fatal(err)
		}
		b.must(201)(b.through("POST", "/collections/NAME/documents", string(document)))
	}
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"q=*", []string{"b2", "a4"}},
		{"q=*&pinned_hits=a1:2,a3:4", []string{"b2", "a1", "a3"}},
		{"q=*&pinned_hits=a1:1,a2:2,b1:3", []string{"a1", "a2", "b1"}},
		{"q=*&pinned_hits=b1:6", []string{"b2", "a4", "b1"}},
	} {
		var reply struct {
			Hits []struct{ Document struct{ ID string } }
		}
		if err := json.Unmarshal([]byte(b.must(200)(b.through("GET", "/collections/NAME/documents/search?"+c.query, ""))), &reply); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range reply.Hits {
			got = append(got, h.Document.ID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.query, diff)
		}
	}
}

// A preset is obeyed by keys that may not read it, in one request for a first page whose size the client names.
func TestRealPresetInOneRequest(t *testing.T) {
	b := newBench(t, vectors, "body")
	b.loadVectors(rand.New(rand.NewPCG(9, 1)), 60, 1)
	name := "preset_" + b.collection
	t.Cleanup(func() { b.direct("DELETE", "/presets/"+name, "") })
	b.must(200)(b.direct("PUT", "/presets/"+name, `{"value":{"q":"alpha","query_by":"title","exclude_fields":"body","facet_by":"n"}}`))
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
	name := "preset_" + b.collection
	t.Cleanup(func() { b.direct("DELETE", "/presets/"+name, "") })
	b.must(200)(b.direct("PUT", "/presets/"+name, `{"value":{"q":"*","per_page":3,"page":2,"include_fields":"n,title,id"}}`))
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

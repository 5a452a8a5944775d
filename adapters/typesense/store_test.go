package typesense

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
)

// scan reads all documents of the collection, by id.
func (b *bench) scan() map[string]adapters.Stored {
	b.t.Helper()
	all := map[string]adapters.Stored{}
	err := b.store().Scan(b.t.Context(), b.collection, b.rule, adapters.Selection{}, func(p adapters.Page) error {
		if p.Total == 0 || len(p.Documents) > batch {
			b.t.Errorf("a page of %d documents of %d", len(p.Documents), p.Total)
		}
		for _, d := range p.Documents {
			all[d.ID] = d
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// patches returns a patch for each document that lacks what is ours.
func (b *bench) patches() []adapters.Patch {
	var list []adapters.Patch
	for _, d := range b.scan() {
		if want, right := b.rule.Wanted(d.Source, numberOf(d.ID)); !right {
			list = append(list, adapters.Patch{Stored: d, Ours: want})
		}
	}
	return list
}

func TestRealResolve(t *testing.T) {
	b := newBench(t, articles, "title", "body")
	ctx := t.Context()
	notReady := []adapters.Index{{Name: b.collection, Mapped: true, Known: true, Why: "field neardup_sketch is not declared in " + b.collection}}
	got, err := b.store().Resolve(ctx, b.collection)
	if diff := cmp.Diff(notReady, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := Open(nil, b.urls(), nil)(nil, "x=1&"+keyParam+"=wrong").Resolve(ctx, b.collection); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong key: %v", err)
	}
	query := "x=1&" + keyParam + "=" + url.QueryEscape(b.key)
	if got, err := Open(nil, b.urls(), nil)(nil, query).Resolve(ctx, b.collection); err != nil || len(got) != 1 {
		t.Errorf("the key in the query: %v %v", got, err)
	}
}

func (b *bench) urls() []*url.URL {
	u, err := url.Parse(b.engine.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	// Nothing listens on the first; the next is tried.
	return []*url.URL{{Scheme: "http", Host: "127.0.0.1:1"}, u}
}

// Texts in nested objects give one sketch, whether they are written, read back or searched.
func TestRealNestedFields(t *testing.T) {
	schema := `{"name":"NAME","enable_nested_fields":true,"fields":[{"name":"title","type":"string"},{"name":"meta","type":"object"}]}`
	b := newBench(t, schema, "meta.text", "title")
	for i := range 6 {
		send := b.through
		if i%2 == 1 {
			send = b.direct
		}
		b.must(201)(send("POST", "/collections/NAME/documents", fmt.Sprintf(`{"id":"%d","title":"same title","meta":{"text":"one deep text of a few words","x":[%d]}}`, i, i)))
	}
	check := func() {
		t.Helper()
		for _, fields := range []string{"", "&include_fields=title", "&exclude_fields=meta.text", "&include_fields=meta.x"} {
			b.must(200)(b.through("GET", "/collections/NAME/documents/search?q=*"+fields, ""))
			if o := b.outcome; o.Folded != 5 {
				t.Errorf("%s: %+v", fields, o)
			}
		}
	}
	check()
	results, err := b.store().Patch(t.Context(), b.collection, b.rule, b.patches())
	if diff := cmp.Diff([]adapters.Result{0, 0, 0}, results); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if left := b.patches(); len(left) != 0 {
		t.Errorf("%d documents still lack a sketch", len(left))
	}
	check()
}

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestComplaintC27CollapsingAcrossShards is about Solr, whose collapsing leaves one hit of a group for each shard. Elasticsearch
// and OpenSearch merge groups over shards and indices; so do we, and Typesense has no shards.
func TestComplaintC27CollapsingAcrossShards(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := openDesk(t, e.Kind)
		list := articles(strewn(120, 0.6)...)
		d.create(3)
		d.add(d.through, list[:60])
		first := d.index
		second := *d
		second.index = first + "-more"
		second.create(2)
		second.add(d.through, list[60:])
		d.list, d.index = list, first+"*"
		want := d.want()
		groups := firstOf(d.texts(), d.raw())
		if diff := cmp.Diff(groups, d.collapsing(0, 200).ids); diff != "" {
			t.Errorf("directly: the groups (-), the engine's (+):\n%s", diff)
		}
		if diff := cmp.Diff(pagesOf(want, 10), ids(d.walk(d.through, 10, ""))); diff != "" {
			t.Errorf("the definition (-), the pages (+):\n%s", diff)
		}
	})
}

// TestComplaintC28SameInAllFields is about Vespa, which collapses by either of several fields and not by all of them: those who
// want that make one key of them and feed all documents anew. Here the rule names the fields.
func TestComplaintC28SameInAllFields(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		list := articles(copies(20, 6)...)
		combined := map[string]string{}
		for i := range list {
			list[i].Kind, list[i].Best = fmt.Sprintf("kind%d", i%2), i%3/2
			combined[list[i].ID] = fmt.Sprint(list[i].Dup, list[i].Kind, list[i].Best)
		}
		d := newDesk(t, e.Kind, list)
		both := api{e, d.sidecar(e.URL, "same: [kind, best]")}
		want := firstOf(combined, d.raw())
		if len(want) <= len(d.want()) || len(want) >= len(list) {
			t.Fatalf("%d of %d hits, %d texts", len(want), len(list), len(d.want()))
		}
		if diff := cmp.Diff(pagesOf(want, 10), ids(d.walk(both, 10, ""))); diff != "" {
			t.Errorf("the first of each text, kind and best (-), the pages (+):\n%s", diff)
		}
	})
}

// TestComplaintC29ManyVersions is about Fess, which shows nothing behind its link to similar results where there are more than a
// hundred.
func TestComplaintC29ManyVersions(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(append(copies(1, 180), 1, 2, 1)...))
		f := d.page(d.through, 0, 10, "neardup_expand=ids&neardup_totals=collapsed")
		if told := d.omitted(f.body); len(told) != 3 || !slices.Equal(told[0], d.raw()[1:180]) {
			t.Errorf("%d hits, of which the first tells of %d: %s", len(told), len(told[0]), f.outcome)
		}
		if e.Kind != engines.Typesense {
			return
		}
		own := d.query(d.direct, "group_by=dup&group_limit=99")
		if own.groups != 3 || len(own.ids) != 99+2+1 {
			t.Errorf("directly, %d hits in %d groups", len(own.ids), own.groups)
		}
	})
}

// TestComplaintC30PinnedHitsInGroups is about Typesense's groups, of which the one of a pinned hit comes twice.
func TestComplaintC30PinnedHitsInGroups(t *testing.T) {
	d := newDesk(t, engines.Typesense, articles(strewn(80, 0.5)...))
	texts := d.texts()
	raw := d.raw()
	at := slices.IndexFunc(raw, func(id string) bool { return slices.Contains(repeats(of(texts, raw)), texts[id]) })
	pinned := raw[at+1+slices.IndexFunc(raw[at+1:], func(id string) bool { return texts[id] == texts[raw[at]] })]
	params := "per_page=100&pinned_hits=" + pinned + ":1"
	var own struct {
		Found  int
		Groups []struct {
			Key []string `json:"group_key"`
		} `json:"grouped_hits"`
	}
	decode(t, d.query(d.direct, params+"&group_by=dup&group_limit=1").body, &own)
	var keys []string
	for _, g := range own.Groups {
		keys = append(keys, strings.Join(g.Key, ","))
	}
	if again := repeats(keys); !slices.Equal(again, []string{texts[pinned]}) || own.Found != len(firstOf(texts, raw))+1 {
		t.Errorf("directly, %v come twice, found %d of %d: the complaint is gone", again, own.Found, len(firstOf(texts, raw)))
	}
	plain := d.query(d.direct, params).ids
	if diff := cmp.Diff(firstOf(texts, plain), d.query(d.through, params).ids); plain[0] != pinned || diff != "" {
		t.Errorf("the first of each text (-), the page (+):\n%s", diff)
	}
}

// TestComplaintC31PartialUpdatesKeepTheSketchRight is about Solr, where a partial update leaves a document without its
// signature, so that it collapses with all others that have none.
func TestComplaintC31PartialUpdatesKeepTheSketchRight(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		d := newDesk(t, e.Kind, articles(copies(10, 3)...))
		change := func(id string, fields map[string]string) {
			body, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == engines.Typesense {
				call(t, e, "PATCH", d.through.base+"/collections/"+d.index+"/documents/"+id, string(body)).want(t, 201)
				return
			}
			call(t, e, "POST", d.through.base+"/"+d.index+"/_update/"+id+"?refresh=true", `{"doc":`+string(body)+`}`).want(t, 200)
		}
		sketched := func(id string) string { return string(ourMember.Find(d.direct.get(t, d.index, id))) }
		before := sketched("a0001")
		change("a0001", map[string]string{"kind": "other"})
		if after := sketched("a0001"); before == "" || after != before {
			t.Errorf("an update of another field leaves %q of %q", after, before)
		}
		last := slices.IndexFunc(d.list, func(a article) bool { return a.ID == "a0004" })
		d.list[last].Title, d.list[last].Body, d.list[last].Dup = "a new story", d.list[29].Body+" more", d.list[29].Dup
		change("a0004", map[string]string{"title": d.list[last].Title, "body": d.list[last].Body})
		change("a0007", map[string]string{"title": d.list[7].Title})
		if after := sketched("a0007"); after != "" && !strings.Contains(after, "null") {
			t.Errorf("an update of one of two sketched fields leaves %q", after)
		}
		d.checkUpdated()
	})
}

// checkUpdated walks the pages after updates, against the definition over the texts as they are now.
func (d *desk) checkUpdated() {
	d.t.Helper()
	if diff := cmp.Diff(pagesOf(d.want(), 7), ids(d.walk(d.through, 7, ""))); diff != "" {
		d.t.Errorf("the definition (-), the pages (+):\n%s", diff)
	}
}

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

// The tests named TestComparison… hold what docs/comparison.md says of the engines' own means, on the engines themselves.

// ownDesk is a desk with the engine alone, for what it does by itself.
func ownDesk(t *testing.T, e *engines.Engine) *desk {
	t.Helper()
	direct := api{e, e.URL}
	return &desk{t: t, e: e, direct: direct, through: direct, index: fmt.Sprintf("%s%d", ownPrefix("k"), desks.Add(1))}
}

// refused fails the test unless the engine refuses a search for the reason.
func (d *desk) refused(what, body, reason, params string) {
	d.t.Helper()
	r := call(d.t, d.e, "POST", d.direct.base+"/"+d.index+"/_search?"+params, body)
	if r.status < 400 || !strings.Contains(string(r.body), reason) {
		d.t.Errorf("%s: %d %.300s", what, r.status, r.body)
	}
}

// TestComparisonCollapseGoesByEquality: the engine's fingerprint of a text changes with any word of it, and its collapse goes by
// equal values, so it folds copies and no versions.
func TestComparisonCollapseGoesByEquality(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := ownDesk(t, e)
		const text = "the ferry to saltmere runs late "
		texts := []string{text + "again", text + "again", text + "tonight"}
		keys := fingerprints(t, e, texts)
		if keys[0] == "" || keys[0] != keys[1] || keys[0] == keys[2] {
			t.Fatalf("the keys %q", keys)
		}
		d.create(1)
		list := articles(0, 1, 2)
		for i := range list {
			list[i].Body, list[i].Dup = texts[i], keys[i]
		}
		d.add(d.direct, list)
		if got := d.collapsing(0, 10).ids; !slices.Equal(got, []string{"a0000", "a0002"}) {
			t.Errorf("collapsed by the key: %v", got)
		}
	})
}

// fingerprints has the engine's ingest processor make keys of texts, without storing anything.
func fingerprints(t *testing.T, e *engines.Engine, texts []string) (keys []string) {
	t.Helper()
	var docs []map[string]any
	for _, text := range texts {
		docs = append(docs, map[string]any{"_source": map[string]string{"body": text}})
	}
	body, err := json.Marshal(map[string]any{"docs": docs, "pipeline": map[string]any{
		"processors": []any{map[string]any{"fingerprint": map[string]any{"fields": []string{"body"}, "target_field": "key"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Docs []struct {
			Doc struct {
				Source struct{ Key string } `json:"_source"`
			}
		}
	}
	decode(t, call(t, e, "POST", e.URL+"/_ingest/pipeline/_simulate", string(body)).want(t, 200).body, &made)
	for _, d := range made.Docs {
		keys = append(keys, d.Doc.Source.Key)
	}
	if len(keys) != len(texts) {
		t.Fatalf("%d keys", len(keys))
	}
	return keys
}

// TestComparisonCollapseTakesAStoredKey: no text, no list, and no value that is computed as the search runs can be collapsed by,
// so a key has to be written into each document beforehand.
func TestComparisonCollapseTakesAStoredKey(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := ownDesk(t, e)
		d.create(1)
		d.add(d.direct, articles(strewn(20, 0.5)...))
		call(t, e, "PUT", e.URL+"/"+d.index+"/_doc/many?refresh=true", `{"kind":["a","b"],"dup":"many","n":99}`).want(t, 201)
		d.refused("a text", `{"collapse":{"field":"body"}}`, "collapse", "")
		d.refused("the id", `{"collapse":{"field":"_id"}}`, "collapse", "")
		d.refused("a list", `{"collapse":{"field":"kind"}}`, "single valued", "")
		computed := map[string]string{engines.Elasticsearch: "runtime_mappings", engines.OpenSearch: "derived"}[e.Kind]
		made := `{"` + computed + `":{"made":{"type":"keyword","script":{"source":"emit(doc['dup'].value)"}}}`
		call(t, e, "POST", e.URL+"/"+d.index+"/_search", made+`,"query":{"term":{"made":"d0001"}}}`).want(t, 200)
		d.refused("a computed value", made+`,"collapse":{"field":"made"}}`, "collapse", "")
	})
}

// TestComparisonCollapsePages is about what the engine's collapse does well: by from and size, and in a point in time, its pages
// are full and show each group once; a cardinality counts them; and where they end.
func TestComparisonCollapsePages(t *testing.T) {
	atOnce(t, elasticKinds, func(t *testing.T, e *engines.Engine) {
		d := ownDesk(t, e)
		d.create(3)
		d.add(d.direct, articles(strewn(150, 0.5)...))
		want := firstOf(d.texts(), d.raw())
		var got, inPIT []string
		pit := openPIT(t, e, e.URL, d.index)
		for from := 0; from < len(want); from += 10 {
			got = append(got, d.collapsing(from, 10).ids...)
			page := fmt.Sprintf(`{"pit":{"id":%q},"from":%d,"size":10,"sort":[{"n":"asc"}],"collapse":{"field":"dup"}}`, pit, from)
			inPIT = append(inPIT, d.read(call(t, e, "POST", e.URL+"/_search", page).want(t, 200)).ids...)
		}
		for name, list := range map[string][]string{"pages": got, "pages in a point in time": inPIT} {
			if diff := cmp.Diff(want, list); diff != "" {
				t.Errorf("%s: the first of each group (-), the engine's (+):\n%s", name, diff)
			}
		}
		counted := d.search(d.direct, `{"size":0,"aggs":{"groups":{"cardinality":{"field":"dup"}}}}`, "")
		if !strings.Contains(string(counted.body), fmt.Sprintf(`"value":%d}`, len(want))) {
			t.Errorf("%d groups are counted as %s", len(want), counted.body)
		}
		d.checkEnds(want)
	})
}

// checkEnds holds where a walk through the engine's groups ends: at the result window by ranks, and by a cursor under the key
// alone or not at all.
func (d *desk) checkEnds(want []string) {
	d.t.Helper()
	d.refused("beyond the window", `{"from":9995,"size":10,"collapse":{"field":"dup"}}`, "Result window is too large", "")
	after := func(last string) string {
		return `{"size":10,"sort":[{"dup":"asc"}],"search_after":` + last + `,"collapse":{"field":"dup"}}`
	}
	if d.e.Kind == engines.OpenSearch {
		d.refused("a cursor by the key", after(`[""]`), "search_after", "")
		return
	}
	var got []string
	for f := d.search(d.direct, after(`[""]`), ""); len(f.ids) > 0; f = d.search(d.direct, after(f.sort), "") {
		got = append(got, of(d.texts(), f.ids)...)
	}
	keys := of(d.texts(), want)
	slices.Sort(keys)
	if diff := cmp.Diff(keys, got); diff != "" {
		d.t.Errorf("a walk by the key: the groups (-), the engine's (+):\n%s", diff)
	}
}

package typesense

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestRealPrepareAll: whatever a schema is like, our fields are declared as the rule needs them, or the operator is told why not.
func TestRealPrepareAll(t *testing.T) {
	const auto = `{"name":"NAME","fields":[{"name":".*","type":"auto"}]}`
	with := func(field string) string { return strings.Replace(articles, `"fields":[`, `"fields":[`+field+`,`, 1) }
	for name, c := range map[string]struct{ schema, document, why string }{
		"plain":                      {articles, "", ""},
		"auto":                       {auto, "", ""},
		"auto and all detected":      {auto, `{"title":"x","neardup_sketch":"a","neardup_bands":[1,2],"neardup_cluster":"c"}`, ""},
		"auto and cluster detected":  {auto, `{"title":"x","neardup_cluster":"c"}`, ""},
		"sketch declared":            {with(sketchField.declaration()), "", ""},
		"sketch a number":            {with(`{"name":"neardup_sketch","type":"int32","optional":true}`), "", "is declared as int32"},
		"sketch indexed":             {with(`{"name":"neardup_sketch","type":"string","optional":true}`), "", "is indexed"},
		"stored sketch a number":     {articles, `{"title":"x","body":"y","n":1,"neardup_sketch":5}`, "cannot be coerced"},
		"cluster without facet":      {with(`{"name":"neardup_cluster","type":"string","optional":true}`), "", "is no facet"},
		"cluster a number":           {with(`{"name":"neardup_cluster","type":"int32","optional":true}`), "", "is declared as int32"},
		"bands a single number":      {with(`{"name":"neardup_bands","type":"int64","optional":true}`), "", "is declared as int64"},
		"bands not indexed":          {with(`{"name":"neardup_bands","type":"int64[]","index":false,"optional":true}`), "", "is not indexed"},
		"stored bands of other type": {articles, `{"title":"x","body":"y","n":1,"neardup_bands":"x"}`, "neardup_bands"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.schema, "title").whole()
			if c.document != "" {
				b.must(201)(b.direct("POST", documentsPath, c.document))
			}
			if got, err := b.store().Resolve(t.Context(), b.collection); err != nil || len(got) != 1 || got[0].Ready {
				t.Errorf("before: %+v %v", got, err)
			}
			for range 2 {
				got, err := b.store().Prepare(t.Context(), b.collection, false)
				if err != nil || len(got) != 1 || got[0].Ready != (c.why == "") || !strings.Contains(got[0].Why, c.why) {
					t.Fatalf("%+v %v", got, err)
				}
			}
			if c.why != "" {
				return
			}
			b.must(201)(b.direct("POST", documentsPath, `{"id":"new","title":"x","body":"y","n":1,"neardup_bands":[4294967295,7],"neardup_cluster":"c7"}`))
			search := documentsPath + "/search?q=*&filter_by=neardup_bands:[4294967295]&group_by=neardup_cluster"
			if reply := b.must(200)(b.direct("GET", search, "")); !strings.Contains(reply, `"group_key":["c7"]`) {
				t.Error(reply)
			}
		})
	}
}

// TestRealSchemaInPassing: a collection that is made through the sidecar has what the rule needs from the start, and the client
// sees its own schema.
func TestRealSchemaInPassing(t *testing.T) {
	b := newBench(t, articles, "body").whole()
	b.must(200)(b.direct("DELETE", "/collections/NAME", ""))
	d, r := Dialect{}, b.request("POST", "/collections", articles)
	var body strings.Builder
	expect.Value(d.EnrichWrite(d.Classify(r), &body, strings.NewReader(string(r.Body)), adaptertest.Unprepared(b.rule), 1<<30))(t)
	b.must(201)(b.direct("POST", "/collections", body.String()))
	if got, err := b.store().Resolve(t.Context(), b.collection); err != nil || len(got) != 1 || !got[0].Ready {
		t.Errorf("%+v %v", got, err)
	}
	var shown struct{ Fields []json.RawMessage }
	reply := b.must(200)(b.through("GET", "/collections/NAME", ""))
	if err := json.Unmarshal([]byte(reply), &shown); err != nil || len(shown.Fields) != 3 || rule.NamesOurs([]byte(reply)) {
		t.Errorf("%s %v", reply, err)
	}
}

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

const (
	tsField = `{"name":"title","type":"string"}`
	tsOurs  = `{"name":"neardup_sketch","type":"string","index":false,"optional":true}`
)

// schemaSteps make, change and drop collections and aliases; what stands there is shown in between.
var schemaSteps = []struct {
	name     string
	steps    []string
	declared []string // the collections in which our field is to stand at the end, as we declare it
}{
	{name: "creations", declared: []string{"INDEX", "INDEX-c", "INDEX-d"}, steps: []string{
		`POST /collections | { "name" : "INDEX" , "fields" : [ ` + tsField + ` , {"name":"n","type":"int32","facet":true} ] , "default_sorting_field":"n","symbols_to_index":["+"],"token_separators":["-"],"enable_nested_fields":true,"unknown":5}`,
		"GET /collections/INDEX |", `POST /collections | {"name":"INDEX","fields":[` + tsField + `]}`, `POST /collections?src_name=INDEX | {"name":"INDEX-c"}`, `POST /collections?src_name=INDEX | {"name":"INDEX-c"}`, `POST /collections?src_name=none | {"name":"INDEX-z"}`,
		"GET /collections/INDEX-c |", `POST /collections/ | \xef\xbb\xbf{"fields":[` + tsField + `],"name":"INDEX-d"} `, "GET /collections/INDEX-d/ |",
		`POST /collections | {"name":"INDEX-e","fields":[]}`, `POST /collections | {"name":"INDEX-e"}`, `POST /collections | {"name":"INDEX-e","fields":5}`, `POST /collections | {"fields":[` + tsField + `]}`, `POST /collections | {"name":5,"fields":[` + tsField + `]}`,
		`POST /collections | {"name":"","fields":[` + tsField + `]}`, `POST /collections | not JSON`, `POST /collections | []`, `POST /collections |`, `POST /collections | {"name":"INDEX-e","fields":[{"name":"title","type":"strin"}]}`,
		`POST /collections | {"name":"INDEX-e","fields":[{"name":"title"}]}`, `POST /collections | {"name":"INDEX-e","fields":[` + tsField + `,5]}`, `POST /collections | {"name":"INDEX-e","fields":[` + tsField + `,` + tsField + `]}`,
		`POST /collections | {"name":"INDEX-e","fields":[{"name":"title","type":"string","index":false}]}`, `POST /collections | {"name":"INDEX-e","fields":[` + tsField + `],"default_sorting_field":"none"}`, `POST /collections | {"name":"INDEX-e","fields":[` + tsField + `]} // x`,
		`PUT /collections/INDEX | {}`, `DELETE /collections |`, `DELETE /collections/none |`,
	}},
	{name: "fields named twice", declared: nil, steps: []string{
		`POST /collections | {"name":"INDEX","fields":[{"name":"x","type":"int32"}],"fields":[` + tsField + `]}`, "GET /collections/INDEX |", "DELETE /collections/INDEX |",
	}},
	{name: "our name taken", declared: []string{"INDEX"}, steps: []string{ // named by the client, it is shown
		`POST /collections | {"name":"INDEX","fields":[` + tsField + `,` + tsOurs + `]}`, `POST /collections | {"name":"INDEX-b","fields":[` + tsField + `,{"name":"neardup_sketch","type":"int32","optional":true}]}`,
		`POST /collections | {"name":"INDEX-e","fields":[` + tsOurs + `,` + tsOurs + `]}`, `POST /collections/INDEX-b/documents | {"id":"1","title":"a"}`, `PATCH /collections/INDEX-b/documents/1 | {"title":"b"}`,
	}},
	{name: "changes", declared: []string{"INDEX"}, steps: []string{
		`POST /collections | {"name":"INDEX","fields":[` + tsField + `]}`, `POST /collections/INDEX/documents | {"id":"1",` + wordsA + `}`, `PATCH /collections/INDEX | {"fields":[{"name":"n","type":"int32","optional":true}]}`,
		`PATCH /collections/INDEX | {"fields":[` + tsField + `]}`, `PATCH /collections/INDEX | {"fields":[{"name":"none","drop":true}]}`, `PATCH /collections/INDEX | {"fields":[]}`, `PATCH /collections/INDEX | {}`, `PATCH /collections/INDEX | x`,
		`PATCH /collections/none | {"fields":[` + tsField + `]}`, `PATCH /collections/INDEX | {"fields":[{"name":"n","drop":true},{"name":"title","drop":true}]}`, "GET /collections/INDEX |", `POST /collections/INDEX/documents | {"id":"2",` + wordsA + `}`,
		`PATCH /collections/INDEX | {"fields":[{"name":".*","type":"auto"}]}`, "GET /collections/INDEX |", `POST /collections/INDEX/documents | {"id":"3",` + wordsA + `,"m":1}`, "GET /collections/INDEX |", `PATCH /collections/INDEX | {"fields":[{"name":".*","drop":true}]}`,
		"GET /collections/INDEX |", "GET /collections/INDEX/documents/export |",
	}},
	{name: "aliases", declared: []string{"INDEX-c"}, steps: []string{
		`POST /collections | {"name":"INDEX","fields":[` + tsField + `]}`, `PUT /aliases/INDEX-a | {"collection_name":"INDEX"}`, `POST /collections/INDEX-a/documents | {"id":"1",` + wordsA + `}`, "GET /collections/INDEX-a |", "GET /collections/INDEX-a/documents/1 |",
		`PATCH /collections/INDEX-a | {"fields":[{"name":"n","type":"int32","optional":true}]}`, `PUT /aliases/INDEX | {"collection_name":"INDEX-a"}`, `PUT /aliases/INDEX-a | {"collection_name":"none"}`, `POST /collections/INDEX-a/documents | {"id":"1"}`, `PUT /aliases/INDEX-a | x`, `PUT /aliases/INDEX-a | {}`,
		`PUT /aliases/INDEX-a | {"collection_name":"INDEX"}`, `PUT /aliases/INDEX-b | {"collection_name":"INDEX-a"}`, `POST /collections/INDEX-b/documents/import?action=update | {"id":"1","title":"a part"}`, "GET /aliases/INDEX-b |", "GET /collections/INDEX-b/documents/search?q=*&query_by=title |",
		"DELETE /collections/INDEX-b |", "GET /collections/INDEX |", "GET /collections/INDEX-a |", "DELETE /aliases/INDEX-b |", "DELETE /aliases/INDEX-b |", `POST /collections | {"name":"INDEX-c","fields":[` + tsField + `]}`, `PUT /aliases/INDEX-a | {"collection_name":"INDEX-c"}`,
		`POST /collections/INDEX-a/documents/import | {"id":"1",` + wordsA + `}`, "GET /collections/INDEX-a/documents/export |", "DELETE /aliases/INDEX-a |", "GET /collections/INDEX-a |",
	}},
}

// TestTypesenseSchemasAreTheEnginesOwn makes, changes and drops collections and aliases directly and through the sidecar: the replies are
// the same, and our field stands, as it should, where a rule matches.
func TestTypesenseSchemasAreTheEnginesOwn(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "tsch-*"})}
	for i, c := range schemaSteps {
		t.Run(c.name, func(t *testing.T) {
			one, two := fmt.Sprintf("tsch-direct-%d", i), fmt.Sprintf("tsch-ourown-%d", i)
			for _, name := range []string{"", "-a", "-b", "-c", "-d", "-e"} {
				direct.dropBefore(t, one+name, two+name)
				call(t, e, "DELETE", e.URL+"/aliases/"+one+name, "")
				call(t, e, "DELETE", e.URL+"/aliases/"+two+name, "")
			}
			for _, step := range c.steps {
				alike(t, step, direct, through, one, two)
			}
			for _, name := range c.declared {
				if !declaredWell(t, direct, strings.ReplaceAll(name, "INDEX", two)) {
					t.Errorf("our field is not declared in %s as it should be", name)
				}
			}
		})
	}
	t.Run("a list of all", func(t *testing.T) {
		direct.dropBefore(t, "tsch-list")
		call(t, e, "POST", through.base+"/collections", `{"name":"tsch-list","fields":[`+tsField+`]}`).want(t, 201)
		list := call(t, e, "GET", through.base+"/collections", "").want(t, 200).body
		if strings.Contains(string(list), adapters.SketchField) || !strings.Contains(string(list), `"tsch-list"`) {
			t.Errorf("%.2000s", list)
		}
	})
	t.Run("no rule", func(t *testing.T) { // byte for byte as it was sent
		direct.dropBefore(t, "other-tsch")
		call(t, e, "POST", through.base+"/collections", `{"name":"other-tsch","fields":[`+tsField+`]}`).want(t, 201)
		if declaredWell(t, direct, "other-tsch") {
			t.Error("our field is declared where no rule matches")
		}
	})
}

// TestTypesenseCollectionsMadeElsewhere writes to collections that were made past the sidecar, with keys that may change their schema and
// with such as may not, and to one that takes fields up as they come.
func TestTypesenseCollectionsMadeElsewhere(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "tels-*"})}
	key := func(actions string) string { return newKey(t, e, actions, `"tels-.*"`) }
	rule := ruleOfTests(t)
	for i, c := range []struct {
		name, key, schema string
		declared, sketch  bool
	}{
		{"the whole key", e.Key, tsField, true, true},
		{"a key for schemas", key(`"documents:*","collections:*"`), tsField, true, true},
		{"a key that only reads schemas", key(`"documents:*","collections:get"`), tsField, false, false},
		{"a key for documents", key(`"documents:*"`), tsField, false, false},
		{"fields as they come", e.Key, `{"name":".*","type":"auto"}`, true, true},
		{"fields as they come, for documents alone", key(`"documents:*"`), `{"name":".*","type":"auto"}`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprint("tels-", i)
			direct.dropBefore(t, name)
			call(t, e, "POST", e.URL+"/collections", `{"name":"`+name+`","fields":[`+c.schema+`]}`).want(t, 201)
			as := []string{"X-Typesense-Api-Key", c.key}
			call(t, e, "POST", through.base+"/collections/"+name+"/documents", `{"id":"1",`+wordsA+`}`, as...).want(t, 201)
			call(t, e, "POST", through.base+"/collections/"+name+"/documents/import", `{"id":"2",`+wordsB+`}`, as...).want(t, 200)
			for id, h := range exported(t, direct, name) {
				if adapters.HasSketch(h.source) != c.sketch || wrong(rule, h.source) != "" {
					t.Errorf("%s: %s %s", id, wrong(rule, h.source), h.source)
				}
			}
			if declaredWell(t, direct, name) != c.declared {
				t.Errorf("declared: %v", !c.declared)
			}
			// What another has stored with a sketch, a part of a text clears, whatever the key may.
			source := call(t, e, "POST", e.URL+"/collections/"+name+"/documents?action=upsert", `{"id":"1",`+wordsA+`,"neardup_sketch":"`+sketchOfA(t)+`"}`).want(t, 201).body
			if !adapters.HasSketch(source) {
				t.Fatal(string(source))
			}
			call(t, e, "PATCH", through.base+"/collections/"+name+"/documents/1", `{"title":"a part"}`, as...).want(t, 201)
			if stored := direct.get(t, name, "1"); adapters.HasSketch(stored) {
				t.Errorf("a stale sketch stays: %s", stored)
			}
		})
	}
}

// sketchOfA is the sketch of wordsA.
func sketchOfA(t *testing.T) string {
	t.Helper()
	computed, _ := ruleOfTests(t).SketchOf([]byte("{" + wordsA + "}"))
	return computed.Text
}

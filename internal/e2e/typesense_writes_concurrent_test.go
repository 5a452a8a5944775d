package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
)

// typist makes up writes of a few documents of Typesense.
type typist struct {
	scribbler
	nested bool // the sketched fields are doc.title and tags, within objects
}

// members is the members of a document or of a part of one: values that fit the schema, and some that do not.
func (s typist) members() string {
	title, body := `"title":`+s.value(), `"body":`+s.value()
	if s.nested {
		title = s.of(`"doc":{"title":`+s.value()+`}`, `"doc":{"title":`+s.value()+`,"x":1}`, `"doc.title":`+s.value(), `"doc":{"x":2}`, `"doc":null`)
		body = s.of(`"tags":[{"t":`+s.value()+`},{"t":"a b"}]`, `"tags":[]`, `"tags":null`, `"tags":[{"t":`+s.value()+`}]`)
	}
	n := fmt.Sprintf(`"n":%d`, s.IntN(3))
	list := []string{title + "," + body, title + "," + body, title + "," + body + "," + n, body + "," + title, title, body, body + "," + n, n, n, ""}
	part := list[s.IntN(len(list))]
	if s.IntN(25) == 0 {
		part = strings.TrimSuffix(s.of(`"neardup_sketch":"forged",`, `"neardup_sketch":null,`, `"neardup_sketch":5,`)+part, ",")
	}
	if s.IntN(40) == 0 {
		part = strings.Replace(part, "e", "\xff", 1)
	}
	return part
}

func (s typist) value() string {
	if s.IntN(20) == 0 {
		return s.of("5", "1.5", "true", `["a","b"]`, `{"a":1}`, `"12"`, `""`)
	}
	return s.text()
}

// document is a whole document or a part of one with its id, which a few lack.
func (s typist) document() string {
	id := fmt.Sprintf(`"id":%q`, s.id())
	if s.IntN(50) == 0 {
		id = `"id":5`
	}
	return s.of("", "", "", " ") + strings.TrimSuffix("{"+id+","+s.members(), ",") + s.of("}", "}", " }")
}

// options are parameters of a write.
func (s typist) options(actions ...string) string {
	return "?action=" + s.of(actions...) + s.of("", "", "", "&dirty_values="+s.of("drop", "coerce_or_drop", "coerce_or_reject", "reject", "Coerce_Or_Drop"))
}

var actions = []string{"create", "upsert", "upsert", "update", "update", "update", "emplace", "emplace"}

// step is a request to a collection.
func (s typist) step(collection string) string {
	path := "/collections/" + collection + "/documents"
	transfer := s.of("", "", "", " chunked", " mislabelled")
	switch s.IntN(12) {
	case 0, 1, 2:
		return "POST" + transfer + " " + path + s.options(actions...) + " | " + s.document()
	case 3, 4:
		return "PATCH" + transfer + " " + path + "/" + s.id() + s.of("", "", "?dirty_values=coerce_or_drop") + " | {" + s.members() + "}"
	case 5:
		return "DELETE " + path + "/" + s.id() + " |"
	case 6:
		if s.IntN(5) == 0 {
			return "DELETE " + path + "?filter_by=n:" + fmt.Sprint(s.IntN(3)) + " |"
		}
	}
	var lines strings.Builder
	for range 1 + s.IntN(12) {
		lines.WriteString(s.of(s.document(), s.document(), s.document(), s.document(), s.document(), s.document(), s.document(), "", "{bad", s.document()+"\r") + "¶")
	}
	more := s.of("", "", "&return_doc=true", "&return_id=true", "&batch_size=2")
	return "POST" + transfer + " " + path + "/import" + s.options(actions...) + more + " | " + strings.TrimSuffix(lines.String(), s.of("", "¶"))
}

// schemasOfTexts are the schemas of collections in which the tests' texts can stand.
var schemasOfTexts = map[string]string{
	"declared":   `"fields":[` + tsTexts + `]`,
	"as it came": `"fields":[{"name":".*","type":"auto"},{"name":"n","type":"int32","optional":true}]`,
	"as texts":   `"fields":[{"name":"title|body","type":"string*"},{"name":"n","type":"int32","optional":true}]`,
	"unindexed":  `"fields":[{"name":"title","type":"string","index":false,"optional":true},{"name":"n","type":"int32","optional":true}]`,
	"objects": `"enable_nested_fields":true,"fields":[{"name":"doc.title","type":"string","optional":true},{"name":"tags","type":"object[]","optional":true},` +
		`{"name":"n","type":"int32","optional":true}]`,
	"objects as they come": `"enable_nested_fields":true,"fields":[{"name":".*","type":"auto"},{"name":"n","type":"int32","optional":true}]`,
}

// serveTypes starts a sidecar for a schema's sketched fields, and returns the rule too.
func serveTypes(t *testing.T, e *engines.Engine, s setup, nested bool) (base string, rule *rule.Rule) {
	t.Helper()
	rule = ruleOfTests(t)
	if nested {
		rule.Fields, s.fields = []string{"doc.title", "tags.t"}, "doc.title, tags.t"
	}
	return serve(t, e, s), rule
}

// TestTypesenseConcurrentWrites has several clients write the same few documents through the sidecar at once in every way. Whatever sketch
// stands anywhere at any moment is that of the text that stands there.
func TestTypesenseConcurrentWrites(t *testing.T) {
	lasting := time.Second
	if soaking() {
		lasting = time.Minute
	}
	seed := effort.Seed(t)
	e := engines.Shared(t, engines.Typesense)
	for name, schema := range schemasOfTexts {
		t.Run(name, func(t *testing.T) {
			nested := strings.Contains(schema, "enable_nested")
			base, matched := serveTypes(t, e, setup{match: "tcon-*"}, nested)
			direct, through := api{e, e.URL}, api{e, base}
			collection := "tcon-" + strings.ReplaceAll(name, " ", "-")
			direct.dropBefore(t, collection)
			call(t, e, "POST", e.URL+"/collections", `{"name":"`+collection+`",`+schema+`}`).want(t, 201)
			var done atomic.Int64
			var all sync.WaitGroup
			began := time.Now()
			going := func() bool {
				return (time.Since(began) < lasting || done.Load() < 100 && time.Since(began) < time.Minute) && !t.Failed()
			}
			for client := range 6 {
				all.Go(func() {
					s := typist{scribbler{rand.New(rand.NewPCG(seed, uint64(client))), 25}, nested}
					for going() {
						step := s.step(collection)
						if r := through.send(t, step, collection); r.status < 300 {
							done.Add(1)
						} else if r.status >= 500 || r.status == http.StatusUnauthorized {
							t.Errorf("%.300s: %d %.300s", step, r.status, r.body)
						}
					}
				})
			}
			judged, sketches := 0, 0
			judge := func() {
				for id, h := range exported(t, direct, collection) {
					if why := wrong(matched, h.source); why != "" || strings.Contains(string(h.source), `"neardup_sketch":"forged`) {
						t.Errorf("%s: %s: %s", id, why, h.source)
					}
					if judged++; rule.HasSketch(h.source) {
						sketches++
					}
				}
			}
			for going() {
				judge()
				time.Sleep(20 * time.Millisecond)
			}
			all.Wait()
			judge()
			t.Logf("%d writes done; of %d documents judged %d have a sketch", done.Load(), judged, sketches)
			if done.Load() < 100 || sketches < judged/50 {
				t.Error("too little was done")
			}
			if !declaredWell(t, direct, collection) {
				t.Error("our field is not declared as it should be")
			}
		})
	}
}

// TestTypesenseWritesAtRandom sends random writes directly to one collection and through the sidecar to another of the same schema: the
// replies and what is stored are the same but for the sketches, which are right.
func TestTypesenseWritesAtRandom(t *testing.T) {
	rounds := 60
	if soaking() {
		rounds = 5000
	}
	seed := effort.Seed(t)
	e := engines.Shared(t, engines.Typesense)
	for name, schema := range schemasOfTexts {
		t.Run(name, func(t *testing.T) {
			nested := strings.Contains(schema, "enable_nested")
			base, r := serveTypes(t, e, setup{match: "trnd-*"}, nested)
			direct, through := api{e, e.URL}, api{e, base}
			one, two := "trnd-direct", "trnd-ourown"
			direct.dropBefore(t, one, two)
			create := `POST /collections | {"name":"INDEX",` + schema + `}`
			alike(t, create, direct, through, one, two)
			s := typist{scribbler{rand.New(rand.NewPCG(seed, 0)), 25}, nested}
			sketches := 0
			for range rounds {
				step := s.step("INDEX")
				for strings.Contains(step, "neardup_sketch") && strings.Contains(schema, ".*") { // directly it becomes a field of the schema
					step = s.step("INDEX")
				}
				alike(t, step, direct, through, one, two)
				if s.IntN(10) == 0 {
					alike(t, "GET /collections/INDEX/documents/export |", direct, through, one, two)
				}
				if t.Failed() {
					t.Fatalf("after %.1000s", step)
				}
			}
			for id, h := range exported(t, direct, two) {
				same(t, "", wrong(r, h.source), "%s: %s", id, h.source)
				if rule.HasSketch(h.source) {
					sketches++
				}
			}
			alike(t, "GET /collections/INDEX |", direct, through, one, two)
			t.Logf("%d sketches at the end", sketches)
		})
	}
}

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
		if strings.Contains(string(list), rule.SketchField) || !strings.Contains(string(list), `"tsch-list"`) {
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
	r := ruleOfTests(t)
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
				if rule.HasSketch(h.source) != c.sketch || wrong(r, h.source) != "" {
					t.Errorf("%s: %s %s", id, wrong(r, h.source), h.source)
				}
			}
			same(t, c.declared, declaredWell(t, direct, name), "declared")
			// What another has stored with a sketch, a part of a text clears, whatever the key may.
			source := call(t, e, "POST", e.URL+"/collections/"+name+"/documents?action=upsert", `{"id":"1",`+wordsA+`,"neardup_sketch":"`+sketchOfA(t)+`"}`).want(t, 201).body
			if !rule.HasSketch(source) {
				t.Fatal(string(source))
			}
			call(t, e, "PATCH", through.base+"/collections/"+name+"/documents/1", `{"title":"a part"}`, as...).want(t, 201)
			if stored := direct.get(t, name, "1"); rule.HasSketch(stored) {
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

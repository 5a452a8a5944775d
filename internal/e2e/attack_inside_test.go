package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
)

// inside is a way to have a value of our field stored that does not stand in a document that the sidecar reads, or that it may not change.
type inside struct {
	name string
	// steps are requests through the sidecar, each a method, a path and a body, or past it where one begins with "past". One is "signed", or
	// "keyed" with a key to write alone. ID stands for the document's id, INDEX for the index, FREE for one without a rule, TEXT for a text, and
	// FORGED for the sketch of another one.
	steps []string
	// kept says that it is stored: docs/limits.md lists the way.
	kept bool
}

const (
	wholeText   = `"title":"news","body":"TEXT"`
	wholeForged = `{` + wholeText + `,"neardup_sketch":"FORGED"}`
	putText     = `PUT /INDEX/_doc/ID {` + wholeText + `}`
	setForged   = `{"source":"ctx._source.neardup_sketch = params.s","params":{"s":"FORGED"}}`
	onlyID      = `"query":{"ids":{"values":["ID"]}}`
	seen        = `POST /INDEX,FREE/_refresh`
)

var insideElastic = []inside{
	{"a script", []string{putText, `POST /INDEX/_update/ID {"script":` + setForged + `}`}, true},
	{"a script in a bulk", []string{putText, `POST /_bulk {"update":{"_index":"INDEX","_id":"ID"}}¶{"script":` + setForged + `}¶`}, true},
	{"a stored script", []string{putText, `PUT /_scripts/FREE {"script":{"lang":"painless","source":"ctx._source['neardup' + '_sketch'] = params.s"}}`,
		`POST /INDEX/_update/ID {"script":{"id":"FREE","params":{"s":"FORGED"}}}`, `DELETE /_scripts/FREE`}, true},
	{"a script over an upsert", []string{`POST /INDEX/_update/ID {"scripted_upsert":true,"script":` + setForged + `,"upsert":{` + wholeText + `}}`}, true},
	{"an update by query with a script", []string{putText, seen, `POST /INDEX/_update_by_query {` + onlyID + `,"script":` + setForged + `}`}, true},
	{"an update by query with a pipeline", []string{putText, seen, `POST /INDEX/_update_by_query?pipeline=INDEX-set {` + onlyID + `}`}, true},
	{"a copy from an index without a rule", []string{`PUT /FREE/_doc/ID ` + wholeForged, seen,
		`POST /_reindex {"source":{"index":"FREE",` + onlyID + `},"dest":{"index":"INDEX"}}`}, true},
	{"a copy with a script", []string{`PUT /FREE/_doc/ID {` + wholeText + `}`, seen,
		`POST /_reindex {"source":{"index":"FREE",` + onlyID + `},"dest":{"index":"INDEX"},"script":` + setForged + `}`}, true},
	{"a pipeline of the request", []string{`PUT /INDEX/_doc/ID?pipeline=INDEX-set {` + wholeText + `}`}, true},
	{"a pipeline that renames", []string{`PUT /INDEX/_doc/ID?pipeline=INDEX-rename {` + wholeText + `,"x":"FORGED"}`}, true},
	{"a pipeline of an action", []string{`POST /_bulk {"index":{"_index":"INDEX","_id":"ID","pipeline":"INDEX-set"}}¶{` + wholeText + `}¶`}, true},
	{"the default pipeline", []string{`PUT /INDEX/_settings {"index.default_pipeline":"INDEX-set"}`, putText,
		`PUT /INDEX/_settings {"index.default_pipeline":null}`}, true},
	{"the final pipeline", []string{`PUT /INDEX/_settings {"index.final_pipeline":"INDEX-set"}`, putText,
		`PUT /INDEX/_settings {"index.final_pipeline":null}`}, true},
	{"a pipeline that sends it on", []string{`PUT /FREE/_doc/ID?pipeline=INDEX-move ` + wholeForged}, true},
	{"a write past the sidecar", []string{`past PUT /INDEX/_doc/ID ` + wholeForged}, true},
	{"a signed write", []string{`signed PUT /INDEX/_doc/ID ` + wholeForged}, true},

	{"an alias of its own", []string{`PUT /INDEX/_alias/FREE-one`, `PUT /FREE-one/_doc/ID ` + wholeForged}, false},
	{"an alias of two indices", []string{`POST /_aliases {"actions":[{"add":{"index":"FREE","alias":"FREE-two"}},` +
		`{"add":{"index":"INDEX","alias":"FREE-two","is_write_index":true}}]}`, `PUT /FREE-two/_doc/ID ` + wholeForged}, false},
	{"a pipeline that does nothing", []string{`PUT /INDEX/_doc/ID?pipeline=_none ` + wholeForged}, false},
	{"a script beside a document", []string{putText, `POST /INDEX/_update/ID {"script":"ctx._source.n=1","upsert":` + wholeForged + `}`}, false},
}

func insideTypesense() []inside {
	const documents = `POST /collections/INDEX/documents`
	const whole = `{"id":"ID",` + wholeText + `,"neardup_sketch":"FORGED"}`
	list := []inside{
		{"a write past the sidecar", []string{`past ` + documents + ` ` + whole}, true},
		{"a signed write", []string{`signed ` + documents + ` ` + whole}, true},
		{"an alias of its own", []string{`PUT /aliases/FREE-one {"collection_name":"INDEX"}`, `POST /collections/FREE-one/documents ` + whole}, false},
		{"a document that nests deeper than others are read", []string{documents + ` ` + strings.Replace(whole, `{`, `{"deep":`+
			strings.Repeat("[", 66_000)+strings.Repeat("]", 66_000)+`,`, 1)}, false},
		{"a key that sees no schema", []string{`keyed ` + documents + ` ` + whole}, false},
		{"a key that sees no aliases", []string{`keyed POST /collections/FREE-one/documents ` + whole}, true},
	}
	for _, dirty := range []string{"coerce_or_reject", "coerce_or_drop", "drop", "reject"} {
		for _, action := range []string{"create", "upsert", "update", "emplace"} {
			first := documents + ` {"id":"ID",` + wholeText + `}`
			if action == "create" {
				first = "GET /health"
			}
			for _, title := range []string{`"news"`, `5`} { // which has to be coerced
				how := "?action=" + action + "&dirty_values=" + dirty + " "
				odd := strings.Replace(whole, `"news"`, title, 1)
				list = append(list, inside{action + " of " + title + " with " + dirty, []string{first, documents + how + odd}, false},
					inside{"import, " + action + " of " + title + " with " + dirty, []string{first, documents + "/import" + how + odd}, false})
			}
		}
	}
	return list
}

// TestAttackInside has the engine itself store another document's sketch, in each way that a writer has beside sending it. What is stored is what
// docs/limits.md says, verify finds it all, and the jobs mend it. (TestAttackForged and TestAttackFormats send it.)
func TestAttackInside(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index, free = "satk-inside", "unruled-inside"
		direct, value, list := api{e, e.URL}, stolen(t), insideElastic
		if direct.typesense() {
			list = insideTypesense()
		}
		file := config(t, e, setup{match: index})
		through := api{e, serveFile(t, file)}
		for _, name := range []string{index, free} {
			through.create(t, name)
		}
		if !direct.typesense() {
			pipelines(t, direct, index, value)
		}
		random := rand.New(rand.NewPCG(12, 13))
		fill := func(step, id, text string) string {
			return strings.NewReplacer("INDEX", index, "FREE", free, "FORGED", value, "ID", id, "TEXT", text, "¶", "\n").Replace(step)
		}
		through.loadLines(t, index, victimLine(direct, index))
		kept := 0
		for i, way := range list {
			id, text := fmt.Sprintf("i%d", i), uniqueText(random)
			for _, step := range way.steps {
				send(t, direct, through, fill(step, id, text))
			}
			values, found := "", false
			direct.refresh(t, index)
			if values, found = oursStored(t, direct, index, id); !found && way.kept {
				t.Errorf("%s: nothing is stored", way.name)
			}
			same(t, way.kept, strings.Contains(values, value), "%s: that a foreign sketch is stored, see docs/limits.md", way.name)
			if way.kept {
				kept++
			}
		}
		mend := []string{"reindex", "--config", file}
		if e.Kind == engines.Elasticsearch {
			mend = []string{"verify", "--repair", "--config", file}
		}
		folds, params := kept, ""
		if direct.typesense() { // where the texts are looked at: see rule.Judge
			folds, params = 0, "&exclude_fields=deep" // of which Go reads less
		}
		for _, folded := range []int{folds, 0} {
			if told := through.search(t, index, "*", 0, 200, params).outcome; !strings.Contains(told, fmt.Sprintf("folded=%d;", folded)) {
				t.Errorf("not %d fold: %s", folded, told)
			}
			if got := verify(t, file, index); got.Stale != kept || got.Scanned < len(list)/2 {
				t.Errorf("of %d foreign sketches verify finds %+v", kept, got)
			}
			succeed(t, mend...)
			kept = 0
			direct.refresh(t, index)
		}
	})
}

// send sends one step.
func send(t *testing.T, direct, through api, step string) {
	t.Helper()
	to, header := through, []string(nil)
	how, rest, _ := strings.Cut(step, " ")
	switch how {
	case "past":
		to, step = direct, rest
	case "signed":
		step = rest
		header = []string{"Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/eu/es/aws4_request, SignedHeaders=host, Signature=b"}
	case "keyed":
		step, header = rest, []string{"X-Typesense-Api-Key", newKey(t, direct.e, `"documents:*"`, `"*"`)}
	}
	method, rest, _ := strings.Cut(step, " ")
	path, body, _ := strings.Cut(rest, " ")
	if r := call(t, direct.e, method, to.base+path, body, header...); r.status >= 500 || r.status >= 300 && !direct.typesense() {
		t.Errorf("%.200s is answered with %d: %.500s", step, r.status, r.body)
	}
}

// pipelines makes ingest pipelines that bring another document's sketch into an index.
func pipelines(t *testing.T, direct api, index, value string) {
	for name, processor := range map[string]string{
		"set":    `"set":{"field":"neardup_sketch","value":"` + value + `"}`,
		"rename": `"remove":{"field":"neardup_sketch"}},{"rename":{"field":"x","target_field":"neardup_sketch"}`,
		"move":   `"set":{"field":"_index","value":"` + index + `"}`,
	} {
		path := "/_ingest/pipeline/" + index + "-" + name
		call(t, direct.e, "PUT", direct.base+path, `{"processors":[{`+processor+`}]}`).want(t, 200)
		t.Cleanup(func() { direct.clear(t, path) })
	}
}

// victimLine is the document whose sketch is taken, as a line of a load.
func victimLine(a api, index string) string {
	document := `{"id":"victim","title":"news","body":"` + victimText + "\"}\n"
	if a.typesense() {
		return document
	}
	return `{"index":{"_index":"` + index + `","_id":"victim"}}` + "\n" + document
}

// uniqueText returns a text that resembles no other.
func uniqueText(r *rand.Rand) string {
	var words []string
	for range 25 {
		words = append(words, fmt.Sprintf("w%x", r.Uint32()))
	}
	return strings.Join(words, " ")
}

// TestAttackLong writes documents to Typesense that the sidecar can't hold, with another document's sketch, and long updates of texts that have
// one. None of them has a sketch afterwards, and all else of it is stored.
func TestAttackLong(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const index = "satk-long"
	direct, value, random := api{e, e.URL}, stolen(t), rand.New(rand.NewPCG(14, 15))
	through := api{e, serve(t, e, setup{match: index, limits: "{max_held: 2MB}"})}
	through.create(t, index)
	padding := strings.Repeat("pad ", 400<<10) // with that, a document is more than one client's share
	for _, action := range []string{"create", "upsert", "update", "emplace"} {
		for _, path := range []string{"/documents", "/documents/import"} {
			id, text := action+strings.ReplaceAll(path, "/", "-"), uniqueText(random)
			if action != "create" {
				through.loadLines(t, index, `{"id":"`+id+`","title":"news","body":"`+uniqueText(random)+"\"}\n")
			}
			long := `{"id":"` + id + `","title":"news","neardup_sketch":"` + value + `","padding":"` + padding + `","body":"` + text + `","near` + "\xff" + `dup_sketch":"` + value + `"}`
			if r := call(t, e, "POST", through.base+"/collections/"+index+path+"?action="+action, long); r.status >= 300 || strings.Contains(string(r.body), `"success":false`) {
				t.Errorf("%s is refused: %d %.200s", id, r.status, r.body)
			}
			values, _ := oursStored(t, direct, index, id)
			if !strings.Contains(values, text) || !strings.Contains(values, padding) {
				t.Errorf("%s is not stored whole", id)
			}
			if strings.Contains(strings.ReplaceAll(values, `"neardup_sketch":null`, ""), "neardup_sketch") {
				t.Errorf("%s has a sketch, of which it has the foreign one: %v", id, strings.Contains(values, value))
			}
		}
	}
}

// TestAttackCluster gives a document with its own sketch another one's cluster, by a script. Searches in native mode fold it, and verify can't tell that
// it is no member; the next job that makes clusters does.
func TestAttackCluster(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	const index = "satk-cluster"
	direct := api{e, e.URL}
	file := config(t, e, setup{match: index, rule: "bands: auto\nnative: true"})
	through := api{e, serveFile(t, file)}
	through.create(t, index)
	through.loadLines(t, index, victimLine(direct, index)+
		`{"index":{"_index":"`+index+`","_id":"thief"}}`+"\n"+`{"id":"thief","title":"news","body":"`+craftedText+"\"}\n")
	folds := func(n int) {
		t.Helper()
		direct.refresh(t, index)
		if told := through.search(t, index, "*", 0, 10, "").outcome; !strings.Contains(told, fmt.Sprintf("folded=%d;", n)) || !strings.Contains(told, "native") {
			t.Errorf("not %d fold: %s", n, told)
		}
	}
	folds(0)
	cluster := rule.OursOf(direct.get(t, index, "victim")).Cluster
	call(t, e, "POST", through.base+"/"+index+"/_update/thief", `{"script":{"source":"ctx._source.neardup_cluster = params.c","params":{"c":"`+cluster+`"}}}`).want(t, 200)
	folds(1)
	if got, code := inspect(t, file); code != 0 || got.Right != 2 {
		t.Errorf("verify ended with %d: %+v", code, got)
	}
	succeed(t, "cluster", "--config", file, "--index", index, "--write")
	folds(0)
}

// TestAttackMappings has mappings fill our field, where no document shows it: verify says how, whatever the documents hold, and a mapping that
// fills other fields is none of its business.
func TestAttackMappings(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		direct, value := api{e, e.URL}, stolen(t)
		file := config(t, e, setup{match: "satk-mapped-*"})
		through := api{e, serveFile(t, file)}
		for name, c := range map[string]struct {
			mapping, says string
			folds         int
		}{
			"copy": {`"properties":{"o":{"properties":{"x":{"type":"keyword","copy_to":["y","neardup_sketch"]}}},"y":{"type":"keyword"}}`,
				"o.x is copied to neardup_sketch (copy_to)", 1},
			"alias": {`"properties":{"o":{"properties":{"x":{"type":"keyword"}}},"neardup_sketch":{"type":"alias","path":"o.x"}}`,
				"neardup_sketch is an alias of o.x", 2},
			"runtime": {`"runtime":{"neardup_sketch":{"type":"keyword","script":{"source":"def o = params._source.o; if (o != null) emit(o.x)"}}}`,
				"neardup_sketch is a runtime field", 2},
			"other": {`"properties":{"o":{"properties":{"x":{"type":"keyword","copy_to":"y"}}},"y":{"type":"keyword"},"z":{"type":"alias","path":"y"}}`, "", 0},
		} {
			if name == "runtime" && e.Kind == engines.OpenSearch {
				continue // it has none
			}
			index := "satk-mapped-" + name
			direct.drop(t, index)
			call(t, e, "PUT", through.base+"/"+index, `{"mappings":{`+c.mapping+`}}`).want(t, 200)
			for id, text := range map[string]string{"a": "", "b": "", "c": craftedText} { // c has a sketch of its own
				call(t, e, "PUT", through.base+"/"+index+"/_doc/"+id+"?refresh=true", `{"body":"`+text+`","o":{"x":"`+value+`"}}`).want(t, 201)
			}
			told := call(t, e, "POST", through.base+"/"+index+"/_search", `{}`).want(t, 200).header.Get("Neardup")
			if !strings.Contains(told, fmt.Sprintf("folded=%d;", c.folds)) {
				t.Errorf("%s: %s", name, told)
			}
			for _, more := range []string{"", "--repair"} {
				args := strings.Fields("verify --config " + file + " --index " + index + " " + more)
				if name == "alias" && more != "" {
					continue // it says that the index is not ready
				}
				out, code := sidecar(t, args...)
				if (code == 1) != (c.says != "") || code > 1 || !strings.Contains(out, c.says) || strings.Contains(out, "mapping") != (c.says != "") {
					t.Errorf("%s: verify %s ended with %d: %s", name, more, code, out)
				}
			}
		}
	})
}

package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	tsTexts  = `{"name":"title","type":"string","optional":true},{"name":"body","type":"string","optional":true},{"name":"n","type":"int32","optional":true}`
	tsMake   = `POST /collections | {"name":"INDEX","fields":[` + tsTexts + `]}`
	tsImport = "POST /collections/INDEX/documents/import"
	tsDocs   = "/collections/INDEX/documents"
)

// typesenseWrites are the ways to write of Typesense, as [written].
var typesenseWrites = []written{
	{name: "documents", steps: []string{
		tsMake, "POST " + tsDocs + ` | {"id":"1",` + wordsA + `,"n":1}`, "POST " + tsDocs + ` | {"id":"1",` + wordsB + `}`, "POST " + tsDocs + `?action=create | {` + wordsB + `}`,
		"POST " + tsDocs + `/?action=upsert | {"id":"1",` + wordsB + `,"n":2}`, "POST //collections//INDEX/documents//?action=upsert | {\"id\":\"2\"," + wordsA + "}",
		"POST " + tsDocs + `?action=update | {"id":"1",` + wordsA + `}`, "POST " + tsDocs + `?action=update | {"id":"1","n":5}`, "POST " + tsDocs + `?action=update | {"id":"none",` + wordsA + `}`,
		"POST " + tsDocs + `?action=update | {` + wordsA + `}`, "POST " + tsDocs + `?action=emplace | {"id":"3",` + wordsA + `}`, "POST " + tsDocs + `?action=emplace | {"id":"4","title":"a part"}`,
		"POST " + tsDocs + `?action=emplace | {"id":"3","n":7}`, "POST " + tsDocs + `?action=emplace | {` + wordsA + `}`, "PATCH " + tsDocs + `/2 | {"title":"another"}`, "PATCH " + tsDocs + `/3 | {"n":8}`,
		"PATCH " + tsDocs + `/3?action=upsert | {` + wordsB + `}`, "PATCH " + tsDocs + `/none | {"n":8}`, "PATCH " + tsDocs + `?filter_by=n:1 | {"title":"x"}`, "PUT " + tsDocs + `/3 | {"n":8}`,
		"POST " + tsDocs + `/3 | {"n":8}`, "POST " + tsDocs + `?action=destroy | {"id":"5"}`, "POST " + tsDocs + `?action= | {"id":"5"}`, "POST " + tsDocs + `?action=UPSERT | {"id":"5"}`,
		"POST " + tsDocs + `?action=update&action=upsert | {"id":"6",` + wordsA + `}`, "POST " + tsDocs + `?act%69on=update&action=up%73ert | {"id":"7",` + wordsA + `}`,
		"POST " + tsDocs + `?x=1&&action=update | {"id":"8",` + wordsA + `}`, "POST " + tsDocs + `?action=upsert;x=1 | {"id":"9",` + wordsA + `}`, "POST /collections/none/documents?collection=INDEX | {\"id\":\"10\"," + wordsA + "}",
		"POST " + tsDocs + ` | {"id":5,` + wordsA + `}`, "POST " + tsDocs + ` | {"id":"",` + wordsA + `}`, "POST " + tsDocs + ` | {"id":"a/b ü?#%",` + wordsA + `}`, "PATCH " + tsDocs + `/a%2Fb+%C3%BC%3F%23%25 | {"n":1}`,
		"GET " + tsDocs + `/a%2Fb%20%C3%BC%3F%23%25 |`, "POST " + tsDocs + ` | {"id":"search",` + wordsA + `}`, "PATCH " + tsDocs + `/import | {"n":1}`, "GET " + tsDocs + `/%73earch |`,
		"POST " + tsDocs + ` | {"id":"export",` + wordsA + `}`, "PATCH " + tsDocs + `/export | {"n":1}`, "DELETE " + tsDocs + `/export |`, "DELETE " + tsDocs + `/export |`, "DELETE " + tsDocs + `/search?return_doc=true |`,
		"DELETE " + tsDocs + `?filter_by=n:7&batch_size=1&return_doc=true&return_id=true |`, "DELETE " + tsDocs + ` |`, "DELETE " + tsDocs + `?filter_by=nosuch:1 |`,
		"GET " + tsDocs + "/1 |", "GET " + tsDocs + "/export |", "POST " + tsDocs + ` | {"id":"11"}`, "POST " + tsDocs + ` | {"id":"12","title":""}`, "POST /collections/none/documents | {\"id\":\"1\"}",
	}, lacks: []string{"2", "4", "11", "12"}},
	{name: "forms of JSON", steps: []string{
		tsMake, "POST " + tsDocs + " |", "POST " + tsDocs + " |  ¶ ", "POST " + tsDocs + " | [1]", "POST " + tsDocs + ` | "x"`, "POST " + tsDocs + ` | {"id":"1"} x`, "POST " + tsDocs + ` | {"id":"1"}¶{"id":"2"}`,
		"POST " + tsDocs + ` | {"id":"1",` + wordsA + `} // x`, "POST " + tsDocs + ` | {"id":"1","title":"a b"/* c */}`, "POST " + tsDocs + ` | {"id":"1","title":"a","z":1.}`, "POST " + tsDocs + ` | {"id":"1","title":"a","z":01}`,
		"POST " + tsDocs + ` | {"id":"1","title":"a","z":NaN}`, "POST " + tsDocs + ` | {"id":"1","title":"a","z":1e400}`, "POST " + tsDocs + ` | {"id":"1","title":"a\ud800"}`, "POST " + tsDocs + ` | {"id":"1","title":"a",}`,
		"POST " + tsDocs + ` | ¶{ "id" : "2" ,¶  "title" : "pretty" ,¶"n" : 1 }¶ `, "POST " + tsDocs + ` | \xef\xbb\xbf{"id":"3","title":"marked"}`, "POST " + tsDocs + ` | {"id":"4","title":"a\xff b"}`,
		"POST " + tsDocs + ` | {"id":"5",` + wordsA + `}`, "POST " + tsDocs + `?action=update | {"id":"5","tit\xffle":"new"}`, "POST " + tsDocs + ` | {"id":"6","title":"a","title":"b"}`,
		"POST " + tsDocs + ` | {"id":"7","neardup_sketch":"x","title":"a b","neardup_sketch":5}`, "POST " + tsDocs + ` | {"id":"8","neardup_sketch":["x"]}`, "POST " + tsDocs + `?action=update | {"id":"7","neardup_sketch":"forged"}`,
		"POST " + tsDocs + ` | {"id":"9","title":"a\u0000b","deep":` + strings.Repeat(`{"a":`, 90) + "1" + strings.Repeat("}", 90) + `}`, "POST " + tsDocs + " | {\"id\":\"10\",\"title\":\"a\x01b\"}",
		"POST " + tsDocs + ` | {"id":"11","t\u0069tle":"by an escape","big":9007199254740993,"small":1e-7,"f":1E+2,"z":-0}`, "POST " + tsDocs + ` | {"id":"12","neardup_sketch_of_mine":1,"title":"a b","é":"<>&/"}`,
		"POST " + tsDocs + ` | {"id":"13","title":null,"body":"b c"}`, "GET " + tsDocs + "/export |",
	}, lacks: []string{"4", "5", "6", "7", "8"}},
	{name: "imports", steps: []string{
		tsMake, tsImport + ` | {"id":"1",` + wordsA + `}`, tsImport + ` | {"id":"1",` + wordsA + `}   \t`, tsImport + " | {\"id\":\"1\"," + wordsA + "}\r¶{\"id\":\"1\"," + wordsA + "}\r",
		tsImport + ` | {"id":"1","title":"a\u00e9 \/ <>& \\\" é","neardup_sketch":"mine"} ¶{"id":"1","title":"b","title":"c"}¶{bad¶¶ ¶[1]¶"x"¶5¶null¶`, tsImport + ` | \xef\xbb\xbf{"id":"1","title":"a"}¶\xef\xbb\xbf{"id":"2","title":"a"}`,
		tsImport + ` | {"id":"1","title":"a\xff"}¶{"id":"1","title":"a\xe2\x80\xa8 \xed\xa0\x80"}¶{"id":"3","t\xffitle":"a b"}`, tsImport + `?action=update | {"id":"3","tit\xffle":"new"}¶{"id":"1"\xff,"title":"new"}¶{"id":"none","title":"\xff"}`,
		tsImport + `?action=bogus | {"id":"4","title":"a"}`, tsImport + `?action= | {"id":"4","title":"a"}`, tsImport + `?batch_size=0 | {"id":"4","title":"a"}`, tsImport + `?batch_size=x | {"id":"4","title":"a"}`,
		tsImport + `?batch_size=1&action=upsert | {"id":"4",` + wordsA + `}¶{"id":"4",` + wordsB + `}¶{"id":"5",` + wordsB + `}`, tsImport + `?dirty_values=bogus&remote_embedding_batch_size=x | {"id":"6",` + wordsA + `}`,
		tsImport + `?return_id=true&return_doc=true&action=upsert | {"id":"6",` + wordsA + `}¶{"id":"7","title":5,"body":"x"}¶{` + wordsA + `}`, tsImport + `?return_doc=true | {"id":"6",` + wordsA + `}¶{"id":"8","neardup_sketch":"mine"}`,
		tsImport + `?return_id=1 | {"id":"9"}`, tsImport + `?return_id=true | {"id":"6","neardup_sketch":"mine"}¶{"id":"6","neardup_sketch":"x","neardup_sketch":{"a":[1]},"title":"x y"}¶{"neardup_sketch":"last","id":"6"}`,
		tsImport + `?action=update&return_doc=true | {"id":"1","n":3}¶{"id":"4","title":"a part"}¶{"id":"5",` + wordsA + `}¶{"title":"x"}¶{"id":"404","title":"x"}¶{"id":5,"title":"x"}¶{"id":"6","n":"x"}`,
		tsImport + `?action=emplace | {"id":"10","title":"a part"}¶{"id":"11",` + wordsA + `}¶{"id":"11","n":1}¶{"id":"11","title":[1]}`, tsImport + " |", tsImport + " | ¶", tsImport + " | ¶¶¶",
		tsImport + `?action=upsert | {"id":"12","title":"a"} {"id":"13","title":"a"}¶{"id":"12","title":"a"} x¶{"id":"12","title":"a","z":1.}¶{"id":"12","title":"a"} // x¶{"id":"12","title":{"a":1}}`,
		tsImport + `/?action=upsert | {"id":"14",` + wordsA + `}¶`, "POST /collections/none/documents/import | {\"id\":\"1\"}", "PUT /collections/INDEX/documents/import | {}", "GET " + tsDocs + "/export |",
	}, lacks: []string{"1", "3", "4", "10"}},
	{name: "dirty values", steps: misfits()},
	{name: "transfers", steps: []string{
		tsMake, "POST gzip " + tsDocs + `/import | {"id":"1",` + wordsA + `}`, "POST gzip chunked " + tsDocs + `/import | {"id":"2",` + wordsA + `}`, "POST gzip " + tsDocs + ` | {"id":"3",` + wordsA + `}`,
		"POST mislabelled " + tsDocs + `/import | {"id":"4",` + wordsA + `}`, "POST mislabelled " + tsDocs + ` | {"id":"5",` + wordsA + `}`, "PATCH mislabelled " + tsDocs + `/5 | {"title":"a part"}`,
		"POST cbor " + tsDocs + ` | {"id":"6",` + wordsA + `}`, "POST chunked " + tsDocs + `/import | {"id":"7",` + wordsA + `}¶{"id":"8",` + wordsB + `}`, "POST expect " + tsDocs + `/import | {"id":"9",` + wordsA + `}¶`,
		"POST expect chunked " + tsDocs + ` | {"id":"10",` + wordsA + `}`, "POST gzip /collections | {\"name\":\"INDEX-z\",\"fields\":[" + tsTexts + "]}", "POST expect " + tsDocs + `?action=bogus | {"id":"11",` + wordsA + `}`,
		"POST accepting " + tsDocs + ` | {"id":"12",` + wordsA + `}`, "GET accepting " + tsDocs + "/export |",
	}, lacks: []string{"5"}},
	{name: "objects in documents", steps: []string{
		`POST /collections | {"name":"INDEX","enable_nested_fields":true,"fields":[` + tsTexts + `,{"name":"o","type":"object","optional":true},{"name":"l","type":"object[]","optional":true},{"name":"p","type":"geopoint","optional":true},{"name":"e.t","type":"string","infix":true,"optional":true},{"name":"v","type":"float[]","num_dim":2,"optional":true},{"name":"u","type":"string","index":false,"optional":true}]}`,
		"POST " + tsDocs + ` | {"id":"1",` + wordsA + `,"o":{"a":1,"neardup_sketch":"x"},"l":[{"t":"a","neardup_sketch":1}],"p":[48.8,2.3],"e":{"t":"x"},"v":[0.5,1],"u":"not indexed"}`, "PATCH " + tsDocs + `/1 | {"o":{"b":2}}`,
		"PATCH " + tsDocs + `/1 | {"l":[{"t":"b"},{"t":"c"}]}`, "PATCH " + tsDocs + `/1 | {"e.t":"y","p":[1,"x"]}`, "PATCH " + tsDocs + `/1 | {"e.t":"y"}`, tsImport + `?action=update&return_doc=true | {"id":"1","o":null}¶{"id":"1","p":5}¶{"id":"1","v":[1]}`,
		"GET " + tsDocs + "/1 |", "GET /collections/INDEX |", "GET " + tsDocs + "/export |",
	}},
	{name: "automatic schemas", steps: []string{
		`POST /collections | {"name":"INDEX","fields":[{"name":".*","type":"auto"}]}`, "POST " + tsDocs + ` | {"id":"1",` + wordsA + `,"x":7}`, "GET /collections/INDEX |", "POST " + tsDocs + ` | {"id":"2",` + wordsB + `,"x":"12"}`,
		"POST " + tsDocs + ` | {"id":"3","title":5,"body":"x","x":"12 apples"}`, "POST " + tsDocs + ` | {"id":"4","title":5,"body":"x"}`, tsImport + `?action=emplace&return_doc=true | {"id":"1","title":"a part"}¶{"id":"5","y":[1,2],"z":null}`,
		"GET /collections/INDEX |", "GET " + tsDocs + "/export |", "GET " + tsDocs + "/search?q=*&query_by=title&facet_by=x |",
	}, lacks: []string{"1", "4", "5"}},
	{name: "automatic texts", steps: []string{
		`POST /collections | {"name":"INDEX","fields":[{"name":".*","type":"string*"}]}`, tsImport + ` | {"id":"1",` + wordsA + `,"x":7}¶{"id":"2","title":["a b","c d"]}¶{"id":"3","title":"12","body":"1.5"}`, "GET /collections/INDEX |", "GET " + tsDocs + "/export |",
	}, lacks: []string{"3"}},
}

// misfits are documents whose values do not fit the schema, in every mode.
func misfits() []string {
	steps := []string{`POST /collections | {"name":"INDEX","fields":[{"name":"title","type":"string","optional":true},{"name":"body","type":"string[]","optional":true},{"name":"n","type":"int32","optional":true}]}`}
	for i, mode := range []string{"", "coerce_or_reject", "coerce_or_drop", "drop", "reject", "bogus", "COERCE_OR_DROP", "Drop"} {
		for j, values := range []string{
			`"title":5,"body":["b"]`, `"title":1.5,"body":[true,"x"]`, `"title":["x","y"],"body":["z"]`, `"title":{"a":1}`, `"title":null,"body":null`, `"title":"a b","body":"no list"`, `"title":"a b","body":["c",null,7]`,
			`"title":"a b","n":"5"`, `"title":"a b","n":"x"`, `"title":"","body":[]`, `"body":[["c"]]`, `"neardup_sketch":7,"title":"a b"`,
		} {
			id := fmt.Sprintf("%d-%d", i, j)
			steps = append(steps,
				fmt.Sprintf("POST %s?action=upsert&dirty_values=%s | {\"id\":\"w%s\",%s}", tsDocs, mode, id, values),
				fmt.Sprintf("POST %s?action=upsert | {\"id\":\"p%s\",\"title\":\"an old text\",\"body\":[\"of some words\"]}", tsDocs, id),
				fmt.Sprintf("%s?action=update&return_doc=true&dirty_values=%s | {\"id\":\"p%s\",%s}", tsImport, mode, id, values))
		}
	}
	return append(steps, "GET "+tsDocs+"/export |")
}

// varied is what differs between two replies of Typesense for other reasons than the sidecar.
var varied = regexp.MustCompile(`"(created_at|search_time_ms)":\d+`)

// forged is a client's own value of our field in a stored document, beside other members in front of it or behind.
var forged = regexp.MustCompile(`"neardup_sketch":(?:"[^"]*"|\[[^]]*\]|\{[^}]*\}|\d+|null),|,"neardup_sketch":(?:"[^"]*"|\[[^]]*\]|\{[^}]*\}|\d+|null)`)

// alike sends a step directly and through the sidecar, each to its own collection, and holds the replies against one another.
func alike(t *testing.T, step string, direct, through api, one, two string) {
	t.Helper()
	a, b := direct.send(t, step, one), through.send(t, step, two)
	if a.status != b.status || a.header.Get("Content-Type") != b.header.Get("Content-Type") {
		t.Errorf("%.300s: %d %s, directly %d %s: %.300s", step, b.status, b.header.Get("Content-Type"), a.status, a.header.Get("Content-Type"), b.body)
	}
	clean := func(r reply, index string) string {
		return varied.ReplaceAllString(strings.ReplaceAll(string(r.body), index, "INDEX"), "")
	}
	want := clean(a, one)
	if !strings.Contains(step, "enable_nested") && !strings.Contains(want, `"o":{`) {
		want = forged.ReplaceAllString(want, "")
	}
	same(t, want, clean(b, two), "%.300s (-directly +through)", step)
}

// exported returns every document of a collection as the engine holds it.
func exported(t *testing.T, direct api, collection string) map[string]hit {
	t.Helper()
	all := map[string]hit{}
	for line := range bytes.Lines(call(t, direct.e, "GET", direct.e.URL+"/collections/"+collection+"/documents/export", "").want(t, 200).body) {
		line = bytes.TrimRight(line, "\n")
		members := must(jsonedit.Members(line))(t)
		id, _ := jsonedit.Text(jsonedit.Get(members, "id"))
		all[id] = hit{source: line}
	}
	return all
}

// declaredWell reports whether our field stands in a collection's schema as we declare it.
func declaredWell(t *testing.T, direct api, collection string) bool {
	t.Helper()
	var schema struct {
		Fields []struct {
			Name, Type      string
			Index, Optional bool
		}
	}
	decode(t, call(t, direct.e, "GET", direct.e.URL+"/collections/"+collection, "").want(t, 200).body, &schema)
	for _, f := range schema.Fields {
		if f.Name == rule.SketchField {
			return f.Type == "string" && !f.Index && f.Optional
		}
	}
	return false
}

// dropBefore drops collections and aliases that an earlier run may have left, and those of this one when it ends.
func (a api) dropBefore(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		call(t, a.e, "DELETE", a.e.URL+"/collections/"+name, "")
		a.drop(t, name)
	}
}

// TestTypesenseWritesAreTheEnginesOwn sends the same sequences directly and through the sidecar: statuses, replies and stored
// documents are the same, but for the sketches, which are those of the stored texts or lack where that is said.
func TestTypesenseWritesAreTheEnginesOwn(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "tweq-*"})}
	r := ruleOfTests(t)
	for i, w := range typesenseWrites {
		t.Run(w.name, func(t *testing.T) {
			one, two := fmt.Sprintf("tweq-direct-%d", i), fmt.Sprintf("tweq-ourown-%d", i)
			direct.dropBefore(t, one, two, one+"-z", two+"-z")
			for _, step := range w.steps {
				alike(t, step, direct, through, one, two)
			}
			stored := exported(t, direct, two)
			if w.name == "dirty values" { // what is dropped can't be known beforehand: a sketch may lack
				for id, h := range stored {
					if !rule.HasSketch(h.source) {
						w.lacks = append(w.lacks, id)
					}
				}
				if len(w.lacks) > len(stored)*5/6 {
					t.Errorf("%d of %d documents lack a sketch", len(w.lacks), len(stored))
				}
			}
			wanted := exported(t, direct, one)
			for id, h := range wanted {
				bare := must(jsonedit.Cut(h.source, rule.Our))(t)
				wanted[id] = hit{source: bare}
			}
			sameStored(t, r, wanted, stored, w.lacks)
			if !declaredWell(t, direct, two) {
				t.Error("our field is not declared as it should be")
			}
		})
	}
}

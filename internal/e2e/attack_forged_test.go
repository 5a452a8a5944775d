package e2e

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// forgery is a write by which a client tries to have its own value of a field of ours stored. FORGED stands for such a value, ID for
// the document's id, INDEX for the index.
type forgery struct {
	name, method, path, body string
	header                   []string
	// target is the id under which to look, if not ID.
	target string
}

// victimText is the text that a forger wants to fold away, craftedText its own.
const (
	victimText  = "the mayor of the town opened a new bridge over the river this morning while many people watched from the old market square"
	craftedText = "buy cheap watches here and nowhere else for they are the finest and the shiniest that have ever been sold by anyone at all"
)

// stolen returns what a forger can know who reads the victim's own sketch by its name: one that is valid under our seed.
func stolen(t *testing.T) string {
	t.Helper()
	rule := rule.Rule{Fields: []string{"title", "body"}, Sketcher: sketcherOf(t, seed)}
	s, ok := rule.Sketch([]string{"news", victimText})
	if !ok {
		t.Fatal("the victim has no sketch")
	}
	return s.String()
}

// TestAttackForged writes documents with values of our fields in every form in which one can be written, for texts that get a sketch and for
// texts that get none. Whatever is stored afterwards is a sketch of ours or nothing, in the source and in what the engine extracts.
func TestAttackForged(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, value, list := "satk-forged", stolen(t), elasticForgeries()
		direct := api{e, e.URL}
		if direct.typesense() {
			list = typesenseForgeries()
		}
		through := api{e, serve(t, e, setup{match: index, rule: "bands: auto\nnative: true"})}
		through.create(t, index)
		kept, refused := 0, 0
		for i, f := range list {
			fill := strings.NewReplacer("FORGED", value, "ID", fmt.Sprintf("f%d", i), "INDEX", index, "TEXT", craftedText).Replace
			if r := call(t, e, f.method, through.base+fill(f.path), fill(f.body), f.header...); r.status >= 300 {
				refused++
			}
		}
		direct.refresh(t, index)
		for i, f := range list {
			values, found := oursStored(t, direct, index, cmp.Or(f.target, fmt.Sprintf("f%d", i)))
			if found {
				kept++
			}
			if strings.Contains(values, value) || strings.Contains(values, "424242") {
				t.Errorf("%s stored a forged value: %.300q", f.name, values)
			}
		}
		t.Logf("%d forgeries sent, %d refused by the engine, %d stored less what was forged", len(list), refused, kept)
		if kept < len(list)/2 {
			t.Errorf("of %d forgeries %d are stored: too few to say anything", len(list), kept)
		}
	})
}

// sketcherOf returns the default scheme's sketcher under a seed.
func sketcherOf(t testing.TB, seed string) *sketch.Sketcher {
	t.Helper()
	scheme := sketch.DefaultScheme()
	scheme.Seed = seed
	return must(sketch.New(scheme))(t)
}

// oursStored returns all that an engine holds of our fields of a document: in its source, and extracted.
func oursStored(t *testing.T, direct api, index, id string) (values string, found bool) {
	t.Helper()
	if direct.typesense() {
		r := call(t, direct.e, "GET", direct.base+"/collections/"+index+"/documents/"+id, "")
		if r.status == 404 {
			return "", false
		}
		return string(r.want(t, 200).body), true
	}
	body := `{"query":{"ids":{"values":["` + id + `"]}},"_source":["neardup_*"],` +
		`"docvalue_fields":["neardup_sketch","neardup_bands","neardup_cluster"]}`
	r := call(t, direct.e, "POST", direct.base+"/"+index+"/_search", body).want(t, 200)
	return string(r.body), bytes.Contains(r.body, []byte(`"_id":"`+id+`"`))
}

const overlongN, overlongI, overlongUnderscore, overlongB = "\xc1\xae", "\xc1\xa9", "\xc1\x9f", "\xc1\xa2"

// elasticForgeries are the forms of write that Elasticsearch and OpenSearch take.
func elasticForgeries() []forgery {
	var list []forgery
	add := func(name, method, path, body string, header ...string) {
		list = append(list, forgery{name: name, method: method, path: path, body: body, header: header})
	}
	const own = `"neardup_sketch":"FORGED","neardup_bands":[424242],"neardup_cluster":"424242"`
	for _, d := range elasticDocuments(own) {
		add("index "+d.name, "PUT", "/INDEX/_doc/ID", d.body)
		add("create "+d.name, "PUT", "/INDEX/_create/ID", d.body)
		if !strings.Contains(d.body, "\n") {
			add("bulk "+d.name, "POST", "/_bulk", `{"index":{"_index":"INDEX","_id":"ID"}}`+"\n"+d.body+"\n")
			add("bulk update "+d.name, "POST", "/INDEX/_bulk",
				`{"update":{"_id":"ID"}}`+"\n"+`{"doc":`+d.body+`,"doc_as_upsert":true}`+"\n")
		}
		add("upsert "+d.name, "POST", "/INDEX/_update/ID", `{"doc":{"url":"x"},"upsert":`+d.body+`}`)
		add("doc as upsert "+d.name, "POST", "/INDEX/_update/ID", `{"doc":`+d.body+`,"doc_as_upsert":true}`)
		add("scripted upsert "+d.name, "POST", "/INDEX/_update/ID",
			`{"scripted_upsert":true,"script":"ctx._source.url='x'","upsert":`+d.body+`}`)
	}
	line := `{"title":"news","body":"TEXT",` + own + "}\n"
	for name, action := range map[string]string{
		"overlong action": `{"` + overlongI + `ndex":{"_index":"INDEX","_id":"ID"}}`, "overlong key": `{"index":{"` +
			overlongUnderscore + `index":"INDEX","_id":"ID"}}`,
		"escaped action": `{"\u0069ndex":{"_index":"INDEX","_id":"ID"}}`, "escaped key": `{"index":{"\u005findex":"INDEX","_id":"ID"}}`,
		"escaped index": `{"index":{"_index":"\u0073atk-forged","_id":"ID"}}`, "overlong index": `{"index":{"_index":"` +
			"\xc1\xb3" + `atk-forged","_id":"ID"}}`,
		"comments":    `/*a*/{/*b*/"index"/*c*/:{"_index":"INDEX","_id":"ID"}}/*d*/`,
		"CRLF":        `{"index":{"_index":"INDEX","_id":"ID"}}` + "\r",
		"blank lines": "\n\n" + `{"index":{"_index":"INDEX","_id":"ID"}}`,
		"trailing":    `{"index":{"_index":"INDEX","_id":"ID"}}}}`,
	} {
		add("bulk with "+name, "POST", "/_bulk", action+"\n"+line)
	}
	for i, kind := range []string{"application/json; charset=utf-16", "application/x-ndjson; charset=ISO-8859-1",
		"APPLICATION/JSON", "application/json; a=yaml",
		"application/json; a=cbor"} {
		add(fmt.Sprint("type ", i), "POST", "/_bulk", `{"index":{"_index":"INDEX","_id":"ID"}}`+"\n"+line, "Content-Type", kind)
	}
	return list
}

// formed is a document in one form.
type formed struct{ name, body string }

// elasticDocuments are documents with the members of our fields in every form, half of them with a text that gets a sketch.
func elasticDocuments(own string) (list []formed) {
	short := `"neardup_sketch":"FORGED"`
	for name, text := range map[string]string{"with text": `"title":"news","body":"TEXT"`, "without": `"url":"x"`,
		"with an odd one": `"title":5,"body":"TEXT"`} {
		for form, body := range map[string]string{
			"last": `{` + text + `,` + own + `}`, "first": `{` + own + `,` + text + `}`,
			"escaped":        `{` + text + `,"\u006eeardup_sketch":"FORGED","neard\u0075p_bands":[424242]}`,
			"overlong":       `{` + text + `,"` + overlongN + `eardup_sketch":"FORGED"}`,
			"overlong 3":     `{` + text + `,"` + "\xe0\x81\xae" + `eardup_sketch":"FORGED"}`,
			"a trailing dot": `{` + text + `,"neardup_sketch.":"FORGED"}`, "two trailing dots": `{` + text + `,"neardup_bands..":424242}`,
			"a list":          `{` + text + `,"neardup_sketch":["FORGED"]}`,
			"a list of lists": `{` + text + `,"neardup_sketch":[["FORGED"]]}`,
			"spaces":          `{` + text + ` , "neardup_sketch" : "FORGED" }`,
			"comments":        `{` + text + `,/* "x":{ */"neardup_sketch"/**/:/*:*/"FORGED"/*,*/}`,
			"a mark":          "\uFEFF{" + text + `,` + short + `}`,
			"twice":           `{` + text + `,` + short + `,` + short + `}`,
			"an object":       `{` + text + `,"neardup_sketch":{"":"FORGED"}}`, "a leading dot": `{` + text + `,".neardup_sketch":"FORGED"}`,
		} {
			list = append(list, formed{form + " " + name, body})
		}
	}
	return list
}

// typesenseForgeries are those that Typesense takes.
func typesenseForgeries() []forgery {
	var list []forgery
	add := func(name, method, path, body string) {
		list = append(list, forgery{name: name, method: method, path: path, body: body})
	}
	own := `"neardup_sketch":"FORGED","neardup_bands":[424242],"neardup_cluster":"424242"`
	for name, text := range map[string]string{"with text": `"title":"news","body":"TEXT"`, "without": `"title":"","body":""`,
		"with an odd one": `"title":"5","body":"TEXT"`} {
		for form, body := range map[string]string{
			"last": `{"id":"ID",` + text + `,` + own + `}`, "first": `{"id":"ID",` + own + `,` + text + `}`,
			"escaped":      `{"id":"ID",` + text + `,"\u006eeardup_sketch":"FORGED"}`,
			"twice":        `{"id":"ID",` + text + `,"neardup_sketch":"a","neardup_sketch":"FORGED"}`,
			"stray bytes":  `{"id":"ID",` + text + `,"near` + "\xff" + `dup_sketch":"FORGED"}`,
			"overlong":     `{"id":"ID",` + text + `,"` + overlongN + `neardup_sketch":"FORGED"}`,
			"an early end": `{"id":"ID",` + text + `,"neardup_sketch":"FORGED"}` + "\x00" + `,"neardup_sketch":"b"}`,
		} {
			for _, action := range []string{"create", "upsert", "emplace"} {
				add(action+" one "+form+" "+name, "POST", "/collections/INDEX/documents?action="+action, body)
				add(action+" import "+form+" "+name, "POST", "/collections/INDEX/documents/import?action="+action, body)
			}
			add("by the query "+form+" "+name, "POST", "/collections/none/documents?collection=INDEX&action=upsert", body)
			add("action twice "+form+" "+name, "POST", "/collections/INDEX/documents/import?action=update&action=create", body)
		}
	}
	add("to be changed", "POST", "/collections/INDEX/documents", `{"id":"ID","title":"news","body":"TEXT"}`)
	one := fmt.Sprintf("f%d", len(list)-1)
	for name, body := range map[string]string{"sketch": own, "escaped": `"\u006eeardup_sketch":"FORGED"`,
		"text too": `"title":"news","body":"TEXT",` + own} {
		add("update "+name, "PATCH", "/collections/INDEX/documents/"+one, `{`+body+`}`)
		list[len(list)-1].target = one
		add("import update "+name, "POST", "/collections/INDEX/documents/import?action=update", `{"id":"`+one+`",`+body+`}`)
		list[len(list)-1].target = one
	}
	return list
}

// TestAttackUsers has users with different rights ask the same through one sidecar at once, in any order, in front of an Elasticsearch
// with security whose address, with an administrator's name and password, is in NEARDUP_SECURED_URL. Nobody is shown a document that the
// engine does not show them directly, nobody gets an answer where the engine refuses one, and nobody goes on with another's cursor. A
// user whose documents are filtered sees the page folded as if there were no others.
func TestAttackUsers(t *testing.T) {
	at, err := url.Parse(os.Getenv("NEARDUP_SECURED_URL"))
	if err != nil || at.User == nil {
		t.Skip("no Elasticsearch with security: set NEARDUP_SECURED_URL=http://name:password@host:port")
	}
	password, _ := at.User.Password()
	admin := basic(at.User.Username(), password)
	at.User = nil
	e := &engines.Engine{Kind: engines.Elasticsearch, URL: at.String()}
	base := serve(t, e, setup{match: "satk-u-*"})
	put := func(method, path, body string, status int) {
		t.Helper()
		call(t, e, method, e.URL+path, body, "Authorization", admin).want(t, status)
	}
	var ids []string
	for _, index := range []string{"satk-u-one", "satk-u-two"} {
		call(t, e, "DELETE", e.URL+"/"+index, "", "Authorization", admin)
		call(t, e, "PUT", base+"/"+index,
			`{"mappings":{"properties":{"body":{"type":"text"},"who":{"type":"keyword"},"n":{"type":"integer"}}}}`,
			"Authorization", admin).want(t, 200)
		defer put("DELETE", "/"+index, "", 200)
		var lines strings.Builder
		for i := range 12 {
			ids = append(ids, fmt.Sprintf("%s-%d", index, i))
			fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n{\"title\":\"news\",\"body\":%q,\"who\":%q,\"n\":%d}\n",
				index, ids[len(ids)-1], []string{victimText, craftedText}[i/2%2], []string{"all", "some"}[i%2], i)
		}
		call(t, e, "POST", base+"/_bulk?refresh=true", lines.String(), "Authorization", admin).want(t, 200)
	}
	users := map[string]string{"nobody": basic("nobody", "nothing"), "admin": admin}
	for name, index := range map[string]string{
		"first":   `{"names":["satk-u-one"],"privileges":["read"]}`,
		"second":  `{"names":["satk-u-two"],"privileges":["read","view_index_metadata"]}`,
		"limited": `{"names":["satk-u-*"],"privileges":["read"],"query":{"term":{"who":"some"}}}`,
		"blind":   `{"names":["satk-u-*"],"privileges":["read"],"field_security":{"grant":["n","who"]}}`,
		"none":    `{"names":["other"],"privileges":["read"]}`,
	} {
		r := call(t, e, "PUT", e.URL+"/_security/role/satk-"+name, `{"indices":[`+index+`]}`, "Authorization", admin)
		if r.status == 403 { // by the licence
			t.Logf("no user %s: %.200s", name, r.body)
			continue
		}
		r.want(t, 200)
		put("PUT", "/_security/user/satk-"+name, `{"password":"satk-password","roles":["satk-`+name+`"]}`, 200)
		defer put("DELETE", "/_security/role/satk-"+name, "", 200)
		defer put("DELETE", "/_security/user/satk-"+name, "", 200)
		users[name] = basic("satk-"+name, "satk-password")
	}
	names := slices.Collect(maps.Keys(users))
	asks := [][2]string{
		{"/satk-u-one/_search", `{"size":5,"sort":["n"]}`}, {"/satk-u-two/_search", `{"size":5,"sort":["n"]}`}, {"/satk-u-*/_search",
			`{"size":10,"sort":["n"]}`},
		{"/_search", `{"size":30,"sort":["n"],"query":{"prefix":{"_index":"satk-u-"}}}`}, {"/satk-u-one/_search",
			`{"size":3,"sort":["n"],"search_after":[1]}`}, {"/satk-u-one/_search?neardup_explain=true", `{"size":5}`},
	}
	var group sync.WaitGroup
	for worker := range 3 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 5))
			for range 60 {
				name, ask := names[r.IntN(len(names))], asks[r.IntN(len(asks))]
				path, _, _ := strings.Cut(ask[0], "?")
				one := call(t, e, "POST", e.URL+path, ask[1], "Authorization", users[name])
				two := call(t, e, "POST", base+ask[0], ask[1], "Authorization", users[name])
				if one.status != two.status {
					t.Errorf("%s asks %s: status %d, directly %d: %.200s", name, ask[0], two.status, one.status, two.body)
					continue
				}
				all := call(t, e, "POST", e.URL+path, strings.Replace(ask[1], `"size":`, `"size":1`, 1), "Authorization", users[name])
				visible := ownHits(all.body)
				for _, id := range ids {
					if strings.Contains(string(two.body), `"`+id+`"`) && !slices.Contains(visible, id) {
						t.Errorf("%s asks %s and is told of %s, which the engine shows to others", name, ask[0], id)
					}
				}
			}
		})
	}
	group.Wait()
	scrolled(t, e, base, users)
}

// scrolled has each user go on with a scroll that the administrator began: the answer is the engine's own.
func scrolled(t *testing.T, e *engines.Engine, base string, users map[string]string) {
	t.Helper()
	for name, authorization := range users {
		if name == "admin" {
			continue
		}
		begun := call(t, e, "POST", base+"/satk-u-one/_search?scroll=1m", `{"size":2}`, "Authorization",
			users["admin"]).want(t, 200)
		_, rest, _ := strings.Cut(string(begun.body), `"_scroll_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		body := `{"scroll":"1m","scroll_id":"` + id + `"}`
		two := call(t, e, "POST", base+"/_search/scroll", body, "Authorization", authorization)
		one := call(t, e, "POST", e.URL+"/_search/scroll", body, "Authorization", authorization)
		if one.status != two.status || two.status == 200 {
			t.Errorf("%s goes on with another's scroll: %d, directly %d: %.200s", name, two.status, one.status, two.body)
		}
	}
}

func basic(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

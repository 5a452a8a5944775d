package typesense

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

func TestClassify(t *testing.T) {
	type class struct {
		Kind    adapters.Kind
		Target  string
		Form    string
		Partial bool
		Shown   bool
	}
	for _, c := range []struct {
		method, path string
		want         class
	}{
		{"POST", "/collections/news/documents", class{Kind: adapters.KindWrite, Target: "news", Form: formDocument}},
		{"POST", "/collections/news/documents/?action=create", class{Kind: adapters.KindWrite, Target: "news", Form: formDocument}},
		{"POST", "//collections/a%2Fb/documents?action=upsert", class{Kind: adapters.KindWrite, Target: "a/b", Form: formDocument}},
		{"POST", "/collections/news/documents?action=update", class{Kind: adapters.KindWrite, Target: "news", Form: formDocument, Partial: true}},
		{"POST", "/collections/news/documents?action=create&action=emplace", class{Kind: adapters.KindWrite, Target: "news", Form: formDocument, Partial: true}},
		{"POST", "/collections/news/documents?action=destroy", class{}},
		{"PATCH", "/collections/news/documents/7", class{Kind: adapters.KindWrite, Target: "news", Form: formDocument, Partial: true}},
		{"PATCH", "/collections/news/documents?filter_by=n:1", class{Kind: adapters.KindWrite, Target: "news", Form: formDocument, Partial: true}},
		{"POST", "/collections/news/documents/import?action=emplace", class{Kind: adapters.KindWrite, Target: "news", Form: formImport, Partial: true}},
		{"POST", "/collections/news/documents/import", class{Kind: adapters.KindWrite, Target: "news", Form: formImport}},
		{"GET", "/collections/news/documents/search?q=x", class{Kind: adapters.KindSearch, Target: "news", Form: formSearch}},
		{"GET", "/collections/news/documents/search?include_fields=id,%20neardup_sketch", class{Kind: adapters.KindSearch, Target: "news", Form: formSearch, Shown: true}},
		{"POST", "/multi_search/", class{Kind: adapters.KindSearch, Form: formMulti}},
		{"GET", "/collections/news/documents/export", class{Kind: adapters.KindRead, Target: "news", Form: formExport}},
		{"GET", "/collections/news/documents/7", class{Kind: adapters.KindRead, Target: "news", Form: formDocument}},
		{"DELETE", "/collections/news/documents/7/", class{Kind: adapters.KindRead, Target: "news", Form: formDocument}},
		{"GET", "/collections/news", class{Kind: adapters.KindRead, Target: "news", Form: formSchema}},
		{"GET", "/collections", class{Kind: adapters.KindRead, Form: formSchema}},
		{"POST", "/collections", class{Kind: adapters.KindWrite, Form: formCreate}},
		{"POST", "/collections/?src_name=news", class{Kind: adapters.KindWrite, Form: formCreate}},
		{"PATCH", "/collections/news", class{Kind: adapters.KindRead, Form: formSchema}},
		{"DELETE", "/collections/news", class{Kind: adapters.KindRead, Form: formSchema}},
		{"PUT", "/collections/news", class{}},
		{"PUT", "/aliases/a", class{Kind: adapters.KindWrite, Form: formAlias}},
		{"DELETE", "/aliases/a", class{}},
		{"DELETE", "/collections/news/documents?filter_by=n:1", class{Kind: adapters.KindRead, Target: "news", Form: formDeleted}},
		{"GET", "/collections/news/documents/%73earch", class{Kind: adapters.KindRead, Target: "news", Form: formDocument}},
		{"GET", "/collections/news/%64ocuments/search", class{}},
		{"POST", "/collections/a+b/documents?collection=c%2Bd", class{Kind: adapters.KindWrite, Target: "c+d", Form: formDocument}},
		{"PATCH", "/collections/a+b%zz/documents/7", class{Kind: adapters.KindWrite, Target: "a b3", Form: formDocument, Partial: true}},
		{"POST", "/collections/n/documents?action=upsert&act%69on=update", class{Kind: adapters.KindWrite, Target: "n", Form: formDocument}},
		{"POST", "/collections/n/documents?x=1&&action=update", class{Kind: adapters.KindWrite, Target: "n", Form: formDocument}},
		{"GET", "/collections/news/overrides/7", class{}},
		{"HEAD", "/collections/news/documents/7", class{}},
		{"GET", "/", class{}},
		{"GET", "/health", class{}},
	} {
		r := get(c.path)
		r.Method = c.method
		got := Dialect{}.Classify(r)
		how := writeParamsOf(got)
		expect.Same(t, c.want, class{got.Kind, got.Target, got.Form, how.partial, got.NamesOurs}, "%s %s", c.method, c.path)
		if got.Kind == adapters.KindWrite && !got.ReplyMayHoldOurs && got.Form != formAlias {
			t.Errorf("%s %s: its reply must be cleaned", c.method, c.path)
		}
	}
}

func counting(r *rule.Rule, counts map[rule.Change]int) adaptertest.Writing {
	w := adaptertest.By(rule.Rules{r})
	w.Counts = func(c rule.Change) { counts[c]++ }
	return w
}

func enrich(t testing.TB, r *adapters.Request, w rule.Writing) string {
	t.Helper()
	d := Dialect{}
	c := d.Classify(r)
	var out, slow bytes.Buffer
	_, err := d.EnrichWrite(c, &out, bytes.NewReader(r.Body), w, 1<<30)
	expect.OK(t, err)
	_, err = d.EnrichWrite(c, &slow, iotest.OneByteReader(bytes.NewReader(r.Body)), w, 1<<30)
	expect.OK(t, err)
	expect.Must(t, slow.String(), out.String(), "byte by byte (-), at once (+)")
	return out.String()
}

func TestEnrichWrite(t *testing.T) {
	r := newRule(t, "news", "title")
	s, _ := r.Sketch([]string{"one two"})
	ours := `,"neardup_sketch":"` + s.String() + `"`
	long, deep := strings.Repeat("x", 100<<10), strings.Repeat("[", 60_000)+strings.Repeat("]", 60_000)
	for _, c := range []struct{ name, path, body, want string }{
		{"one document", "/documents", ` {"title":"one two"} ` + "\n", ` {"title":"one two"` + ours + `} ` + "\n"},
		{"line ends", "/documents/import", "{\"title\":\"one two\"}\r\n\n \t\r\n{\"title\":\"one two\" }\n{\"bad\n{\"title\":\"?\"}\n{\"title\":\"one two\"}", "{\"title\":\"one two\"" + ours + "}\r\n\n \t\r\n{\"title\":\"one two\"" + ours + " }\n{\"bad\n{\"title\":\"?\"}\n{\"title\":\"one two\"" + ours + "}"},
		{"last line end", "/documents/import?action=upsert", "{\"title\":\"one two\"}\n", "{\"title\":\"one two\"" + ours + "}\n"},
		{"partial", "/documents/import?action=update", "{\"id\":\"1\",\"n\":1}\n{\"title\":null}", "{\"id\":\"1\",\"n\":1}\n{\"title\":null,\"neardup_sketch\":null}"},
		{"emplace", "/documents?action=emplace", `{"title":"one two"}`, `{"title":"one two"` + ours + `}`},
		{"a long line", "/documents/import", `{"n":"` + long + `","title":"one two"}` + "\n\n", `{"n":"` + long + `","title":"one two"` + ours + "}\n\n"},
		{"values may be dropped", "/documents?dirty_values=drop", `{"title":"one two"}`, `{"title":"one two"}`},
		{"values may be dropped of a part", "/documents?action=update&dirty_values=coerce_or_drop", `{"title":"one two"}`, `{"title":"one two","neardup_sketch":null}`},
		{"nothing", "/documents/import", "", ""},
		{"forged", "/documents", `{"neardup_sketch":"x","title":"one two"}`, `{"neardup_sketch":"x","title":"one two"` + ours + `}`},
		{"forged alone", "/documents/import?action=update", `{"id":"1","neardup_sketch":"x"} ` + "\n", `{"id":"1","neardup_sketch":"x","neardup_sketch":null} ` + "\n"},
		{"values may be dropped, in capitals", "/documents?dirty_values=COERCE_OR_DROP", `{"title":"one two"}`, `{"title":"one two"}`},
		{"what the engine does not read as JSON", "/documents/import", "{\"title\":\"one two\"} // x\n{\"title\":\"one two\",\"n\":01}\n{\"title\":\"one two\"/**/}", "{\"title\":\"one two\"} // x\n{\"title\":\"one two\",\"n\":01}\n{\"title\":\"one two\"/**/}"},
		{"bytes that are no text", "/documents", "\xff{\"title\":\"one\xc3 two\"\xff}\xff", "\xff{\"title\":\"one\xc3 two\"\xff}\xff"},
		{"a name with bytes that are no text", "/documents?action=update", "\xff{\"tit\xe2\x82le\":\"one\xc3 two\"\xff}\xff", "\xff{\"tit\xe2\x82le\":\"one\xc3 two\",\"neardup_sketch\":null\xff}\xff"},
		{"bytes that are no text elsewhere", "/documents?action=update", "{\"n\":\"\xff\"}", "{\"n\":\"\xff\"}"},
		{"what may be taken for a number", "/documents", `{"title":"1984"}`, `{"title":"1984"}`},
		{"what may not", "/documents?dirty_values=reject", `{"title":["one two"],"n":"1984"}`, `{"title":["one two"],"n":"1984"` + ours + `}`},
		{"a zero byte behind it", "/documents/import", "{\"title\":\"one two\"} \x00\n{\"title\":\"one two\"}\x00{\"title\":\xff", "{\"title\":\"one two\"" + ours + "} \x00\n{\"title\":\"one two\"" + ours + "}\x00{\"title\":\xff"},
		{"a zero byte behind a part", "/documents?action=update", "\xff{\"title\":[]}\x00 // x", "\xff{\"title\":[],\"neardup_sketch\":null}\x00 // x"},
		{"a zero byte within it", "/documents/import", "{\"title\":\"one two\"\x00}\n{\"title\":\"one\x00two\"}", "{\"title\":\"one two\"\x00}\n{\"title\":\"one\x00two\"}"},
		{"as deep as the engine takes it", "/documents", `{"n":` + deep + `,"title":"one two"}`, `{"n":` + deep + `,"title":"one two"` + ours + `}`},
		{"a byte order mark", "/documents/import", "\uFEFF{\"title\":\"one two\"}", "\uFEFF{\"title\":\"one two\"" + ours + "}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := enrich(t, post("/collections/news"+c.path, c.body), counting(r, map[rule.Change]int{}))
			expect.Same(t, c.want, got, "")
			got = enrich(t, post("/collections/other"+c.path, c.body), counting(r, map[rule.Change]int{}))
			expect.Same(t, c.body, got, "another collection's body")
		})
	}
}

func TestCoerced(t *testing.T) {
	for text, want := range map[string]bool{
		"1984": true, " -5": true, "+1.5e3": true, "1e400": true, "99999999999999999999": true, "0x1F": true, "nan(x)": true, "inf": true, "True": true,
		"\x00 and more": true, "7\x00 and more": true, "": false, "1984 ": false, "a 5": false, "5 apples": false, "one\x00two": false, "truth": false, ".": false,
	} {
		expect.Same(t, want, coerced([]byte(text)), "%q", text)
	}
}

// A document that is too long to be held goes on less our fields, and the next one is enriched.
func TestLongDocumentsPass(t *testing.T) {
	r := newRule(t, "news", "title", "body")
	const forged, null = `"neardup_sketch":"AQgq1Zz+/w=="`, `"neardup_sketch":null`
	for _, c := range []struct {
		name, params, sent, want string
		change                   rule.Change
	}{
		{"plain", "", `{"title":"LONG"}`, `{"title":"LONG"}`, rule.Oversized},
		{"forged", "?action=upsert", `{"title":"LONG",` + forged + `}`, `{"title":"LONG"}`, rule.Oversized},
		{"forged first", "", `{` + forged + `, "title":"LONG" }`, `{ "title":"LONG" }`, rule.Oversized},
		{"forged twice", "", `{` + forged + `,"title":"LONG","near\u0064up_sketch":[1]}`, `{"title":"LONG"}`, rule.Oversized},
		{"stray bytes", "", `{"title":"LONG","near` + "\xff" + `dup_sketch":"a","` + "\\\xff" + `u006eeardup_sketch":"a"}`, `{"title":"LONG"}`, rule.Oversized},
		{"deeper", "", `{"title":"LONG","o":{` + forged + `}}`, `{"title":"LONG","o":{` + forged + `}}`, rule.Oversized},
		{"behind an end", "", `{"title":"LONG"}` + "\x00" + `,` + forged, `{"title":"LONG"}` + "\x00" + `,` + forged, rule.Oversized},
		{"not well-formed", "", `{"title":"LONG"}],` + forged, `{"title":"LONG"}` + "\x01", rule.Oversized},
		{"an update", "?action=update", `{"title":"LONG",` + forged + `}`, `{"title":"LONG",` + null + `}`, rule.Cleared},
		{"an update of all", "?action=emplace", `{"body":"a","title":"LONG"}`, `{"body":"a","title":"LONG",` + null + `}`, rule.Cleared},
		{"an update of others", "?action=update", `{"n":"LONG",` + forged + `}`, `{"n":"LONG"}`, -1},
	} {
		long, room := strings.Repeat("é", 100<<10), false // where there is none, less is long
		if c.name == "plain" {
			long, room = strings.Repeat("x", jsonedit.MaxDocument), true
		}
		sent, want := strings.Replace(c.sent, "LONG", long, 1), strings.Replace(c.want, "LONG", long, 1)
		for _, path := range []string{"/collections/news/documents/import", "/collections/news/documents"} {
			d, counts, end, next := Dialect{}, map[rule.Change]int{}, "", ""
			if strings.HasSuffix(path, "import") {
				end, next = "\n", `{"title":"a","body":"b"}`
			}
			var out bytes.Buffer
			_, err := d.EnrichWrite(d.Classify(post(path+c.params, "")), &out, limited{strings.NewReader(sent + end + next), room}, counting(r, counts), 1<<30)
			rest, ok := strings.CutPrefix(out.String(), want+end)
			if err != nil || !ok || strings.Contains(rest, `,"neardup_sketch":"`) != (next != "") || c.change >= 0 && counts[c.change] != 1 {
				t.Errorf("%s, %s: %v, %v %.100q…%q %v", c.name, path, err, ok, out.String()[:80], out.String()[max(0, out.Len()-200):], counts)
			}
		}
	}
}

// limited is a body for which there is room, or none.
type limited struct {
	io.Reader
	room bool
}

func (l limited) Hold(int) bool { return l.room }

// A document that is too long to be held, of a collection without a rule, goes on byte for byte.
func TestLongDocumentsOfOthersPass(t *testing.T) {
	d, counts, sent := Dialect{}, map[rule.Change]int{}, `{"neardup_sketch":"`+strings.Repeat("é\xff", 100<<10)+"\"}\x00}\n"
	var out bytes.Buffer
	body := limited{strings.NewReader(sent), false}
	_, err := d.EnrichWrite(d.Classify(post("/collections/other/documents/import", "")), &out, body, counting(newRule(t, "news", "title"), counts), 1<<30)
	if err != nil || out.String() != sent || counts[rule.Untouched] != 1 {
		t.Errorf("%v, %d bytes became %d, %v", err, len(sent), out.Len(), counts)
	}
}

// recorded is our field as it stands in the recorded replies.
const recorded = `"neardup_sketch":"AQgq1Zz+/w=="`

func TestCleanReply(t *testing.T) {
	escaped := strings.ReplaceAll(recorded, `"`, `\"`)
	replace := strings.NewReplacer(recorded+",", "", ","+escaped, "", `,\"neardup_sketch\":null}`, "}",
		`{"facet":false,"index":false,"infix":false,"locale":"","name":"neardup_sketch","optional":true,"sort":false,"type":"string"},`, "")
	for _, c := range []struct{ file, form string }{
		{"document", formDocument}, {"export", formExport}, {"import", formImport}, {"search", formSearch}, {"grouped", formMulti},
		{"collection", formSchema}, {"collections", formSchema},
	} {
		t.Run(c.file, func(t *testing.T) {
			reply := expect.Value(os.ReadFile(filepath.Join("testdata", c.file+".reply")))(t)
			want := replace.Replace(string(reply))
			if want == string(reply) {
				t.Fatal("nothing of ours is in the recording")
			}
			for _, shown := range []bool{false, true} {
				var out, slow bytes.Buffer
				class := adapters.Class{Form: c.form, NamesOurs: shown}
				expect.OK(t, (Dialect{}).CleanReply(class, &out, bytes.NewReader(reply)))
				expect.OK(t, (Dialect{}).CleanReply(class, &slow, iotest.OneByteReader(bytes.NewReader(reply))))
				if shown {
					want = string(reply)
				}
				expect.Same(t, want, out.String(), "shown: %t", shown)
				expect.Same(t, out.String(), slow.String(), "byte by byte")
			}
		})
	}
}

// What the engine hands back of a line that was enriched is the line that the client sent.
func TestErrorLinesShowTheClientsOwn(t *testing.T) {
	r := newRule(t, "news", "title", "body")
	for _, action := range []string{"create", "update"} {
		for _, line := range []string{
			`{"title":"one \"two\"","body":"x"}`, ` { "title" : "a\\" , "n":{} } `, "{\"body\":\"\\u00e9 é /\"}\r", `{"a":",\"neardup_sketch\":null}","title":"b"}`,
			`{"n":1}`, `{"bad`, `{"title":"x","neardup_sketch`, "{\"title\":\"x\\u0000\"}\x00,\"neardup_sketch\":null", "{\"body\":\"\\\\\"}\x00\x00",
		} {
			sent := enrich(t, post("/collections/news/documents/import?action="+action, line), counting(r, map[rule.Change]int{}))
			reply := func(raw string) string {
				return `{"code":409,"document":` + string(jsonedit.AppendString(nil, raw)) + `,"error":"exists","success":false}`
			}
			expect.Same(t, reply(line), string(cleanImported([]byte(reply(sent)))), "%s %s: sent %s", action, line, sent)
		}
	}
}

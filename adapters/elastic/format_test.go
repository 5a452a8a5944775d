package elastic

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// written is a form in which a test writes a document and reads it back.
type written struct {
	name, mediaType string
	write           func(random *rand.Rand, document pairs) []byte
	read            func(t testing.TB, body []byte) any
}

// pairs is an object in its order, in which a name can stand twice.
type pairs []pair

type pair struct {
	key   string
	value any // nil, bool, int64, float64, string, []any, pairs
}

var writtenForms = []written{
	{"CBOR", "application/cbor", func(random *rand.Rand, document pairs) []byte { return cborOf(random, nil, document) }, readCBOR},
	{"SMILE", "application/smile", func(random *rand.Rand, document pairs) []byte {
		w := smileWriter{random: random, flags: byte(random.IntN(4))}
		w.out = append(append(w.out, smileHead...), w.flags)
		w.value(document)
		return w.out
	}, readSMILE},
	{"YAML", "application/yaml", func(random *rand.Rand, document pairs) []byte {
		out, _ := yaml.Marshal(yamlOf(random, document))
		return append([]byte("---\n"), out...)
	}, func(t testing.TB, body []byte) any {
		var v any
		if err := yaml.Unmarshal(body, &v); err != nil {
			t.Fatalf("%v: %q", err, body)
		}
		return plainly(v)
	}},
	{"UTF-16", "application/json", func(random *rand.Rand, document pairs) []byte { return utf16Of(random, jsonOf(nil, document)) }, readJSON},
	{"UTF-32", "application/json", func(random *rand.Rand, document pairs) []byte { return utf32Of(random, jsonOf(nil, document)) }, readJSON},
}

// TestFormats: a document in any format is stored as the client wrote it, but for our fields: those of the client go, and it gets the sketch that the
// same document gets in JSON.
func TestFormats(t *testing.T) {
	seed := effort.Seed(t)
	for _, form := range writtenForms {
		t.Run(form.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			for range effort.Rounds(20000) {
				document := randomDocument(random)
				body := form.write(random, document)
				if want := plainly(document); !cmp.Equal(want, form.read(t, body)) {
					t.Fatalf("the test writes another document: %s", cmp.Diff(want, form.read(t, body)))
				}
				got, err := enrichForm(t, form.mediaType, "PUT", "/news-1/_doc/1", body)
				if err != nil {
					t.Fatalf("%v\n%q", err, body)
				}
				var plain bytes.Buffer
				plain.WriteString(enrichJSON(t, "PUT", "/news-1/_doc/1", string(jsonOf(nil, document))))
				expect.Must(t, readJSON(t, plain.Bytes()), form.read(t, got), "%s\n%q\n%q", plain.Bytes(), body, got)
			}
		})
	}
}

// TestFormatUpdates: of an update in any format the partial document and the one that stands in for it are edited as in JSON.
func TestFormatUpdates(t *testing.T) {
	const foreign = "a foreign sketch"
	for _, form := range writtenForms {
		random := rand.New(rand.NewPCG(1, 2))
		for _, update := range []pairs{
			{{"doc", pairs{{"title", "one two three"}, {"neardup_sketch", foreign}}}},
			{{"doc", pairs{{"title", "one two three"}, {"body", "four"}}}, {"doc_as_upsert", true}},
			{{"doc", pairs{{"n", int64(1)}, {"neardup_bands", []any{int64(1)}}}}, {"upsert", pairs{{"neardup_sketch", foreign}, {"title", "x"}}}},
			{{"script", "x"}, {"scripted_upsert", true}, {"upsert", pairs{{"title", "one two"}, {"neardup_sketch", foreign}}}},
			{{"script", "x"}, {"upsert", pairs{{"title", "one two"}}}},
			{{"doc", pairs{{"n", int64(1)}}}},
		} {
			for range 20 {
				body := form.write(random, update)
				got := expect.Value(enrichForm(t, form.mediaType, "POST", "/news-1/_update/1", body))(t)
				want := enrichJSON(t, "POST", "/news-1/_update/1", string(jsonOf(nil, update)))
				if diff := cmp.Diff(readJSON(t, []byte(want)), form.read(t, got)); diff != "" || bytes.Contains(got, []byte(foreign)) {
					t.Fatalf("%s: %s\n%q\n%q", form.name, diff, body, got)
				}
			}
		}
	}
}

// TestHostileFormats: our fields are found in every notation that a format has for their names. A body that can't be parsed is refused.
func TestHostileFormats(t *testing.T) {
	const text, name, forged = "\x65title\x65words", "neardup_sketch", "FORGED"
	short := func(s string) string { return string([]byte{0x60 | byte(len(s))}) + s }
	key := short(name)
	for what, body := range map[string]string{
		"definite":           "\xa2" + text + key + short(forged),
		"indefinite":         "\xbf" + text + key + short(forged) + "\xff",
		"a long head":        "\xbb\x00\x00\x00\x00\x00\x00\x00\x02" + text + "\x7b\x00\x00\x00\x00\x00\x00\x00\x0e" + name + short(forged),
		"pieces":             "\xa2" + text + "\x7f" + short("neardup_") + short("") + short("sketch") + "\xff" + short(forged),
		"bytes":              "\xa2" + text + "\x4e" + name + short(forged),
		"pieces of bytes":    "\xa2" + text + "\x5f\x48neardup_\x46sketch\xff" + short(forged),
		"a tag":              "\xd9\xd9\xf7\xa2" + text + "\xd8\x2a" + key + short(forged),
		"overlong":           "\xa2" + text + short("\xc1\xaeeardup_sketch") + short(forged),
		"overlong, no UTF-8": "\xa2" + text + short("\xc1.eardup_sketch") + short(forged),
		"a trailing dot":     "\xa2" + text + short(name+".") + short(forged),
		"twice":              "\xa3" + key + short(forged) + text + key + short(forged),
		"nested":             "\xa2" + text + key + "\x81\xa1\x61a" + short(forged),
	} {
		got, err := enrichForm(t, "application/cbor", "PUT", "/shop-1/_doc/1", []byte(body))
		if err != nil || bytes.Contains(got, []byte(forged)) || cbor.Wellformed(got) != nil {
			t.Errorf("CBOR with %s became %q (%v)", what, got, err)
		}
	}
	for what, body := range map[string]string{
		"a name by reference": "\xd9\x01\x00\xa2\x65title" + key + "\xd8\x19\x01" + short(forged), "nothing": "", "no object": "\x81\x01",
		"too few members": "\xa2" + text, "a break in a map with a length": "\xa2" + text + "\xff", "a huge length": "\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
		"too deep": strings.Repeat("\xa1\x61a", 1<<20),
	} {
		refuses(t, "CBOR of "+what, "application/cbor", body)
	}
	for what, body := range map[string]string{
		"quotes": `"neardup_sketch": FORGED`, "an escape": `"\x6eeardup_sketch": FORGED`, "a question mark": "? neardup_sketch\n: FORGED",
		"a block": "? |-\n  neardup_sketch\n: FORGED", "a tag": `!!str neardup_sketch: FORGED`, "an anchor": `&a neardup_sketch: FORGED`,
		"a folded name": "? \"neardup_\\\n  sketch\"\n: FORGED", "a list": "neardup_sketch:\n- FORGED\n", "twice": "neardup_sketch: FORGED\nneardup_sketch: FORGED",
	} {
		for _, head := range []string{"---\n", "%YAML 1.1\n---\n", "", "\uFEFF"} {
			got, err := enrichForm(t, "application/yaml", "PUT", "/shop-1/_doc/1", []byte(head+"title: words\n"+body+"\n"))
			if err != nil || bytes.Contains(got, []byte(forged)) || !bytes.Contains(got, []byte("words")) {
				t.Errorf("YAML with %s became %q (%v)", what, got, err)
			}
		}
	}
	for what, body := range map[string]string{
		"two documents": "a: b\n---\nneardup_sketch: c\n", "a key that is a list": "? [a]\n: b\n", "an alias as a key": "a: &b neardup_sketch\n*b : c\n",
		"a list": "- a\n", "nothing": "", "no YAML": "\x00", "many directives": strings.Repeat("%TAG !a! b\n", 200) + "---\na: b\n", "many values": "a: [" + strings.Repeat("1,", 1<<20) + "1]", "much": "a: " + strings.Repeat("x", maxYAML),
	} {
		refuses(t, "YAML of "+what, "application/yaml", body)
	}
	head := ":)\n\x03"
	for what, body := range map[string]string{
		"a name of its own": head + "\xfa\x84title\x44words\x8d" + name + "\x45" + forged + "\xfb",
		"a long name":       head + "\xfa\x84title\x44words\x34" + name + "\xfc\xe0" + forged + "\xfc\xfb",
		"a Unicode name":    head + "\xfa\x84title\x44words\xcc" + name + "\xe4" + forged + "\xfc\xfb",
		"overlong":          head + "\xfa\x84title\x44words\xcd" + "\xc1\xaeeardup_sketch" + "\x45" + forged + "\xfb",
		"a reference":       head + "\xfa\x80a\xfa\x8d" + name + "\x21\xfb\x84title\x44words\x41\x45" + forged + "\xfb",
		"a long reference":  head + "\xfa\x80a\xfa\x8d" + name + "\x21\xfb\x84title\x44words\x30\x01\x45" + forged + "\xfb",
		"a text by number":  head + "\xfa\x80a\xfa\x80x\x45" + forged + "\xfb\x84title\x44words\x8d" + name + "\x01\xfb",
		"an end mark":       head + "\xfa\x84title\x44words\x8d" + name + "\x45" + forged + "\xfb\xff",
	} {
		got, err := enrichForm(t, "application/smile", "PUT", "/shop-1/_doc/1", []byte(body))
		if document, _ := readSMILE(t, got).(map[string]any); err != nil || document["title"] != "words" || fmt.Sprint(document["neardup_sketch"]) == forged {
			t.Errorf("SMILE with %s became %q (%v)", what, got, err)
		}
	}
	for what, body := range map[string]string{
		"no head": "\xfa\xfb", "nothing": "", "a head within": head + "\xfa\x80a" + head + "\xfb", "a reference to nothing": head + "\xfa\x40\x21\xfb",
		"much by reference": head + "\xfa\xbf" + strings.Repeat("x", 64) + "\xf8" + strings.Repeat("\xfa\x40\x21\xfb", 1<<20) + "\xf9\xfb",
		"too deep":          head + strings.Repeat("\xfa\x80a", 1<<20), "another version": ":)\n\x10\xfa\xfb",
	} {
		refuses(t, "SMILE of "+what, "application/smile", body)
	}
}

// TestSMILENumbers reads whole numbers of 64 bits.
func TestSMILENumbers(t *testing.T) {
	for _, n := range []int64{0, math.MaxInt64, math.MinInt64, 1 << 62} {
		body := (&smileForm{}).appendInt([]byte(":)\n\x03\xfa\x84title\x44words\x80n"), n)
		if got, err := enrichForm(t, "application/smile", "PUT", "/shop-1/_doc/1", append(body, "\xfb"...)); err != nil || !bytes.Contains(got, []byte(rule.SketchField)) {
			t.Errorf("a document with %d became %q (%v)", n, got, err)
		}
	}
}

// TestFormatBulks: of a bulk in SMILE each document is edited, and one that can't be read is one that the engine refuses.
func TestFormatBulks(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	write := func(document pairs) string { return string(writtenForms[1].write(random, document)) + "\xff" }
	body := write(pairs{{"index", pairs{{"_index", "news-1"}}}}) + write(pairs{{"title", "a b"}, {"neardup_sketch", "FORGED"}}) +
		write(pairs{{"delete", pairs{{"_index", "news-1"}, {"_id", "1"}}}}) +
		write(pairs{{"update", pairs{{"_index", "news-1"}, {"_id", "1"}}}}) + write(pairs{{"doc", pairs{{"title", "b"}, {"neardup_sketch", "FORGED"}}}}) +
		write(pairs{{"index", pairs{{"_index", "other"}}}}) + write(pairs{{"neardup_sketch", "KEPT"}}) +
		write(pairs{{"index", pairs{{"_index", "news-1"}}}}) + ":)\n\x00\xfa\x8dneardup_sketch\x45FORGED\xff" +
		write(pairs{{"create", pairs{{"_index", "news-1"}}}}) + write(pairs{{"title", "c"}})
	got, err := enrichForm(t, "application/smile", "POST", "/_bulk", []byte(body))
	parts := strings.SplitAfter(string(got), "\xff")
	if err != nil || len(parts) != 12 || strings.Contains(string(got), "FORGED") || parts[8] != string(unreadableSMILE) || !strings.Contains(parts[6], "KEPT") {
		t.Fatalf("it became %q (%v)", parts, err)
	}
	for i, want := range map[int]string{1: `"a b"`, 4: `"neardup_sketch":null`, 10: `"neardup_sketch":"Ag`} {
		if text, _ := packedAsJSON(&smileForm{}, []byte(parts[i]), 1<<20); !strings.Contains(string(text), want) {
			t.Errorf("part %d is %s, want %s in it", i, text, want)
		}
	}
}

// TestUnicodeLines: a line of a bulk is read as the engines read it, in whatever Unicode, and one that does not change stays as it was sent.
func TestUnicodeLines(t *testing.T) {
	for range 20 {
		random := rand.New(rand.NewPCG(5, 6))
		action, document := []byte(`{"index":{"_index":"news-1"}}`), []byte(`{"title":"wörter","neardup_sketch":"FORGED"}`)
		for _, write := range []func(*rand.Rand, []byte) []byte{utf16Of, utf32Of, func(_ *rand.Rand, text []byte) []byte { return text }} {
			sent := write(random, action)
			body := slices.Concat(sent, []byte("\n"), write(random, document), []byte("\n"))
			got, _ := enrichWith(t, "POST", "/_bulk", "", bytes.NewReader(body))
			expect.Must(t, string(sent)+"\n"+`{"title":"wörter","neardup_sketch":S}`+"\n", got, "%q", body)
		}
	}
}

// TestLongDocuments: a document that is too long to be held comes out less our fields, and a long partial one clears them.
func TestLongDocuments(t *testing.T) {
	padding := `"n":"` + strings.Repeat("x", jsonedit.MaxDocument) + `"`
	for _, c := range []struct{ method, path, body, want string }{
		{"PUT", "/shop-1/_doc/1", `{"neardup_sketch":"F",P,"\u006eeardup_sketch":"F","a":{"neardup_sketch":1}}`, `{P,"a":{"neardup_sketch":1}}`},
		{"POST", "/shop-1/_bulk", "{\"index\":{}}\n{P,\"neardup_sketch\":\"F\"}\n{\"index\":{}}\n{}\n", "{\"index\":{}}\n{P}\n{\"index\":{}}\n{}\n"},
		{"POST", "/shop-1/_update/1", `{"doc":{"neardup_sketch":"F",P},"upsert":{"neardup_sketch":"F","a":1}}`, `{"doc":{P},"upsert":{"a":1}}`},
		{"POST", "/shop-1/_update/1", `{"doc":{"title":"F",P},"script":{}}`, `{"doc":{"title":"F",P,"neardup_sketch":null},"script":{}}`},
		{"POST", "/shop-1/_bulk", "{\"update\":{}}\n{\"doc\":{P,\"title\":\"F\"} }\n", "{\"update\":{}}\n{\"doc\":{P,\"title\":\"F\",\"neardup_sketch\":null} }\n"},
		{"PUT", "/shop-1/_doc/1", `{P,"a":1,` + "\x00" + `"neardup_sketch":"F"}`, `{P,"a":1` + "\x01"},
		{"PUT", "/logs/_doc/1", `{P,"neardup_sketch":1}`, `{P,"neardup_sketch":1}`},
	} {
		in, want := strings.ReplaceAll(c.body, "P", padding), strings.ReplaceAll(c.want, "P", padding)
		if got, _ := enrichWith(t, c.method, c.path, "", strings.NewReader(in)); got != want {
			t.Errorf("%s %s: became %q", c.path, c.body, strings.ReplaceAll(got, padding, "P"))
		}
	}
}

// cleanFilters are values of filter_path, by which our fields are all that some replies keep of what they lead to.
var cleanFilters = []string{
	"", "", "hits._source.near*", "hits.fields", "hits.fields.*,took", "**.near*", "hits._source.x,hits._source.neardup_sketch", "-**.title", "-hits._source.n", "-hits.highlight.*",
}

// reply returns a reply in CBOR or SMILE. No engine tags one.
func (w written) reply(random *rand.Rand, reply pairs) []byte {
	body := w.write(random, reply)
	if body[0] == 0xd9 {
		body = body[3:]
	}
	return body
}

// TestCleanFormats: of a reply in CBOR or SMILE goes what goes of the same reply in JSON.
func TestCleanFormats(t *testing.T) {
	seed := effort.Seed(t)
	random := rand.New(rand.NewPCG(seed, 2))
	for _, form := range writtenForms[:2] {
		for range effort.Rounds(5000) {
			reply := pairs{{"took", int64(1)}, {"hits", []any{pairs{{"_source", randomDocument(random)}, {"fields", pairs{{"neardup_sketch", []any{"x"}}}}},
				pairs{{"_source", randomDocument(random)}, {"highlight", randomDocument(random)}}}}}
			d, kind := Dialect{OpenSearch: random.IntN(2) == 0}, adapters.Class{Kind: adapters.KindRead, Form: []string{"", formSource, formMapping, formBulk}[random.IntN(4)]}
			if filter := cleanFilters[random.IntN(len(cleanFilters))]; filter != "" {
				kind.Params = []adapters.Param{{Name: "filter_path", Value: filter}}
			}
			switch kind.Form {
			case formSource:
				reply = randomDocument(random)
			case formBulk:
				reply = append(reply, pair{"reason", "\"" + string(jsonOf(nil, randomDocument(random))) + "\""})
			}
			body := form.reply(random, reply)
			var got, plain bytes.Buffer
			expect.OK(t, d.CleanReply(kind, &got, bytes.NewReader(body)))
			expect.OK(t, d.CleanReply(kind, &plain, bytes.NewReader(jsonOf(nil, reply))))
			expect.Must(t, readJSON(t, plain.Bytes()), form.read(t, got.Bytes()), "%s, %+v: %s\n%q", form.name, kind, plain.Bytes(), body)
		}
	}
	for _, body := range []string{"\xbf", "\xa1\x01", ":)\n\x03\xfa\x40", "\xbf\x6eneardup_sketch\x61"} {
		var got bytes.Buffer
		expect.OK(t, (Dialect{}).CleanReply(adapters.Class{Kind: adapters.KindRead, Form: formSource}, &got, strings.NewReader(body)))
		expect.Same(t, body, got.String(), "")
	}
}

// TestFormatsWithoutRoom: a document that takes more memory to read than there is room for is refused, and the room is given back.
func TestFormatsWithoutRoom(t *testing.T) {
	rules := adaptertest.Rules(t)
	for _, form := range writtenForms[:3] {
		body := form.write(rand.New(rand.NewPCG(1, 2)), pairs{{"title", strings.Repeat("word ", 1000)}})
		c := Dialect{}.Classify(&adapters.Request{Method: "PUT", Path: "/news-1/_doc/1", Header: adapters.Header{"Content-Type": {form.mediaType}}})
		for _, most := range []int{3 * len(body), 1 << 20} {
			held, asked := 0, 0
			w := adaptertest.By(rules)
			w.Holds = func(n int) bool {
				asked = max(asked, n)
				if held+n > most {
					return false
				}
				held += n
				return true
			}
			var out bytes.Buffer
			_, err := Dialect{}.EnrichWrite(c, &out, bytes.NewReader(body), w, 1<<30)
			if refusal := adapters.Refusal(""); errors.As(err, &refusal) != (asked > most) || asked == 0 || held != 0 {
				t.Errorf("%s: of %d bytes %d were asked for, and %d are held at the end: %v", form.name, most, asked, held, err)
			}
		}
	}
}

// TestCleanLooksOnce: a reply in CBOR is cut in one pass, however deep it is.
func TestCleanLooksOnce(t *testing.T) {
	body := []byte("\xbf\x67_source" + strings.Repeat("\xbf\x61a", 900) + "\x83\x01\x02\x6eneardup_sketch" + strings.Repeat("\xff", 901))
	looked := new(looking)
	got := cutPacked(looked, body, 1<<20, jsonedit.Cuts{Drop: func(path []string) bool { return len(path) == 900 }}, nil)
	expect.Same(t, len(body)-24, len(got), "what %d bytes became", len(body))
	if looked.bytes > 3*len(body) {
		t.Errorf("to cut %d bytes, %d were looked at", len(body), looked.bytes)
	}
}

// looking is CBOR, and counts the bytes of the tokens that are read.
type looking struct {
	cborForm
	bytes int
}

func (l *looking) read(s *scanner, key bool) token {
	start := s.at
	t := l.cborForm.read(s, key)
	l.bytes += s.at - start
	return t
}

// refuses fails the test unless a document is refused in little memory, with a text that names what the client needs.
func refuses(t *testing.T, what, mediaType, body string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := enrichForm(t, mediaType, "PUT", "/shop-1/_doc/1", []byte(body))
	runtime.ReadMemStats(&after)
	var refusal adapters.Refusal
	if !errors.As(err, &refusal) || len(got) > 0 || !strings.Contains(err.Error(), rule.SketchField) {
		t.Errorf("%s: %q, %v", what, got, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 128<<20+uint64(32*len(body)) {
		t.Errorf("%s: %d bytes took %d of memory", what, len(body), grown)
	}
	logs := expect.Value(enrichForm(t, mediaType, "PUT", "/logs/_doc/1", []byte(body)))(t)
	expect.Same(t, body, string(logs), "%s: an index without a rule", what)
}

// enrichForm runs a write in a format under the contract's rules.
func enrichForm(t testing.TB, mediaType, method, path string, body []byte) ([]byte, error) {
	t.Helper()
	rules := adaptertest.Rules(t)
	c := Dialect{}.Classify(&adapters.Request{Method: method, Path: path, Header: adapters.Header{"Content-Type": {mediaType + "; a=b"}}})
	var out bytes.Buffer
	_, err := Dialect{}.EnrichWrite(c, &out, bytes.NewReader(body), adaptertest.By(rules), 1<<30)
	return out.Bytes(), err
}

func enrichJSON(t testing.TB, method, path, body string) string {
	return string(expect.Value(enrichForm(t, "application/json", method, path, []byte(body)))(t))
}

func FuzzFormats(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 8))
	for i, form := range writtenForms {
		for range 20 {
			f.Add(form.write(random, randomDocument(random)), i)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, form int) {
		mediaType := writtenForms[uint(form)%uint(len(writtenForms))].mediaType
		for _, path := range []string{"/news-1/_doc/1", "/news-1/_update/1", "/news-1/_bulk"} {
			once, err := enrichForm(t, mediaType, "POST", path, body)
			if refusal := adapters.Refusal(""); err != nil && !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			var clean bytes.Buffer
			expect.OK(t, (Dialect{}).CleanReply(adapters.Class{Kind: adapters.KindRead}, &clean, bytes.NewReader(body)))
			if err != nil || mediaType == "application/json" || path == "/news-1/_update/1" && !bytes.Equal(once, body) {
				continue // of an update a second run clears what the first one set
			}
			if twice, err := enrichForm(t, mediaType, "POST", path, once); err != nil || len(twice) > len(once)+len(unreadableSMILE) {
				t.Errorf("%q became %q, and then %q (%v)", body, once, twice, err)
			}
		}
	})
}

// randomDocument returns a document of the rules' fields and others, with and without fields of ours.
func randomDocument(random *rand.Rand) pairs {
	var document pairs
	names := []string{"title", "body", "n", "neardup_sketch", "neardup_bands", "neardup_cluster", "é\u2028", "a.b", "neardup_sketches", strings.Repeat("k", 70), ""}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:random.IntN(len(names)+1)] {
		document = append(document, pair{name, randomValue(random, 0)})
	}
	return document
}

func randomValue(random *rand.Rand, depth int) any {
	kinds := 9
	if depth > 3 {
		kinds = 7
	}
	switch random.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return random.IntN(2) == 0
	case 2:
		return int64(random.Uint32()) - 1<<31
	case 3:
		return math.Ldexp(float64(random.IntN(1000)-500), random.IntN(20)-10) + 0.5
	case 7:
		list := []any{}
		for range random.IntN(4) {
			list = append(list, randomValue(random, depth+1))
		}
		return list
	case 8:
		object := pairs{}
		for i := range random.IntN(4) {
			object = append(object, pair{[]string{"neardup_sketch", "x", "title", "long name that is " + strings.Repeat("long ", 20)}[i], randomValue(random, depth+1)})
		}
		return object
	}
	words := []string{"one", "two", "Ö", "😀", "\"", "\\", "\n", ": ", "#", "-", "yes", "null", "1", "~", "\u0085", "\x00"}
	var text strings.Builder
	for range random.IntN(12) {
		text.WriteString(words[random.IntN(len(words))])
		if random.IntN(3) > 0 {
			text.WriteByte(' ')
		}
	}
	return text.String()
}

// plainly returns a value in the form in which values of all formats compare.
func plainly(v any) any {
	switch v := v.(type) {
	case pairs:
		object := map[string]any{}
		for _, p := range v {
			object[p.key] = plainly(p.value)
		}
		return object
	case map[string]any:
		for key, value := range v {
			v[key] = plainly(value)
		}
		return v
	case map[any]any:
		object := map[string]any{}
		for key, value := range v {
			object[fmt.Sprint(key)] = plainly(value)
		}
		return object
	case []any:
		list := []any{}
		for _, element := range v {
			list = append(list, plainly(element))
		}
		return list
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	}
	return v
}

func readJSON(t testing.TB, body []byte) any {
	var v any
	expect.JSON(t, inUTF8(body), &v)
	return plainly(v)
}

func jsonOf(dst []byte, v any) []byte {
	switch v := v.(type) {
	case pairs:
		dst = append(dst, '{')
		for i, p := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonOf(append(jsonedit.AppendString(dst, p.key), ':'), p.value)
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, element := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonOf(dst, element)
		}
		return append(dst, ']')
	case string:
		return jsonedit.AppendString(dst, v)
	}
	text, _ := json.Marshal(v)
	return append(dst, text...)
}

func utf16Of(random *rand.Rand, text []byte) []byte {
	units := utf16.Encode([]rune(string(text)))
	if random.IntN(2) == 0 {
		units = append([]uint16{0xFEFF}, units...)
	}
	order := []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian}[random.IntN(2)]
	var out []byte
	for _, u := range units {
		out = order.AppendUint16(out, u)
	}
	return out
}

func utf32Of(random *rand.Rand, text []byte) []byte {
	order := []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian}[random.IntN(2)]
	var out []byte
	if random.IntN(2) == 0 {
		out = order.AppendUint32(out, 0xFEFF)
	}
	for _, r := range string(text) {
		out = order.AppendUint32(out, uint32(r))
	}
	return out
}

// cborOf appends CBOR in which every container and text takes one of its forms.
func cborOf(random *rand.Rand, dst []byte, v any) []byte {
	if random.IntN(10) == 0 {
		dst = append(dst, 0xd9, 0xd9, 0xf7)
	}
	length, indefinite := func() int { return 0 }, random.IntN(2) == 0
	head := func(major byte) {
		if indefinite {
			dst = append(dst, major<<5|31)
			return
		}
		dst = binary.BigEndian.AppendUint32(append(dst, major<<5|26), uint32(length()))
	}
	switch v := v.(type) {
	case pairs:
		length = func() int { return len(v) }
		head(5)
		for _, p := range v {
			dst = cborOf(random, dst, p.key)
			dst = cborOf(random, dst, p.value)
		}
	case []any:
		length = func() int { return len(v) }
		head(4)
		for _, element := range v {
			dst = cborOf(random, dst, element)
		}
	case string:
		if length = func() int { return len(v) }; !indefinite {
			head(3)
			return append(dst, v...)
		}
		head(3)
		for piece := range strings.SplitAfterSeq(v, " ") {
			one, _ := cbor.Marshal(piece)
			dst = append(dst, one...)
		}
	default:
		one, _ := cbor.Marshal(v)
		return append(dst, one...)
	}
	if indefinite {
		dst = append(dst, 0xff)
	}
	return dst
}

func readCBOR(t testing.TB, body []byte) any {
	var v any
	if err := cbor.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %x", err, body)
	}
	if tag, ok := v.(cbor.Tag); ok {
		v = tag.Content
	}
	return plainly(v)
}

func yamlOf(random *rand.Rand, v any) *yaml.Node {
	style := []yaml.Style{0, yaml.FlowStyle}[random.IntN(2)]
	switch v := v.(type) {
	case pairs:
		n := &yaml.Node{Kind: yaml.MappingNode, Style: style}
		for _, p := range v {
			n.Content = append(n.Content, yamlOf(random, p.key), yamlOf(random, p.value))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: style}
		for _, element := range v {
			n.Content = append(n.Content, yamlOf(random, element))
		}
		return n
	case string:
		n := new(yaml.Node)
		n.SetString(v)
		if n.Style = yaml.DoubleQuotedStyle; random.IntN(2) == 0 && strings.IndexFunc(v, unicode.IsControl) < 0 {
			n.Style = yaml.SingleQuotedStyle
		}
		return n
	}
	n := new(yaml.Node)
	_ = n.Encode(v)
	return n
}

// smileWriter writes SMILE, with and without references.
type smileWriter struct {
	random       *rand.Rand
	flags        byte
	out          []byte
	names, texts []string
}

func (w *smileWriter) value(v any) {
	switch v := v.(type) {
	case nil:
		w.out = append(w.out, smileNull)
	case bool:
		w.out = append(w.out, map[bool]byte{false: smileFalse, true: smileTrue}[v])
	case int64:
		if v >= -16 && v < 16 {
			w.out = append(w.out, 0xC0|byte(v<<1^v>>63))
			return
		}
		w.out = (&smileForm{}).appendInt(w.out, v)
	case float64:
		bits := math.Float64bits(v)
		w.out = append(w.out, smileDouble)
		for shift := 63; shift >= 0; shift -= 7 {
			w.out = append(w.out, byte(bits>>shift)&0x7F)
		}
	case []any:
		w.out = append(w.out, smileArray)
		for _, element := range v {
			w.value(element)
		}
		w.out = append(w.out, smileArrayEnd)
	case pairs:
		w.out = append(w.out, smileObject)
		for _, p := range v {
			w.name(p.key)
			w.value(p.value)
		}
		w.out = append(w.out, smileObjectEnd)
	case string:
		w.text(v)
	}
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
}

func (w *smileWriter) name(name string) {
	shares := w.flags&smileSharesNames != 0
	i := slices.Index(w.names, name)
	switch {
	case name == "":
		w.out = append(w.out, smileEmpty)
		return
	case shares && i >= 0 && i < 64 && w.random.IntN(3) > 0:
		w.out = append(w.out, 0x40|byte(i))
		return
	case shares && i >= 0 && w.random.IntN(3) > 0:
		w.out = append(w.out, 0x30|byte(i>>8), byte(i))
		return
	case len(name) > 56 || w.random.IntN(5) == 0:
		w.out = append(append(append(w.out, smileLongName), name...), smileTextEnd)
		return
	case ascii(name):
		w.out = append(append(w.out, 0x80|byte(len(name)-1)), name...)
	default:
		w.out = append(append(w.out, 0xC0|byte(len(name)-2)), name...)
	}
	if w.names = append(w.names, name); len(w.names) > 1024 {
		w.names = []string{name}
	}
}

func (w *smileWriter) text(text string) {
	i := slices.Index(w.texts, text)
	switch {
	case text == "":
		w.out = append(w.out, smileEmpty)
		return
	case w.flags&smileSharesTexts != 0 && i >= 0 && i < 31 && w.random.IntN(3) > 0:
		w.out = append(w.out, byte(i+1))
		return
	case w.flags&smileSharesTexts != 0 && i >= 0 && w.random.IntN(3) > 0:
		w.out = append(w.out, 0xEC|byte(i>>8), byte(i))
		return
	case len(text) > 64 || w.random.IntN(5) == 0:
		w.out = append(append(append(w.out, smileLongText), text...), smileTextEnd)
		return
	case ascii(text) && len(text) <= 32:
		w.out = append(append(w.out, 0x40+byte(len(text)-1)), text...)
	case ascii(text):
		w.out = append(append(w.out, 0x60+byte(len(text)-33)), text...)
	case len(text) <= 33:
		w.out = append(append(w.out, 0x80+byte(len(text)-2)), text...)
	default:
		w.out = append(append(w.out, 0xA0+byte(len(text)-34)), text...)
	}
	if w.texts = append(w.texts, text); len(w.texts) > 1024 {
		w.texts = []string{text}
	}
}

// readSMILE reads what smileWriter writes.
func readSMILE(t testing.TB, body []byte) any {
	if len(body) < smileHeadLength {
		t.Fatalf("%q", body)
	}
	r := smileReader{t: t, in: body, at: smileHeadLength}
	return plainly(r.value())
}

type smileReader struct {
	t            testing.TB
	in           []byte
	at           int
	names, texts []string
}

func (r *smileReader) take(n int) string {
	if r.at+n > len(r.in) {
		r.t.Fatalf("%q ends early", r.in)
	}
	r.at += n
	return string(r.in[r.at-n : r.at])
}

func (r *smileReader) until() string {
	text, _, _ := strings.Cut(string(r.in[r.at:]), "\xfc")
	r.at += len(text) + 1
	return text
}

func (r *smileReader) value() any {
	c := r.take(1)[0]
	text := func(n int) any {
		s := r.take(n)
		if r.texts = append(r.texts, s); len(r.texts) > 1024 {
			r.texts = []string{s}
		}
		return s
	}
	switch {
	case c < 0x20:
		return r.texts[c-1]
	case c == smileEmpty:
		return ""
	case c == smileNull:
		return nil
	case c <= smileTrue:
		return c == smileTrue
	case c == smileInt, c == smileLong:
		var n uint64
		for {
			b := r.take(1)[0]
			if b >= 0x80 {
				n = n<<6 | uint64(b&0x3F)
				return int64(n>>1) ^ -int64(n&1)
			}
			n = n<<7 | uint64(b)
		}
	case c == smileDouble:
		var bits uint64
		for _, b := range []byte(r.take(10)) {
			bits = bits<<7 | uint64(b)
		}
		return math.Float64frombits(bits)
	case c >= 0x40 && c < 0x60:
		return text(int(c-0x40) + 1)
	case c >= 0x60 && c < 0x80:
		return text(int(c-0x60) + 33)
	case c >= 0x80 && c < 0xA0:
		return text(int(c-0x80) + 2)
	case c >= 0xA0 && c < 0xC0:
		return text(int(c-0xA0) + 34)
	case c < 0xE0:
		return int64(c&0x1F>>1) ^ -int64(c&1)
	case c == smileLongASCII, c == smileLongText:
		return r.until()
	case c >= 0xEC && c < 0xF0:
		return r.texts[int(c&3)<<8|int(r.take(1)[0])]
	case c == smileArray:
		list := []any{}
		for r.in[r.at] != smileArrayEnd {
			list = append(list, r.value())
		}
		r.at++
		return list
	case c == smileObject:
		object := pairs{}
		for r.in[r.at] != smileObjectEnd {
			name := r.name()
			object = append(object, pair{name, r.value()})
		}
		r.at++
		return object
	}
	r.t.Fatalf("%x at %d in %q", c, r.at, r.in)
	return nil
}

func (r *smileReader) name() string {
	c := r.take(1)[0]
	n := 0
	switch {
	case c == smileEmpty:
		return ""
	case c == smileLongName:
		return r.until()
	case c < 0x34:
		return r.names[int(c&3)<<8|int(r.take(1)[0])]
	case c < 0x80:
		return r.names[c&0x3F]
	case c < 0xC0:
		n = int(c&0x3F) + 1
	default:
		n = int(c&0x3F) + 2
	}
	name := r.take(n)
	if r.names = append(r.names, name); len(r.names) > 1024 {
		r.names = []string{name}
	}
	return name
}

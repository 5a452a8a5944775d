package e2e

import (
	"bytes"
	"compress/gzip"

	"github.com/neardup/sidecar/internal/rule"

	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/fxamacker/cbor/v2"

	"github.com/neardup/sidecar/internal/engines"
)

// bodyFormat is a format in which Elasticsearch and OpenSearch take a document.
type bodyFormat struct {
	name, mediaType string
	write           func(document map[string]any) string
}

func bodyFormats(t *testing.T) []bodyFormat {
	text := func(document any) []byte {
		return must(json.Marshal(document))(t)
	}
	unicode := func(unit int, order endian.AppendByteOrder, mark bool) func(map[string]any) string {
		return func(document map[string]any) string {
			runes := []rune(string(text(document)))
			if mark {
				runes = append([]rune{0xFEFF}, runes...)
			}
			var out []byte
			for _, r := range runes {
				for _, u := range utf16.Encode([]rune{r}) {
					if unit == 2 {
						out = order.AppendUint16(out, u)
					} else {
						out = order.AppendUint32(out, uint32(u))
					}
				}
			}
			return string(out)
		}
	}
	const jsonType = "application/json"
	return []bodyFormat{
		{"CBOR", "application/cbor", func(document map[string]any) string {
			out := must(cbor.Marshal(document))(t)
			return string(out)
		}},
		{"SMILE", "application/smile", func(document map[string]any) string { return ":)\n\x00" + smileOf(document) }},
		{"YAML", "application/yaml", func(document map[string]any) string { return "---\n" + string(text(document)) + "\n" }},
		{"JSON in UTF-8", jsonType, func(document map[string]any) string { return string(text(document)) }},
		{"JSON in UTF-16LE", jsonType, unicode(2, endian.LittleEndian, false)},
		{"JSON in UTF-16BE", jsonType, unicode(2, endian.BigEndian, false)},
		{"JSON in UTF-16LE with a mark", jsonType, unicode(2, endian.LittleEndian, true)},
		{"JSON in UTF-32LE", jsonType, unicode(4, endian.LittleEndian, false)},
		{"JSON in UTF-32BE with a mark", jsonType, unicode(4, endian.BigEndian, true)},
	}
}

// smileOf returns a value in SMILE without its head.
func smileOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		out := "\xfa"
		for key, value := range v {
			out += "\x34" + key + "\xfc" + smileOf(value)
		}
		return out + "\xfb"
	case []any:
		out := "\xf8"
		for _, element := range v {
			out += smileOf(element)
		}
		return out + "\xf9"
	case bool:
		return map[bool]string{false: "\x22", true: "\x23"}[v]
	case int:
		return string([]byte{0xC0 | byte(v<<1)}) // of 0 to 15
	}
	return "\xe4" + v.(string) + "\xfc"
}

// TestAttackFormats writes documents with another document's sketch, and texts that take the place of others, in every format and encoding that
// the engines take, in every kind of write. Afterwards each stored sketch is that of its own text or none, and no document hides another.
func TestAttackFormats(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		direct := api{e, e.URL}
		if direct.typesense() {
			t.Skip("it takes JSON alone: TestAttackForged")
		}
		const index = "satk-formats"
		through := api{e, serve(t, e, setup{match: index})}
		through.create(t, index)
		f := formats{t: t, e: e, direct: direct, through: through, index: index, random: rand.New(rand.NewPCG(9, 10))}
		f.forged = stolen(t)
		f.one("victim", "PUT", "/_doc/victim", "application/json", `{"title":"news","body":"`+victimText+`"}`)
		for _, form := range bodyFormats(t) {
			f.writes(form)
		}
		f.readChangeWrite()
		f.strange()
		f.judge()
	})
}

// formats is one run of TestAttackFormats.
type formats struct {
	t               *testing.T
	e               *engines.Engine
	direct, through api
	index, forged   string
	random          *rand.Rand
	sent, refused   int
}

func (f *formats) text() string { return uniqueText(f.random) }

func (f *formats) document() map[string]any {
	return map[string]any{"title": "news", "body": f.text(), "n": 3, rule.SketchField: f.forged}
}

// one sends a write. The engine, or the sidecar, may refuse it.
func (f *formats) one(name, method, path, mediaType, body string, header ...string) {
	f.t.Helper()
	f.sent++
	r := call(f.t, f.e, method, f.through.base+"/"+f.index+path, body, append([]string{"Content-Type", mediaType}, header...)...)
	if r.status >= 300 {
		f.refused++
		f.t.Logf("%s is refused: %d %.300q", name, r.status, r.body)
		if r.status >= 500 {
			f.t.Errorf("%s: status %d", name, r.status)
		}
	}
}

// writes sends every kind of write in a format.
func (f *formats) writes(form bodyFormat) {
	id := func(kind string) string { return strings.ReplaceAll(strings.ToLower(form.name), " ", "-") + "-" + kind }
	send := func(kind, method, path string, document map[string]any) {
		f.one(form.name+" "+kind, method, path, form.mediaType, form.write(document))
	}
	for _, params := range []string{"", "?op_type=create", "?routing=a", "?refresh=true"} {
		kind := "doc" + strings.Trim(strings.ReplaceAll(params, "=", "-"), "?")
		send(kind, "PUT", "/_doc/"+id(kind)+params, f.document())
	}
	send("post", "POST", "/_doc", f.document())
	send("create", "PUT", "/_create/"+id("create"), f.document())
	send("upsert", "POST", "/_update/"+id("upsert"), map[string]any{"doc": map[string]any{"n": 1}, "upsert": f.document()})
	send("doc as upsert", "POST", "/_update/"+id("as-upsert"), map[string]any{"doc": f.document(), "doc_as_upsert": true})
	send("scripted upsert", "POST", "/_update/"+id("scripted"), map[string]any{
		"script": "ctx._source.n=4", "scripted_upsert": true, "upsert": f.document()})
	for kind, doc := range map[string]map[string]any{
		"one-text": {"body": f.text()}, "both-texts": {"title": "olds", "body": f.text()}, "forged": {rule.SketchField: f.forged},
		"text-and-forged": {"body": f.text(), rule.SketchField: f.forged}, "neither": {"n": 5},
	} {
		plain, _ := json.Marshal(f.document())
		f.one("a document to change", "PUT", "/_doc/"+id(kind), "application/json", string(plain))
		send(kind, "POST", "/_update/"+id(kind), map[string]any{"doc": doc})
	}
	f.zipped(form, id)
	f.bulks(form, id)
}

// zipped sends a document compressed, and under encodings that the engine does not know.
func (f *formats) zipped(form bodyFormat, id func(string) string) {
	for i, end := range []func(z string) string{ // engines take all of these
		func(z string) string { return z }, func(z string) string { return z[:len(z)-8] }, func(z string) string { return z + "and more" },
	} {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		fmt.Fprint(z, form.write(f.document()))
		_ = z.Close()
		f.one(form.name+" in gzip", "PUT", fmt.Sprint("/_doc/", id("gzip"), i), form.mediaType, end(out.String()), "Content-Encoding", "gzip")
	}
	for i, c := range undecoded(form.write(f.document())) {
		f.one(form.name+" in "+c.encoding, "PUT", fmt.Sprint("/_doc/", id("undecoded"), i), form.mediaType, c.body, "Content-Encoding", c.encoding)
	}
	for i, encoding := range []string{"foo", "br", "gzip,gzip", "identity", "compress"} {
		f.one(form.name+" in "+encoding, "PUT", fmt.Sprint("/_doc/", id("enc"), i), form.mediaType, form.write(f.document()), "Content-Encoding", encoding)
	}
}

// undecoded are encodings of a text that the engines decode, or one of them, and the sidecar's decoders don't.
func undecoded(text string) []struct{ encoding, body string } {
	gzipped := func(text, comment string) string {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Comment = comment
		fmt.Fprint(z, text)
		_ = z.Close()
		return out.String()
	}
	stored := func(text string) string {
		n := len(text)
		return string([]byte{1, byte(n), byte(n >> 8), ^byte(n), ^byte(n >> 8)}) + text
	}
	frame := func(version byte) string {
		n := len(text)
		return string([]byte{version, 0xB5, 0x2F, 0xFD, 0, 0x50, 0x40, byte(n >> 8), byte(n)}) + text + "\xC0\x00\x00"
	}
	long := strings.Repeat("a", 600)
	return []struct{ encoding, body string }{
		{"gzip", gzipped(text, long)}, {"gzip", gzipped(" ", "") + gzipped(text, long)},
		{"deflate", "\x08\x1d\x00\xe2\xff" + strings.Repeat(" ", 29) + stored(text)}, {"zstd", frame(0x27)},
	}
}

// bulks sends a bulk. Engines take JSON and SMILE; of JSON each line may be in another Unicode.
func (f *formats) bulks(form bodyFormat, id func(string) string) {
	end := "\n"
	if form.name == "SMILE" {
		end = "\xff"
	}
	index := map[string]any{"index": map[string]any{"_id": id("bulk")}}
	update := map[string]any{"update": map[string]any{"_id": id("bulk-update")}}
	body := form.write(index) + end + form.write(f.document()) + end +
		form.write(update) + end + form.write(map[string]any{"doc": f.document(), "doc_as_upsert": true}) + end
	f.one(form.name+" bulk", "POST", "/_bulk", form.mediaType, body)
	if form.mediaType == "application/json" {
		line := `{"index":{"_id":"` + id("bulk-line") + `"}}`
		f.one(form.name+" line", "POST", "/_bulk", "application/x-ndjson", line+"\n"+form.write(f.document())+"\n")
	}
}

// readChangeWrite reads a document in each format that the engine writes, with its sketch, changes its text, and writes it back.
func (f *formats) readChangeWrite() {
	for _, mediaType := range []string{"application/cbor", "application/smile", "application/yaml"} {
		id := strings.TrimPrefix(mediaType, "application/")
		r := call(f.t, f.e, "GET", f.direct.base+"/"+f.index+"/_source/victim", "", "Accept", mediaType).want(f.t, 200)
		if !bytes.Contains(r.body, []byte("mayor")) || !bytes.Contains(r.body, []byte(rule.SketchField)) {
			f.t.Fatalf("%s: not the document: %q", mediaType, r.body)
		}
		f.one(mediaType+" read, changed and written", "PUT", "/_doc/back-"+id, mediaType, f.otherWords(string(r.body)))
	}
}

// otherWords puts others of the same length in the place of a text's words.
func (f *formats) otherWords(body string) string {
	for _, word := range strings.Fields(victimText) {
		if len(word) >= 4 {
			body = strings.ReplaceAll(body, word, fmt.Sprintf("w%0*x", len(word)-1, f.random.Uint32N(1<<(4*len(word)-4))))
		}
	}
	return body
}

// strange sends hostile forms of a document, each with another text.
func (f *formats) strange() {
	const cborType, smileType, yamlType = "application/cbor", "application/smile", "application/yaml"
	enc := func(text string) string {
		return fmt.Sprintf("\x7a%c%c%c%c", 0, 0, len(text)>>8, 0)[:4] + string([]byte{byte(len(text))}) + text
	}
	head := func() string { return "\x64body" + enc(f.text()) }
	forged := enc(f.forged)
	for name, body := range map[string]string{
		"pieces": "\xa2" + head() + "\x7f\x68neardup_\x66sketch\xff" + forged, "bytes": "\xa2" + head() + "\x4eneardup_sketch" + forged,
		"a tag": "\xa2" + head() + "\xd9\xd9\xf7\x6eneardup_sketch" + forged, "overlong": "\xa2" + head() + "\x6f\xc1\xaeeardup_sketch" + forged,
		"no UTF-8": "\xa2" + head() + "\x6f\xc1.eardup_sketch" + forged, "a trailing dot": "\xa2" + head() + "\x6fneardup_sketch." + forged,
		"a reference": "\xd9\x01\x00\xa3\x61x\x6eneardup_sketch" + head() + "\xd8\x19\x00" + forged,
		"a list":      "\xbf" + head() + "\x6eneardup_sketch\x9f" + forged + "\xff\xff", "trailing": "\xa2" + head() + "\x6eneardup_sketch" + forged + "\xff",
	} {
		f.one("CBOR with "+name, "POST", "/_doc", cborType, body)
	}
	smile := func(flags, rest string) string {
		return ":)\n" + flags + "\xfa\x83body\xe0" + f.text() + "\xfc" + rest + "\xfb"
	}
	long := "\xe0" + f.forged + "\xfc"
	for name, body := range map[string]string{
		"a short name": smile("\x01", "\x8dneardup_sketch"+long), "a Unicode name": smile("\x00", "\xccneardup_sketch"+long),
		"a reference":      smile("\x01", "\x80o\xfa\x8dneardup_sketch\x21\xfb\x42"+long),
		"a long reference": smile("\x01", "\x80o\xfa\x8dneardup_sketch\x21\xfb\x30\x02"+long), "overlong": smile("\x00", "\xcd\xc1\xaeeardup_sketch"+long),
		"no UTF-8": smile("\x00", "\xcd\xc1.eardup_sketch"+long), "an end": smile("\x00", "\x8dneardup_sketch"+long) + "\xff",
		"a text by number": smile("\x03", "\x80x\x44words\x8dneardup_sketch"+long+"\x80y\x01"),
	} {
		f.one("SMILE with "+name, "POST", "/_doc", smileType, body)
	}
	for name, key := range map[string]string{
		"quotes": `"neardup_sketch": `, "an escape": `"\x6eeardup_sketch": `, "a question mark": "? neardup_sketch\n: ", "a block": "? |-\n  neardup_sketch\n: ",
		"a tag": "!!str neardup_sketch: ", "an anchor": "&a neardup_sketch: ", "a folded name": "? \"neardup_\\\n  sketch\"\n: ", "a list": "neardup_sketch:\n- ",
	} {
		f.one("YAML with "+name, "POST", "/_doc", yamlType, "---\nbody: "+f.text()+"\n"+key+f.forged+"\n")
		f.one("YAML in braces with "+name, "POST", "/_doc", yamlType, "{body: "+f.text()+", "+strings.TrimSuffix(strings.NewReplacer("? |-\n  ", "", "\n- ", " ").Replace(key), "\n")+f.forged+"}")
	}
	list := bodyFormats(f.t)
	other, one := list[0].write, list[3].write
	for i, mediaType := range []string{"APPLICATION/CBOR", "application/cbor; charset=utf-8", "application/cbor;a=json", " application/cbor", "application/json;a=cbor",
		"application/*", "text/cbor", "application/x-ndjson", "text/plain"} {
		f.one("as "+mediaType, "PUT", fmt.Sprint("/_doc/type-", i), mediaType, other(f.document()))
		f.one("JSON as "+mediaType, "PUT", fmt.Sprint("/_doc/json-type-", i), mediaType, one(f.document()))
	}
	vendor := "application/vnd.elasticsearch+cbor;compatible-with=8"
	f.one("the vendor's type", "PUT", "/_doc/vendor", vendor, other(f.document()), "Accept", vendor)
	seven := "application/vnd.elasticsearch+cbor;compatible-with=7"
	f.one("a typed path", "PUT", "/article/typed", seven, other(f.document()), "Accept", seven)
}

// judge compares what is stored with the texts it stands beside, and looks for a document that hides another.
func (f *formats) judge() {
	t := f.t
	f.direct.refresh(t, f.index)
	rule := rule.Rule{Fields: []string{"title", "body"}, Sketcher: sketcherOf(t, seed)}
	body := `{"size":1000,"_source":["neardup_sketch"],"fields":["title","body"]}`
	r := call(t, f.e, "POST", f.direct.base+"/"+f.index+"/_search", body).want(t, 200)
	var stored struct {
		Hits struct {
			Hits []struct {
				ID     string `json:"_id"`
				Fields struct{ Title, Body []string }
				Source struct {
					Sketch any `json:"neardup_sketch"`
				} `json:"_source"`
			}
		}
	}
	decode(t, r.body, &stored)
	right, none, wrong := 0, 0, 0
	for _, hit := range stored.Hits.Hits {
		s, _ := rule.Sketch(append(hit.Fields.Title, hit.Fields.Body...))
		switch {
		case hit.Source.Sketch == nil:
			none++
		case hit.Source.Sketch == s.String():
			right++
		default:
			if wrong++; wrong <= 10 {
				t.Errorf("%s: a sketch that is not of its text %.50q: %v, want %q", hit.ID, hit.Fields.Body, hit.Source.Sketch, s.String())
			}
		}
	}
	t.Logf("%d writes, %d refused; of %d documents %d have their own sketch, %d none, %d another", f.sent, f.refused, len(stored.Hits.Hits), right, none, wrong)
	if len(stored.Hits.Hits) < 100 || right < 80 {
		t.Errorf("too few to say anything")
	}
	page := call(t, f.e, "POST", f.through.base+"/"+f.index+"/_search", `{"size":1000,"_source":["n"]}`).want(t, 200)
	if told := page.header.Get("Neardup"); !strings.Contains(told, "folded=0") || !strings.HasPrefix(told, "collapsed") {
		t.Errorf("documents with nothing in common fold: %s", told)
	}
}

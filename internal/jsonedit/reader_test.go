package jsonedit

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/expect"
)

// strictSeeds are documents at the edge of what is well-formed.
var strictSeeds = []string{
	`{}`, ` { } `, `[]`, `[ ]`, `{"a":1}`, `{"a":1,}`, `{,}`, `[,]`, `[1,]`, `{"a"}`, `{"a" : [1, -0.5e+10, 01, 1., -, 1e]}`, `[true,false,null]`, `[tru]`,
	`{"a":"\u00e4\"\\\/\b\f\n\r\t"}`, `{"a":"\u00g4"}`, `{"a":"\x"}`, `{"a":"\`, `{"a":"\u12`, "{\"a\":\"\x1f\"}", "[\"12345678\x00\"]",
	`/*c*/{/**/"a"/**/:/**/1/**/}//x`, "//x\n[1]//y\n", `/`, `/*`, `{"a":/ 1}`, "\uFEFF{}", "\uFEFF\uFEFF{}", `{"a":1}{}`, `{]`, `[}`, `{"a":{"b":[{}]}}`,
	`["1234567\\", "12345678\"", "ÄÖÜäöüß", "\ud83d"]`, "{\"\xc1\xaeeardup_sketch\":1}", `{"a\u0062":1,"a":2}`, "[\"\x7f\x80\xff\"]", "\n\t\r 5",
}

// FuzzStrict holds what is read of any bytes against the library's reading, with spaces in the place of comments.
func FuzzStrict(f *testing.F) {
	for _, s := range strictSeeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(strings.Repeat("[", 2000) + strings.Repeat("]", 2000)))
	addRandom(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1 && data[0]%2 > 0 {
			data = grown(data[1:])
		}
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > 9000 {
			return // deeper than the library goes
		}
		expect.Must(t, json.Valid(bytes.TrimPrefix(data, byteOrderMark)), Strict(data), "%q: Strict", data)
		plain, head := blanked(data), Head(data)
		if head != nil && !json.Valid(plain[:len(head)]) {
			t.Fatalf("%q begins with %q", data, head)
		}
		if json.Valid(plain) {
			expect.Must(t, len(bytes.TrimRight(plain, " \t\r\n")), len(head), "%q begins with %q: its length", data, head)
			expect.Must(t, deepest(plain) <= 3, Shallow(data, 3), "%q: Shallow", data)
		}
		want, ok := within(plain, data, '{')
		got, err := Members(data)
		same := func(a, b Member) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value) && a.Start == b.Start && a.End == b.End
		}
		if ok != (err == nil) || ok && !slices.EqualFunc(got, want, same) {
			t.Fatalf("%q: %v %v, want %v", data, got, err, want)
		}
		want, ok = within(plain, data, '[')
		elements, err := Elements(data)
		if ok != (err == nil) || ok && !slices.EqualFunc(elements, want, func(a []byte, b Member) bool { return bytes.Equal(a, b.Value) }) {
			t.Fatalf("%q: %q %v, want %v", data, elements, err, want)
		}
	})
}

// blanked returns data with spaces in the place of a byte order mark and of comments.
func blanked(data []byte) []byte {
	out, from := bytes.Clone(data), 0
	blank := func(from, to int) { copy(out[from:to], bytes.Repeat([]byte(" "), to-from)) }
	if bytes.HasPrefix(out, byteOrderMark) {
		from = len(byteOrderMark)
		blank(0, from)
	}
	for i := from; i < len(out); i++ {
		if out[i] == '"' {
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			continue
		}
		for open, end := range map[string]string{"/*": "*/", "//": "\n"} {
			if rest, is := bytes.CutPrefix(out[i:], []byte(open)); is {
				if n := bytes.Index(rest, []byte(end)); n >= 0 {
					blank(i, i+len(open)+n+len(end))
				}
			}
		}
	}
	return out
}

// deepest returns how deep the deepest value in plain stands.
func deepest(plain []byte) (most int) {
	d, level := json.NewDecoder(bytes.NewReader(plain)), 0
	for {
		token, err := d.Token()
		if err != nil {
			return most
		}
		switch token {
		case json.Delim('}'), json.Delim(']'):
			level--
			continue
		}
		most = max(most, level)
		switch token {
		case json.Delim('{'), json.Delim('['):
			level++
		}
	}
}

// within returns what stands in the object or list that data is, without comments plain.
func within(plain, data []byte, open byte) (list []Member, ok bool) {
	if start := bytes.TrimLeft(plain, " \t\r\n"); !json.Valid(plain) || start[0] != open {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	_, _ = d.Token()
	for d.More() {
		var m Member
		if open == '{' {
			from := int(d.InputOffset())
			m.Start = from + bytes.IndexByte(plain[from:], '"')
			_, _ = d.Token()
			if m.Key, ok = Text(data[m.Start:d.InputOffset()]); !ok {
				return nil, false
			}
		}
		var value json.RawMessage
		_ = d.Decode(&value)
		m.End = int(d.InputOffset())
		m.Value = data[m.End-len(value) : m.End]
		list = append(list, m)
	}
	return list, true
}

// FuzzReader reads any bytes as deep as a Reader goes, in a way of its own choosing, and holds it to Members and Elements.
func FuzzReader(f *testing.F) {
	for _, s := range strictSeeds {
		f.Add([]byte(s), uint64(0x5a5a5a5a))
	}
	f.Fuzz(func(t *testing.T, data []byte, choices uint64) {
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > 9000 {
			return // deeper than the library goes
		}
		r := NewReader(data)
		left := choices
		choose := func() bool { left = left>>1 | left<<63; return left&1 > 0 }
		var read func(depth int) any
		read = func(depth int) any {
			if choose() {
				if r.Enter('{') {
					list := []any{}
					for r.Next() {
						key := string(r.Key())
						list = append(list, key, read(depth+1))
					}
					return list
				}
				if r.Enter('[') {
					list := []any{}
					for r.Next() {
						list = append(list, read(depth+1))
					}
					return list
				}
			}
			return r.Value()
		}
		got := read(0)
		plain := blanked(data)
		expect.Must(t, json.Valid(plain), r.Done(), "%q: Done", data)
		if !r.Done() {
			return
		}
		left = choices
		var want func(value []byte, depth int) any
		want = func(value []byte, depth int) any {
			if choose() {
				if members, err := Members(value); err == nil {
					list := []any{}
					for _, m := range members {
						list = append(list, m.Key, want(m.Value, depth+1))
					}
					return list
				}
				if elements, err := Elements(value); err == nil {
					list := []any{}
					for _, e := range elements {
						list = append(list, want(e, depth+1))
					}
					return list
				}
			}
			return value
		}
		whole := data[start(data):len(bytes.TrimRight(plain, " \t\n\r"))]
		if diff := cmp.Diff(want(bytes.TrimRight(whole, " \t\n\r"), 0), got); diff != "" && !bytes.Contains(data, []byte("/")) {
			t.Fatalf("%q: %s", data, diff)
		}
	})
}

// start returns where the value in data begins.
func start(data []byte) int {
	r := NewReader(data)
	return r.At()
}

// FuzzCleaned holds what is cut in memory to what is cut in passing.
func FuzzCleaned(f *testing.F) {
	for _, s := range strictSeeds {
		f.Add([]byte(s))
	}
	for _, s := range []string{
		`{"_source":{"neardup_sketch":"x","a":1},"fields":{"neardup_sketch":["x"]}}`, `{"fields":{"neardup_sketch":["x"]},"a":{"fields":{"neardup_sketch":1,"b":2}}}`,
		"{ \"_source\" : {\n \"a\" : 1,\n \"neardup_sketch\" : \"x\",\n \"neardup_bands\":[1]\n } ,\n \"fields\" : {\n \"neardup_sketch\" : [\n \"x\"\n ]\n }\n}",
		"{\"_source\":{\n \"neardup_sketch\" : 1\n}}", `{"fields":[{"neardup_sketch":1}, {"neardup_sketch":2,"a":3}, {}]}`, `{"_source":{"neardup\u005fsketch":1,"neardup_sketch.":2}}`,
		`{"_source":{"neardup_sketch":1 , "neardup_bands":2 , "a":3 /* */, "neardup_cluster":4}}`, `{"_source":{"neardup_sketch":{"neardup_sketch":1}}, "x":[[{"fields":{"neardup_sketch":1}}]]}`,
		`{"_source":{"neardup_sketch":1}} {"_source":{"neardup_sketch":1}}`, `{"_source":{"neardup_sketch":1}`, "{\"_source\":{\"\xc1\xaeeardup_sketch\":1}}",
		`{"a":"\\","b\"":"x\\\"y","_source":{"c":"\"neardup_sketch\":1","neardup_sketch":"\\\\","d\\":"{"},"fields":{"neardup_sketch":["\"]"]}}`,
	} {
		f.Add([]byte(s))
	}
	addRandom(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		for _, data := range [][]byte{choices, grown(choices)} {
			for _, cuts := range []Cuts{inHits, edited} {
				var want bytes.Buffer
				expect.OK(t, Clean(&want, iotest.HalfReader(bytes.NewReader(data)), cuts))
				expect.Must(t, want.String(), string(Cleaned(data, cuts)), "%q", data)
			}
			want := Cleaned(data, inHits)
			expect.Must(t, string(want), string(CleanedInPlace(bytes.Clone(data), inHits)), "%q in place", data)
		}
	})
}

// addRandom adds seeds to grow documents of.
func addRandom(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 9))
	for range 400 {
		seed := make([]byte, random.IntN(300))
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
}

// grown returns a document, well-formed for the most part, that the choices grow into.
func grown(choices []byte) []byte {
	var out []byte
	choose := func() int {
		if len(choices) == 0 {
			return 0
		}
		choice := int(choices[0])
		choices = choices[1:]
		return choice
	}
	add := func(texts ...string) { out = append(out, texts[choose()%len(texts)]...) }
	space := func() { add("", "", " ", "\n  ", "/**/", "//\n") }
	list := func(closing string, element func()) {
		for n := 0; choose()%4 > 0; n++ {
			if n > 0 {
				out = append(out, ',')
			}
			space()
			element()
			space()
		}
		out = append(out, closing...)
	}
	var value func(depth int)
	value = func(depth int) {
		choice := choose() % 8
		switch {
		case depth > 12 || choice > 4:
			add("1", "-0.5e3", `""`, `"neardup_sketch"`, `"a text\n with \"escapes\" in it"`, "true", "null", "{}", "[ ]", "tru", "\"\x01\"")
		case choice < 3:
			out = append(out, '{')
			list("}", func() {
				add(`"neardup_sketch"`, `"neardup_bands"`, `"a"`, `"b"`, `"_source"`, `"fields"`, `"neardup\u005fsketch"`, `"neardup_"`, `"\\"`)
				out = append(out, ':')
				space()
				value(depth + 1)
			})
		default:
			out = append(out, '[')
			list("]", func() { value(depth + 1) })
		}
	}
	value(0)
	return out
}

// inHits cuts our fields out of what is named _source or fields.
var inHits = Cuts{
	Prefix: prefix,
	Drop: func(path []string) bool {
		last := len(path) - 1
		return last > 0 && Our(path[last]) && (path[last-1] == "_source" || slices.Contains(path[:last], "fields"))
	},
	Prune: func(path []string, element bool) bool { return !element && path[len(path)-1] == "fields" },
}

// edited cuts as inHits does, and changes strings and objects.
var edited = Cuts{
	Drop: inHits.Drop, Prune: inHits.Prune, Edit: func(_ []string, quoted []byte) []byte { return bytes.ReplaceAll(quoted, []byte("a"), []byte("aa")) },
	Add: func(path []string) []byte {
		if len(path) > 0 && path[len(path)-1] == "b" {
			return []byte(`"added":1`)
		}
		return nil
	},
}

package adapters

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/neardup/sidecar/sketch"
)

// FuzzControls has any header and query for controls: what goes to the engine has none of them left and all else, byte for byte.
func FuzzControls(f *testing.F) {
	for _, s := range [][2]string{
		{"on", "neardup=off&q=a"}, {"threshold=0.9; keep=2", "a=b&neardup_window=500&c"}, {"=;;x=1", "neardup_%74hreshold=2"},
		{"off", "&&neardup&="},
		{"dry_run", "q=%zz&neardup_keep=1e9"}, {"window=99999999999999999999", "neardup_explain=&neardup_expand=source"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, header, query string) {
		r := &Request{Method: "GET", Path: "/i/_search", RawQuery: query, Header: Header{ControlHeader: {header}, "X-Other": {"kept"}}}
		c, plain, err := TakeControls(r)
		if _, left := plain.Header[ControlHeader]; left || plain.Header["X-Other"][0] != "kept" ||
			r.Header[ControlHeader][0] != header {
			t.Fatalf("the header became %v", plain.Header)
		}
		var kept []string
		for _, p := range Params(query) {
			if !IsControl(p.Name) {
				kept = append(kept, p.Raw)
			}
		}
		if want := strings.Join(kept, "&"); plain.RawQuery != want {
			t.Fatalf("%q became %q, want %q", query, plain.RawQuery, want)
		}
		if err == nil && (c.Threshold < 0 || c.Threshold > 1 || c.Keep < 0 || c.Keep > MaxKeep || c.Window < 0 ||
			c.Threshold != c.Threshold) {
			t.Fatalf("%q %q gave %+v", header, query, c)
		}
		again, same, _ := TakeControls(plain)
		if again != (Controls{}) || same.RawQuery != plain.RawQuery {
			t.Fatalf("%q had more controls: %+v", query, again)
		}
	})
}

// FuzzCutAndSet cuts our fields out of any object and sets one member: what is left is the object less them, and reads so.
func FuzzCutAndSet(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1,"neardup_sketch":"x"}`, `{"neardup_sketch":1,"neardup_bands":[2],"b":{"neardup_sketch":3}}`,
		` { /*a*/ "a" /*b*/ : 1 /*c*/ , "neardup_cluster":"" } `,
		"{\"\xc1\xaeeardup_sketch\":1,\"a\":\"\xe0\x81\x81\"}", `{"neardup_sketch.":1,"\u006eeardup_bands..":2}`, `{"a":1,"a":2}`,
		"\uFEFF{\"\\ud800\":1}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		before, err := Members(object)
		bare, cutErr := Cut(object, Our)
		if (err == nil) != (cutErr == nil) {
			t.Fatalf("Members says %v, Cut %v of %q", err, cutErr, object)
		}
		if err != nil {
			return
		}
		after, err := Members(bare)
		if err != nil {
			t.Fatalf("%q less our fields is %q: %v", object, bare, err)
		}
		want := slices.DeleteFunc(slices.Clone(before), func(m Member) bool { return Our(m.Key) })
		if !slices.EqualFunc(want, after, func(a, b Member) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) }) {
			t.Fatalf("%q less our fields is %q", object, bare)
		}
		set, err := Set(bare, "neardup_sketch", []byte(`"new"`))
		if err != nil {
			t.Fatal(err)
		}
		if list, err := Members(set); err != nil || string(Get(list, SketchField)) != `"new"` || len(list) != len(after)+1 {
			t.Fatalf("%q with a member is %q: %v", bare, set, err)
		}
	})
}

// FuzzText holds our reading of a JSON string against the library's, and for characters that are written too long against the bits of them.
func FuzzText(f *testing.F) {
	for _, s := range []string{`""`, `"a\u0062c"`, "\"\xc1\xaeeardup\"", "\"\xe0\x81\xae\xc0\x80\xe0\xa4\x85\"",
		"\"\xc1\x9c\xc0\xa2\"", "\"\\\xc1\xae\"", "\"\xff\xc1\"", `"\ud83d\ude00\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		s := scanner{data: value, deepest: maxDepth}
		if !s.str() || s.at != len(value) {
			return // no one asks for the text of anything else
		}
		text, ok := Text(value)
		if got, same := TextBytes(value); string(got) != text || same != ok {
			t.Fatalf("%q is %q %t as bytes, %q %t else", value, got, same, text, ok)
		}
		if got, same := decoded(value, utf8.Valid(value)); got != text || same != ok {
			t.Fatalf("%q is %q %t where it is known to be valid, %q %t else", value, got, same, text, ok)
		}
		var plain []byte
		for i := 0; i < len(value); {
			switch {
			case value[i]&0xFE == 0xC0 && i+1 < len(value) && value[i+1]&0xC0 == 0x80:
				plain, i = append(plain, escaped(rune(value[i]&0x1F)<<6|rune(value[i+1]&0x3F))...), i+2
			case value[i] == 0xE0 && i+2 < len(value) && value[i+1] < 0xA0 && value[i+1]&0xC0 == 0x80 && value[i+2]&0xC0 == 0x80:
				plain, i = append(plain, escaped(rune(value[i+1]&0x3F)<<6|rune(value[i+2]&0x3F))...), i+3
			default:
				plain, i = append(plain, value[i]), i+1
			}
		}
		var want string
		if err := json.Unmarshal(plain, &want); (err == nil) != ok && bytes.IndexByte(value, '\\') >= 0 {
			t.Fatalf("%q: ok %t, the library says %v", value, ok, err)
		}
		if ok && strings.ToValidUTF8(text, "\uFFFD") != strings.ToValidUTF8(want, "\uFFFD") && !bytes.Contains(plain, []byte{0xFF}) &&
			json.Valid(plain) &&
			strings.ToValidUTF8(strings.ReplaceAll(text, "\uFFFD", ""), "") != strings.ToValidUTF8(strings.ReplaceAll(want, "\uFFFD",
				""), "") {
			t.Fatalf("%q reads %q, want %q", value, text, want)
		}
	})
}

func escaped(c rune) string {
	const hex = "0123456789abcdef"
	return string([]byte{'\\', 'u', hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15]})
}

// FuzzNoForgery enriches any document: none of what is stored under a name of ours, as Elasticsearch reads names, is the client's.
func FuzzNoForgery(f *testing.F) {
	for _, s := range []string{
		`{"title":"some words here","neardup_sketch":"forged"}`, `{"neardup_sketch":"forged"}`,
		`{"title":5,"neardup_bands":["forged"]}`,
		"{\"title\":\"a\",\"\xc1\xaeeardup_sketch\":\"forged\"}", `{"neardup_sketch.":"forged","title":"a b c"}`,
		`{"neardup_cluster":"forged","neardup_cluster":"forged"}`,
		`{"title":["a",null,"b"],"\u006eeardup_bands":"forged"}`, "\uFEFF{\"neardup_sketch\":\"forged\",}",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		f.Fatal(err)
	}
	rule := &Rule{Match: "*", Fields: []string{"title"}, Window: 10, Sketcher: sketcher, Bands: 4, Rows: 8, Clusters: true}
	f.Fuzz(func(t *testing.T, document []byte, partial bool) {
		e := &Enricher{Rule: func(string, bool) (*Rule, bool) { return rule, true }, Room: 1 << 20}
		out := e.Append(nil, "i", document, partial)
		members, err := Members(out)
		if err != nil {
			return // the engine refuses it
		}
		for _, m := range members {
			name, _ := Text(AppendString(nil, m.Key))
			if Our(name) && bytes.Contains(m.Value, []byte("forged")) {
				t.Fatalf("%q became %q", document, out)
			}
		}
	})
}

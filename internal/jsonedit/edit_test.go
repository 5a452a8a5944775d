package jsonedit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/expect"
)

// Names of the fields that the tests cut.
const (
	prefix       = "neardup_"
	SketchField  = "neardup_sketch"
	BandsField   = "neardup_bands"
	ClusterField = "neardup_cluster"
)

// Our reports whether a name is one of theirs.
func Our(name string) bool {
	name = strings.TrimRight(name, ".")
	return name == SketchField || name == BandsField || name == ClusterField
}

func dropsInSource(parent, key string) bool { return parent == "_source" && Our(key) }

var inSource = Cuts{Drop: func(path []string) bool {
	return len(path) > 1 && dropsInSource(path[len(path)-2], path[len(path)-1])
}}

func TestHead(t *testing.T) {
	for data, want := range map[string]string{
		`{"a":{"b":1},"c":2} x`: `{"a":{"b":1},"c":2}`, `{"a":{}`: "", `{"a":1 x`: "", " /* c */ {\"a\":\"b\"}\n": " /* c */ {\"a\":\"b\"}",
		`{"a":`: "", `{}`: `{}`, `[1]`: `[1]`, ``: "", `{"a":1}{"a":2}`: `{"a":1}`, `{"a":{"b"}}`: "",
	} {
		expect.Same(t, want, string(Head([]byte(data))), "%s: head", data)
	}
	for data, want := range map[string]bool{"": true, " \r\n": true, "/* x */\n": true, "// x\n": true, "\uFEFF\n": true, "{": false, "/": false, "// x": false} {
		expect.Same(t, want, Blank([]byte(data)), "%q is blank", data)
	}
}

// A comment may stand wherever white space does.
func TestCleanGoesOverComments(t *testing.T) {
	const src = "\uFEFF{/* {\" */\"_source\": // x\n{\"a\":1,/**/\"neardup_sketch\":/*}*/\"x\" /* y */}}"
	want := strings.Replace(src, `,/**/"neardup_sketch":/*}*/"x"`, "", 1)
	expect.Same(t, want, string(Cleaned([]byte(src), inSource)), "")
}

// White space in front of a comma belongs to the value before it, which may be a document as its writer laid it out.
func TestCutKeepsWhiteSpace(t *testing.T) {
	for before, want := range map[string]string{
		`{ "a": 1  , "x":2 ,"b" : 3 }`:                    `{ "a": 1   ,"b" : 3 }`,
		`{"a": {}  ,"x":2,"b":3}`:                         `{"a": {}  ,"b":3}`,
		`{"a": {}  ,"x":2}`:                               `{"a": {}  }`,
		`{"a": {}  ,"x":2 , "x":3 /* , */ ,"b":3 }`:       `{"a": {}   /* , */ ,"b":3 }`,
		`{"a": {} /* , */ ,"x":2,"b":3}`:                  `{"a": {} /* , */ ,"b":3}`,
		`{ "x":2 , "b":3 }`:                               `{ "b":3 }`,
		`{ "x":2 }`:                                       `{ }`,
		"{\n  \"a\" : 1,\n  \"x\" : 2,\n  \"b\" : 3\n}\n": "{\n  \"a\" : 1,\n  \"b\" : 3\n}\n",
	} {
		expect.Same(t, want, string(expect.Value(Cut([]byte(before), func(key string) bool { return key == "x" }))(t)), "%s", before)
	}
}

func FuzzMembersAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1,}`, `{"a":01}`, `{"a":-}`, `{"a":"\ud800"}`, `{"a":1.e3}`, `[1]`, "{\"a\":\"\x01\"}", `{"a":tru}`, `{"a":[{},[]]}`, `{"a":1}x`, `{,}`, "\uFEFF{}", `{"a"/* b */:1//
 }`, `{"a":1/*`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var object map[string]json.RawMessage
		want := json.Unmarshal(data, &object) == nil && object != nil
		_, err := Members(data)
		more := bytes.Contains(data, []byte("/")) || bytes.HasPrefix(data, byteOrderMark) // comments, and what may stand in front
		if got := err == nil; got != want && !(got && more) {
			t.Fatalf("Members(%q) accepts = %v, encoding/json %v", data, got, want)
		}
		if err != nil {
			return
		}
		if same, _ := Cut(data, func(string) bool { return false }); !bytes.Equal(same, data) {
			t.Fatalf("cutting nothing changed %q to %q", data, same)
		}
		if empty, err := Cut(data, func(string) bool { return true }); err != nil {
			t.Fatal(err)
		} else if left, err := Members(empty); err != nil || len(left) != 0 {
			t.Fatalf("cutting all of %q left %q (%v)", data, empty, err)
		}
	})
}

func FuzzCleanOfNothingIsTheIdentity(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"x"}]} {"c":2}`, `{"a"`, "\xff{", `]`, `{"a":1 "b"}`, `"`, `nul`, `{"a":"\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		expect.OK(t, Clean(&out, bytes.NewReader(data), Cuts{Drop: func([]string) bool { return false }}))
		expect.Must(t, string(data), out.String(), "")
	})
}

func TestValueText(t *testing.T) {
	for value, want := range map[string]string{
		`"a\u0062"`: "ab", `"1.0"`: "1.0", `""`: "", "1": "1", "1.0": "1", "10e-1": "1", "1E0": "1", "0.5": "0.5", "5e-1": "0.5", "-0.0": "0", "1.50": "1.5",
		"18446744073709551616": "18446744073709551616", "1e3": "1000", "1e999": "1e999", "true": "true", "false": "false",
	} {
		if got, ok := ValueText([]byte(value)); !ok || got != want {
			t.Errorf("%s: %q %t, want %q", value, got, ok, want)
		}
	}
	for _, value := range []string{"", "null", "{}", "[1]"} {
		if got, ok := ValueText([]byte(value)); ok {
			t.Errorf("%s: %q", value, got)
		}
	}
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
		set := expect.Value(Set(bare, "neardup_sketch", []byte(`"new"`)))(t)
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
		r := Reader{data: value}
		if !r.str() || r.at != len(value) {
			return // no one asks for the text of anything else
		}
		text, ok := Text(value)
		if got, same := TextBytes(value); string(got) != text || same != ok {
			t.Fatalf("%q is %q %t as bytes, %q %t else", value, got, same, text, ok)
		}
		got, room, same := TextIn([]byte("before"), value, utf8.Valid(value))
		if string(got) != text || same != ok || !bytes.HasPrefix(room, []byte("before")) || len(room) > len("before") && string(room[len("before"):]) != text {
			t.Fatalf("%q is %q %t where it is known to be valid, %q %t else; the room has %q", value, got, same, text, ok, room)
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

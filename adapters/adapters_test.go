package adapters

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

func testRule(t testing.TB, fields ...string) *Rule {
	t.Helper()
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		t.Fatal(err)
	}
	r := &Rule{Match: "news-*", Fields: fields, Profile: rerank.Profile{Threshold: 0.8}, Window: 100, Compute: true, Sketcher: sketcher}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	return r
}

func enricher(rule *Rule, prepared bool, changes *[]Change) *Enricher {
	return &Enricher{
		Rule: func(index string, _ bool) (*Rule, bool) {
			if !Matches(rule.Match, index) {
				return nil, false
			}
			return rule, prepared
		},
		Count: func(c Change) { *changes = append(*changes, c) },
		Room:  1 << 20,
	}
}

func TestAppendSplicesAndNothingElse(t *testing.T) {
	rule := testRule(t, "title", "meta.text")
	sketchOf := func(texts ...string) string {
		s, ok := rule.Sketch(texts)
		if !ok {
			return "null"
		}
		return `"` + s.String() + `"`
	}
	both := sketchOf("one two", "three four five six")
	for _, c := range []struct {
		name, doc, want string
		partial         bool
		change          Change
	}{
		{"whole", `{"title":"one two","meta":{"text":"three four five six"},"n":1e3}`, `{"title":"one two","meta":{"text":"three four five six"},"n":1e3,"neardup_sketch":` + both + `}`, false, Enriched},
		{"dotted key and space", ` { "meta.text" : "three four five six" , "title":"one two" } `, ` { "meta.text" : "three four five six" , "title":"one two","neardup_sketch":` + both + ` } `, false, Enriched},
		{"escapes", `{"title":"\u006fne\ttwo"}`, `{"title":"\u006fne\ttwo","neardup_sketch":` + sketchOf("one\ttwo") + `}`, false, Enriched},
		{"twice and forged", `{"title":"one","neardup_sketch":"x","title":"two"}`, `{"title":"one","title":"two"}`, false, Unreadable},
		{"a comment", `{"title":"one two" /* title */ , "meta.text":"three four five six" // more
}`, `{"title":"one two" /* title */ , "meta.text":"three four five six","neardup_sketch":` + both + ` // more
}`, false, Enriched},
		{"a brace in a comment", `/*{*/ {}`, `/*{*/ {}`, false, Textless},
		{"a byte order mark", "\uFEFF" + `{"title":["one two"],"meta.text":"three four five six"}`, "\uFEFF" + `{"title":["one two"],"meta.text":"three four five six","neardup_sketch":` + both + `}`, false, Enriched},
		{"partial with all, one of them nested", `{"title":"one two","meta":{"text":"three four five six"}}`, `{"title":"one two","meta":{"text":"three four five six"},"neardup_sketch":null}`, true, Cleared},
		{"partial beside a field", `{"meta":{"lang":"en"}}`, `{"meta":{"lang":"en"},"neardup_sketch":null}`, true, Cleared},
		{"partial twice", `{"title":"one","title":"two"}`, `{"title":"one","title":"two","neardup_sketch":null}`, true, Cleared},
		{"partial that empties", `{"title":null,"meta":null}`, `{"title":null,"meta":null,"neardup_sketch":null}`, true, Cleared},
	} {
		t.Run(c.name, func(t *testing.T) {
			var changes []Change
			got := enricher(rule, true, &changes).Append([]byte("> "), "news-1", []byte(c.doc), c.partial)
			if diff := cmp.Diff("> "+c.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]Change{c.change}, changes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"news", "news", true}, {"news", "news-1", false}, {"news-*", "news-1", true}, {"*", "a", true}, {"*", ".kibana", false},
		{".k*", ".kibana", true}, {"a*b*c", "aXbYc", true}, {"a*b*c", "acb", false}, {"*-1", "x-1", true}, {"a*a", "a", false}, {"**", "x", true},
	} {
		if got := Matches(c.pattern, c.name); got != c.want {
			t.Errorf("Matches(%q, %q) = %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

func dropsInSource(parent, key string) bool { return parent == "_source" && Our(key) }

var inSource = Cuts{Drop: func(path []string) bool {
	return len(path) > 1 && dropsInSource(path[len(path)-2], path[len(path)-1])
}}

// A comment may stand wherever white space does.
func TestCleanGoesOverComments(t *testing.T) {
	const src = "\uFEFF{/* {\" */\"_source\": // x\n{\"a\":1,/**/\"neardup_sketch\":/*}*/\"x\" /* y */}}"
	want := strings.Replace(src, `,/**/"neardup_sketch":/*}*/"x"`, "", 1)
	if got := Cleaned([]byte(src), inSource); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
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
		`{ "x":2 }`:                                       `{  }`,
		"{\n  \"a\" : 1,\n  \"x\" : 2,\n  \"b\" : 3\n}\n": "{\n  \"a\" : 1,\n  \"b\" : 3\n}\n",
	} {
		got, err := Cut([]byte(before), func(key string) bool { return key == "x" })
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, want %s (%v)", before, got, want, err)
		}
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
		if err := Clean(&out, bytes.NewReader(data), Cuts{Drop: func([]string) bool { return false }}); err != nil || !bytes.Equal(out.Bytes(), data) {
			t.Fatalf("%q became %q (%v)", data, out.Bytes(), err)
		}
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

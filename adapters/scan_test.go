package adapters

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// strictSeeds are documents at the edge of what is well-formed.
var strictSeeds = []string{
	`{}`, ` { } `, `[]`, `[ ]`, `{"a":1}`, `{"a":1,}`, `{,}`, `[,]`, `[1,]`, `{"a"}`, `{"a" : [1, -0.5e+10, 01, 1., -, 1e]}`, `[true,false,null]`, `[tru]`,
	`{"a":"\u00e4\"\\\/\b\f\n\r\t"}`, `{"a":"\u00g4"}`, `{"a":"\x"}`, `{"a":"\`, `{"a":"\u12`, "{\"a\":\"\x1f\"}", "[\"12345678\x00\"]",
	`/*c*/{/**/"a"/**/:/**/1/**/}//x`, "//x\n[1]//y\n", `/`, `/*`, `{"a":/ 1}`, "\uFEFF{}", "\uFEFF\uFEFF{}", `{"a":1}{}`, `{]`, `[}`, `{"a":{"b":[{}]}}`,
	`["1234567\\", "12345678\"", "ÄÖÜäöüß", "\ud83d"]`, "{\"\xc1\xaeeardup_sketch\":1}", `{"a\u0062":1,"a":2}`, "[\"\x7f\x80\xff\"]", "\n\t\r 5",
}

// FuzzStrict holds what is read of any bytes against the same grammar read a byte after the other.
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
		for _, depth := range []int{3, maxDepth} {
			s := slowBegin(data)
			s.deepest = depth
			if want, got := s.value(0) == nil, Shallow(data, depth); want != got {
				t.Fatalf("%q to depth %d: %t, want %t", data, depth, got, want)
			} else if head := Head(data); depth == maxDepth && want != (head != nil) || head != nil && depth == maxDepth && len(head) != s.at {
				t.Fatalf("%q begins with %q, want %d bytes", data, head, s.at)
			}
		}
		s := slowScanner{data: bytes.TrimPrefix(data, byteOrderMark), deepest: maxDepth, strict: true}
		s.space()
		err := s.value(0)
		if s.space(); (err == nil && s.at == len(s.data)) != Strict(data) {
			t.Fatalf("%q: Strict is %t", data, Strict(data))
		}
		var members []Member
		sameAs(t, data, '{', func(start, colon, value, end int) bool {
			key, ok := Text(data[start:colon])
			members = append(members, Member{key, data[value:end], start, end})
			return ok
		}, func() ([]Member, error) { return Members(data) }, &members)
		var elements []Member
		sameAs(t, data, '[', func(_, _, value, end int) bool {
			elements = append(elements, Member{Value: data[value:end]})
			return true
		}, func() (list []Member, err error) {
			values, err := Elements(data)
			for _, value := range values {
				list = append(list, Member{Value: value})
			}
			return list, err
		}, &elements)
	})
}

func sameAs(t *testing.T, data []byte, open byte, visit slowVisitor, read func() ([]Member, error), want *[]Member) {
	t.Helper()
	s := slowBegin(data)
	err := ErrMalformed
	if s.at < len(data) && data[s.at] == open {
		err = s.container(open, 0, visit)
	}
	if s.space(); err == nil && s.at != len(data) {
		err = ErrMalformed
	}
	got, gotErr := read()
	if (err == nil) != (gotErr == nil) {
		t.Fatalf("%q: %v, want %v", data, gotErr, err)
	}
	if err == nil && !slices.EqualFunc(got, *want, func(a, b Member) bool {
		return a.Key == b.Key && bytes.Equal(a.Value, b.Value) && a.start == b.start && a.end == b.end
	}) {
		t.Fatalf("%q: %v, want %v", data, got, *want)
	}
}

// FuzzReader reads any bytes as deep as a Reader goes, in a way of its own choosing, and holds it to Members and Elements.
func FuzzReader(f *testing.F) {
	for _, s := range strictSeeds {
		f.Add([]byte(s), uint64(0x5a5a5a5a))
	}
	f.Fuzz(func(t *testing.T, data []byte, choices uint64) {
		r := NewReader(data)
		left := choices
		choose := func() bool { left = left>>1 | left<<63; return left&1 > 0 }
		var read func(depth int) any
		read = func(depth int) any {
			if depth < maxEntered && choose() {
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
		s := slowBegin(data)
		ok := s.value(0) == nil
		if s.space(); (ok && s.at == len(data)) != r.Done() {
			t.Fatalf("%q: Done is %t", data, r.Done())
		}
		if !r.Done() {
			return
		}
		left = choices
		var want func(value []byte, depth int) any
		want = func(value []byte, depth int) any {
			if depth < maxEntered && choose() {
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
		whole := data[begin(data).at:s.at]
		if diff := cmp.Diff(want(bytes.TrimRight(whole, " \t\n\r"), 0), got); diff != "" && !bytes.Contains(data, []byte("/")) {
			t.Fatalf("%q: %s", data, diff)
		}
	})
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
			var want bytes.Buffer
			if err := Clean(&want, bytes.NewReader(data), inHits); err != nil {
				t.Fatal(err)
			}
			if got := Cleaned(data, inHits); !bytes.Equal(got, want.Bytes()) {
				t.Fatalf("%q becomes\n%q, want\n%q", data, got, want.Bytes())
			}
			s := begin(data)
			if !s.value(0) || len(bytes.TrimRight(data[s.at:], " \t\r\n")) > 0 {
				continue // what is cut in place is known to be well-formed
			}
			if got := CleanedInPlace(bytes.Clone(data), inHits); !bytes.Equal(got, want.Bytes()) {
				t.Fatalf("%q becomes\n%q in place, want\n%q", data, got, want.Bytes())
			}
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
	Ours: true,
	Drop: func(path []string) bool {
		last := len(path) - 1
		return last > 0 && Our(path[last]) && (path[last-1] == "_source" || slices.Contains(path[:last], "fields"))
	},
	Prune: func(path []string, element bool) bool { return !element && path[len(path)-1] == "fields" },
}

// slowVisitor is visitor.
type slowVisitor func(start, colon, value, end int) bool

// slowScanner is scanner at its simplest, a byte after the other: it walks over JSON by the grammar of RFC 8259, and over comments between its tokens.
type slowScanner struct {
	data    []byte
	at      int
	deepest int
	strict  bool // comments are none
}

// slowBegin returns a slowScanner that stands at the first value in data.
func slowBegin(data []byte) slowScanner {
	s := slowScanner{data: data, deepest: maxDepth}
	if bytes.HasPrefix(data, byteOrderMark) {
		s.at = len(byteOrderMark)
	}
	s.space()
	return s
}

// space goes over white space, and over comments: engines read them, so a document may hold some.
func (s *slowScanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		case '/':
			n := slowComment(s.data[s.at:])
			if n == 0 || s.strict {
				return
			}
			s.at += n
		default:
			return
		}
	}
}

// slowComment returns the length of the comment that data begins with, or 0.
func slowComment(data []byte) int {
	for open, end := range map[string]string{"/*": "*/", "//": "\n"} {
		if !bytes.HasPrefix(data, []byte(open)) {
			continue
		}
		if i := bytes.Index(data[2:], []byte(end)); i >= 0 {
			return 2 + i + len(end)
		}
	}
	return 0
}

func (s *slowScanner) take(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

// value reads one value whose container stands at the depth.
func (s *slowScanner) value(depth int) error {
	if s.at >= len(s.data) || depth > s.deepest {
		return ErrMalformed
	}
	switch c := s.data[s.at]; c {
	case '"':
		return s.str()
	case '{', '[':
		return s.container(c, depth, nil)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

// container reads an object or array that stands at the depth. visit, if not nil, is called with all that stands in it.
func (s *slowScanner) container(open byte, depth int, visit slowVisitor) error {
	s.at++
	end := open + 2 // ']' and '}' both stand two behind their opening
	s.space()
	if s.take(end) {
		return nil
	}
	for {
		s.space()
		start, colon := s.at, s.at
		if open == '{' {
			if err := s.str(); err != nil {
				return err
			}
			colon = s.at
			if s.space(); !s.take(':') {
				return ErrMalformed
			}
			s.space()
		}
		value := s.at
		if err := s.value(depth + 1); err != nil {
			return err
		}
		if visit != nil && !visit(start, colon, value, s.at) {
			return ErrMalformed
		}
		s.space()
		if s.take(end) {
			return nil
		}
		if !s.take(',') {
			return ErrMalformed
		}
	}
}

func (s *slowScanner) literal(word string) error {
	if !bytes.HasPrefix(s.data[s.at:], []byte(word)) {
		return ErrMalformed
	}
	s.at += len(word)
	return nil
}

func (s *slowScanner) str() error {
	if !s.take('"') {
		return ErrMalformed
	}
	for s.at < len(s.data) {
		c := s.data[s.at]
		s.at++
		switch {
		case c == '"':
			return nil
		case c < 0x20:
			return ErrMalformed
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return ErrMalformed
}

func (s *slowScanner) escape() error {
	if s.at >= len(s.data) {
		return ErrMalformed
	}
	c := s.data[s.at]
	s.at++
	if c != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), c) < 0 {
			return ErrMalformed
		}
		return nil
	}
	if s.at+4 > len(s.data) {
		return ErrMalformed
	}
	for _, h := range s.data[s.at : s.at+4] {
		if !(h >= '0' && h <= '9' || h >= 'a' && h <= 'f' || h >= 'A' && h <= 'F') {
			return ErrMalformed
		}
	}
	s.at += 4
	return nil
}

func (s *slowScanner) number() error {
	s.take('-')
	if !s.take('0') && s.digits() == 0 {
		return ErrMalformed
	}
	if s.take('.') && s.digits() == 0 {
		return ErrMalformed
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if s.digits() == 0 {
			return ErrMalformed
		}
	}
	return nil
}

func (s *slowScanner) digits() int {
	start := s.at
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}

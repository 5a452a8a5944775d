package sketch

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch/content"
)

// hashOf is the hash of the shingle of these tokens, by the definition: the low bits of a token say that it is a character, of half a word
// or of a quarter. None is a number.
func hashOf(s *Sketcher, tokens ...string) uint64 {
	sum := uint64(0)
	for _, text := range tokens {
		r, size := utf8.DecodeRuneInString(text)
		character := size == len(text) && (s.scheme.Features == CharacterShingles || s.scheme.Features == Auto && standsAlone(r))
		hash := s.keys.hash(text) &^ 7
		if character && r < 0x2e80 {
			hash |= 4
		} else if character {
			hash |= 2
		}
		sum = sum*base + hash
	}
	return s.finish(sum)
}

// hashesOf returns the set of the shingles in a list in which blanks part shingles and bars part tokens; a low line is a blank.
func hashesOf(s *Sketcher, list string) []uint64 {
	var set []uint64
	for _, shingle := range strings.Fields(list) {
		set = append(set, hashOf(s, strings.Split(strings.ReplaceAll(shingle, "_", " "), "|")...))
	}
	slices.Sort(set)
	return slices.Compact(set)
}

func TestTags(t *testing.T) {
	s := newSketcher(t, func(s *Scheme) { s.Features = Tags })
	want, _ := s.Sketch("red", "big house", "c++")
	for _, tags := range [][]string{
		{"c++", "red", "big house"}, {"Red ", "  BIG \t house", "C++", "red"}, {"réd", "big house", "c++", "", " "},
		{"ｒｅｄ", "c++", "big house"},
	} {
		got, ok := s.Sketch(tags...)
		if !ok || cmp.Diff(want, got) != "" || !got.SameText(&want) {
			t.Errorf("%q: %s", tags, cmp.Diff(want, got))
		}
	}
	for _, tags := range [][]string{
		{"red", "big", "house", "c++"}, {"red big", "house", "c++"}, {"red", "big house", "c"}, {"red", "big house"}, {"red big house c++"},
	} {
		got, ok := s.Sketch(tags...)
		if a, b := s.Shingles(tags...), s.Shingles("red", "big house", "c++"); !ok || slices.Equal(a, b) || got.SameText(&want) {
			t.Errorf("%q is the same as red, big house, c++", tags)
		}
		expect.Same(t, len(tags), int(got.Shingles), "%q: elements", tags)
	}
	if got := s.Shingles("<b>red</b>"); slices.Equal(got, s.Shingles("red")) {
		t.Error("a tag is read as HTML")
	}
	for _, tags := range [][]string{nil, {""}, {" ", "\t"}} {
		if got, ok := s.Sketch(tags...); ok {
			t.Errorf("%q: %v", tags, got)
		}
	}
}

func TestFeaturesOfMixedText(t *testing.T) {
	for _, c := range []struct {
		features          Features
		words, characters int
		text, want        string
	}{
		{WordShingles, 2, 3, "日本語 text and", "日|本 本|语 语|text text|and"},
		{CharacterShingles, 2, 3, "日本語 text and", "日|本|语 本|语|t 语|t|e t|e|x e|x|t x|t|_ t|_|a _|a|n a|n|d"},
		// 6 are needed: a word counts 3, a character 2.
		{Auto, 2, 3, "日本語 text and", "日|本|语 本|语|text 语|text|and text|and"},
		{Auto, 2, 3, "one two 日本語", "one|two two|日|本 日|本|语"},
		{Auto, 2, 3, "日本語", "日|本|语"},
		{Auto, 2, 3, "one two three", "one|two two|three"},
		{Auto, 1, 2, "a 日本 b", "a 日|本 本|b b"},
		{Auto, 3, 2, "ab 日 cd ef", "ab|日|cd 日|cd|ef"},
		{Auto, 2, 3, "カタカナ", "カ|タ|カ タ|カ|ナ"},
		{Auto, 2, 3, "한국어 텍스트 띄어쓰기", "한국어|텍스트 텍스트|띄어쓰기"},
		{CharacterShingles, 2, 3, "Don't, e-mail", "d|o|n o|n|t n|t|_ t|_|e _|e|_ e|_|m _|m|a m|a|i a|i|l"},
		{CharacterShingles, 2, 5, "abc", "a|b|c"},
		{WordShingles, 4, 3, "one two", "one|two"},
	} {
		s := newSketcher(t, func(s *Scheme) { s.Features, s.Words, s.Characters = c.features, c.words, c.characters })
		expect.Same(t, hashesOf(s, c.want), s.Shingles(c.text), "%+v", c)
		if k, ok := s.Sketch(c.text); !ok || int(k.Shingles) != len(hashesOf(s, c.want)) {
			t.Errorf("%s of %q: the sketch counts %d shingles", c.features, c.text, k.Shingles)
		}
	}
}

// TestShortTexts: every text with a word has at least one shingle, and several texts each have their own.
func TestShortTexts(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{[]string{"one"}, "one"},
		{[]string{"one two"}, "one|two"},
		{[]string{"one two three"}, "one|two|three"},
		{[]string{"one two three four five"}, "one|two|three|four two|three|four|five"},
		{[]string{"日本"}, "日|本"},
		{[]string{"A title", "the body of the text"}, "a|title the|body|of|the body|of|the|text"},
		{[]string{"A title", "", "?"}, "a|title"},
		{[]string{"one", "one", "One!"}, "one"},
		{[]string{"one two", "three four"}, "one|two three|four"},
	} {
		s := newSketcher(t, fourWords)
		expect.Same(t, hashesOf(s, c.want), s.Shingles(c.texts...), "%q", c.texts)
	}
}

// TestKeep: an option makes the differences count that it names, and no others; by default none of them does. Numbers and signs always
// count.
func TestKeep(t *testing.T) {
	differences := []struct{ kind, a, b string }{
		{"case", "an Apple pie", "an apple pie"},
		{"case", "ΣΊΣΥΦΟΣ όλη", "σίσυφος όλη"},
		{"accents", "le café noir", "le cafe noir"},
		{"accents", "שָׁלוֹם עולם", "שלום עולם"},
		{"accents", "كتـــاب مُحَمَّد", "كتاب محمد"},
		{"punctuation", "well, done", "well done"},
		{"punctuation", "a/b a-b", "a b a b"},
		{"punctuation", "don't go", "dont go"},
		{"punctuation", "done 👍", "done"},
		{"", "two  blanks\n", "two blanks"},
		{"", "caf\u00e9 noir", "cafe\u0301 noir"},
		{"", "ﬁne ２０２４", "fine 2024"},
		{"", "heart ❤\ufe0f now", "heart ❤ now"},
		{"", "\ufeffbegin here", "begin here"},
		{"", "soft\u00adhyphen now", "softhyphen now"},
		{"", "a\xffb c", "ab c"},
		{"always", "a+b", "a b"},
		{"always", "a == b", "a != b"},
		{"always", "1.5 mg", "15 mg"},
		{"always", "is -3 now", "is 3 now"},
		{"always", "nginx 1.25.3", "nginx 12.5.3"},
		{"always", "EUR 1.250,00 now", "EUR 125.000 now"},
		{"always", "20°C now", "20 C now"},
	}
	for kind, keep := range map[string]Keep{
		"nothing": {}, "case": {Case: true}, "accents": {Accents: true}, "punctuation": {Punctuation: true},
	} {
		for _, features := range []Features{Auto, WordShingles, CharacterShingles} {
			s := newSketcher(t, func(s *Scheme) { s.Keep, s.Features = keep, features })
			for _, d := range differences {
				if apart := !slices.Equal(s.Shingles(d.a), s.Shingles(d.b)); apart != (d.kind == kind || d.kind == "always") {
					t.Errorf("keep %s, %s: %+q and %+q are apart: %v", kind, features, d.a, d.b, apart)
				}
			}
			a, _ := s.Sketch("an Apple pie")
			b, _ := s.Sketch("an apple pie")
			if a.SameText(&b) == keep.Case {
				t.Errorf("keep %s: texts that differ in case have one fingerprint: %v", kind, a.SameText(&b))
			}
		}
	}
}

func TestContent(t *testing.T) {
	set := func(c Content, texts ...string) []uint64 {
		return newSketcher(t, func(s *Scheme) { s.Content = c }).Shingles(texts...)
	}
	const menu, article, markup, cafe = "home sport", "the roof which has leaked since the storm", "article><h1", "a café is planned"
	for _, c := range []struct {
		content Content
		has     []string
		lacks   []string
		same    string
	}{
		{ContentAll, []string{menu, article, cafe}, []string{markup, "var hidden"}, content.Text(knownPage)},
		{ContentUseful, []string{article, cafe}, []string{menu, markup, "terms privacy", "var hidden"}, content.Useful(knownPage)},
		{ContentRaw, []string{article, markup, "var hidden"}, nil, ""},
	} {
		got := set(c.content, knownPage)
		for _, words := range c.has {
			expect.Same(t, 1.0, Containment(set(ContentRaw, words), got), "%s: the share of %q in it", c.content, words)
		}
		for _, words := range c.lacks {
			if part := set(ContentRaw, words); Containment(part, got) == 1 {
				t.Errorf("%s has %q", c.content, words)
			}
		}
		if c.same != "" && !slices.Equal(got, set(ContentRaw, c.same)) {
			t.Errorf("%s is not the text that package content finds", c.content)
		}
		if plain := "a < b and c > d, no HTML"; !slices.Equal(set(c.content, plain), set(ContentRaw, plain)) {
			t.Errorf("%s changes what is no HTML", c.content)
		}
	}
	s := newSketcher(t, nil)
	a, _ := s.Sketch(knownPage)
	b, _ := s.Sketch(content.Text(knownPage))
	if !a.SameText(&b) {
		t.Error("mark-up takes part in the fingerprint")
	}
}

package sketch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// TestFingerprintAlone holds the fingerprint alone against that of the sketch, for all kinds of schemes and texts.
func TestFingerprintAlone(t *testing.T) {
	pieces := []string{
		"the", "Ferry", "ÜBER", "straße", "C++", "don't", "日本語", "カタカナ", "한국어", "e\u0301", "\u0301\u0327", "ﬁ", "\x00", "\xff", "…", "\t\n", "<p>",
		"<div>menu</div>", "&amp;", "ǆ", "İ", "0", "1,5", "a_b", strings.Repeat("x", 100), " ",
	}
	for name, change := range map[string]func(*Scheme){
		"default":            func(*Scheme) {},
		"seeded":             func(s *Scheme) { s.Seed = "a seed" },
		"characters":         func(s *Scheme) { s.Features = CharacterShingles },
		"words":              func(s *Scheme) { s.Features = WordShingles },
		"tags":               func(s *Scheme) { s.Features = Tags },
		"case kept":          func(s *Scheme) { s.Keep.Case = true },
		"HTML as it stands":  func(s *Scheme) { s.Content = ContentRaw },
		"useful HTML":        func(s *Scheme) { s.Content = ContentUseful },
		"m smallest":         func(s *Scheme) { s.Family = MSmallest },
		"a ready value":      func(s *Scheme) { s.Features, s.Family = Value64, Hamming },
		"accents, marks too": func(s *Scheme) { s.Keep.Accents, s.Keep.Punctuation = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			s, r := newSketcher(t, change), rand.New(rand.NewPCG(1, 2))
			sketched := 0
			for range effort.Rounds(1500) {
				texts := make([]string, r.IntN(4))
				for i := range texts {
					var b strings.Builder
					for range r.IntN(12) {
						b.WriteString(pieces[r.IntN(len(pieces))])
						if r.IntN(3) > 0 {
							b.WriteString(" ")
						}
					}
					texts[i] = b.String()
				}
				if r.IntN(20) == 0 {
					texts = append(texts, "0123456789abcdef")
				}
				got := s.Fingerprint(texts...)
				k, ok := s.Sketch(texts...)
				if ok && got != k.Fingerprint {
					t.Fatalf("%+q: %x, the sketch has %x", texts, got, k.Fingerprint)
				}
				inBytes := make([][]byte, len(texts))
				for i, text := range texts {
					inBytes[i] = []byte(text)
				}
				var of Sketch
				if s.FingerprintBytes(inBytes...) != got || s.SketchBytesInto(&of, inBytes...) != ok {
					t.Fatalf("%+q is another text in bytes", texts)
				}
				for _, text := range inBytes {
					clear(text)
				}
				expect.Same(t, k, of, "the sketch of %+q in bytes, which are no more", texts)
				if ok {
					sketched++
				}
			}
			if sketched < effort.Rounds(50) {
				t.Errorf("only %d texts had a sketch", sketched)
			}
		})
	}
}

// TestFingerprint: case and white space do not count; signs, accents and the borders between texts do. A text without a sketch shares no
// fingerprint with one that has one.
func TestFingerprint(t *testing.T) {
	s, seen := newSketcher(t, nil), map[uint64][]string{}
	for _, texts := range [][]string{
		nil, {""}, {"", ""}, {"…"}, {"?"}, {"one"}, {"one", ""}, {"", "one"}, {"one two"}, {"one", "two"}, {"two", "one"}, {"one two", ""}, {"C++"}, {"C#"},
		{"version 1.2"}, {"version 1.3"}, {"resume"}, {"résumé"}, {"a, b"}, {"a b"}, {"a b", "c"}, {"a", "b c"},
	} {
		f := s.Fingerprint(texts...)
		if other, there := seen[f]; there {
			t.Errorf("%q has the fingerprint of %q", texts, other)
		}
		seen[f] = texts
	}
	expect.Same(t, s.Fingerprint("hello world"), s.Fingerprint("Hello  World\n"), "in another case and white space")
}

// TestHostileTextsTakeLinearTime sketches megabytes of what is made to be slow. The limit is a hundred times what each takes; in the
// square of the length it would be minutes.
func TestHostileTextsTakeLinearTime(t *testing.T) {
	s := newSketcher(t, nil)
	size := 1 << 20
	if testing.Short() {
		size = 1 << 15
	}
	for _, shape := range []string{
		"a", "é", "日", "ก่", "abÉ", "ab😀", "abcdefgh\u0301", "e\u0301", "\u05b0", "\u094d", "ｶﾞ", "각", "\u1100\u1161\u11a8", "a.", "a_", "a'b", "1,", "א\"",
		"\u200d", "👩‍👩‍👧", "\xff", "\x00", "<", "<b", "</p", "&amp;", " \t", "ß", "İ", "ﷺ", "abcdefghijklmnopq_", "か\u3099x",
	} {
		start := time.Now()
		s.Sketch(strings.Repeat(shape, size/len(shape)))
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%+q over and over: %d bytes took %v", shape, size, took)
		}
	}
}

// TestForgedFingerprint: the second text has the first one's xxHash64 under half of all seeds, since the differences pass through that
// hash whatever the seed. The fingerprint must not be so.
func TestForgedFingerprint(t *testing.T) {
	const text = "prime minister announces new budget for schools and hospitals in the north of the country"
	const forged = "elcarhrsxt5n0d2zel81d1h0gsasbsq58n2cycw26wxnm0bjwhxaxcyo4tpw91g9 the north of the country"
	for i := range 200 {
		s := newSketcher(t, func(s *Scheme) { s.Seed = fmt.Sprint("seed ", i) })
		a, _ := s.Sketch(text)
		if b, _ := s.Sketch(forged); a.SameText(&b) {
			t.Fatalf("same text under seed %d", i)
		}
	}
}

// TestFieldBordersCannotBeForged: U+0000, which parts two texts for the fingerprint, stands in none of them.
func TestFieldBordersCannotBeForged(t *testing.T) {
	s := newSketcher(t, nil)
	a, _ := s.Sketch("abc\x00def ghi")
	b, _ := s.Sketch("abc", "def ghi")
	c, _ := s.Sketch("abcdef ghi")
	if a.SameText(&b) || !a.SameText(&c) {
		t.Error("U+0000 counts as a border, or as anything")
	}
	tags := newSketcher(t, func(s *Scheme) { s.Features = Tags })
	if _, ok := tags.Sketch("\x00"); ok {
		t.Error("a tag of U+0000 alone makes a sketch")
	}
}

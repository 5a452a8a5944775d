package sketch

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

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

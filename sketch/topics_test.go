package sketch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestWordsAreCounted(t *testing.T) {
	for _, c := range []struct {
		name   string
		scheme func(*Scheme)
		texts  []string
		want   uint32
	}{
		{"words, repeated ones too", nil, []string{"the cat and the dog"}, 5},
		{"several texts", nil, []string{"a title", "the body"}, 4},
		{"a number is one", nil, []string{"1.25.3 and 1,000"}, 3},
		{"signs are none", nil, []string{"a == b + 5 % 7"}, 4},
		{"Chinese characters are halves", nil, []string{"市议会决定渡轮"}, 4},
		{"a word among them", nil, []string{"市议会 council"}, 3},
		{"letters of Thai are quarters", nil, []string{"ภาษาไทย"}, 2},
		{"Korean has words", nil, []string{"한국어 텍스트"}, 2},
		{"by words", func(s *Scheme) { s.Features = WordShingles }, []string{"the cat and $5"}, 4},
		{"without numbers", func(s *Scheme) { s.DropNumbers = true }, []string{"at 10.30 on 5 May + 1"}, 3},
		{"no more than fit", nil, []string{strings.Repeat("on and on ", MostWords)}, MostWords},
		{"tags have none", func(s *Scheme) { s.Features = Tags }, []string{"red", "big house"}, 0},
	} {
		if k, ok := newSketcher(t, c.scheme).Sketch(c.texts...); !ok || k.Words != c.want {
			t.Errorf("%s: %d words, want %d", c.name, k.Words, c.want)
		}
	}
}

// TestNumbersAreHashed: the hash says whether the numbers and signs of two documents are the same ones in the same order, whatever the
// words around them.
func TestNumbersAreHashed(t *testing.T) {
	s := newSketcher(t, nil)
	numbers := func(texts ...string) uint32 {
		k, ok := s.Sketch(texts...)
		if !ok || k.Numbers >= 1<<24 {
			t.Fatalf("%q: %v, numbers %d", texts, ok, k.Numbers)
		}
		return k.Numbers
	}
	if n := numbers("no number at all"); n != 0 {
		t.Errorf("%d of a text without numbers", n)
	}
	for _, same := range [][2]string{{"5 of 10 cats", "5 dogs and 10"}, {"it is 1.5 mg", "1.5"}, {"a+b", "c + d"}, {"２０２４", "2024"}, {"−3", "is -3"}} {
		if numbers(same[0]) != numbers(same[1]) || numbers(same[0]) == 0 {
			t.Errorf("%q and %q have other numbers, or none", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"5 of 10", "10 of 5"}, {"1.5 mg", "15 mg"}, {"-3", "3"}, {"a == b", "a != b"}, {"1.25.3", "12.5.3"}, {"5", "5 5"}, {"$5", "€5"}} {
		if numbers(other[0]) == numbers(other[1]) {
			t.Errorf("%q and %q have the same numbers", other[0], other[1])
		}
	}
	expect.Same(t, numbers("5 cats 10 dogs"), numbers("5 cats", "10 dogs"), "the numbers of two texts")
}

// TestTopicsByDefinition holds the table against one made with a map, by the plain way.
func TestTopicsByDefinition(t *testing.T) {
	s := newSketcher(t, nil)
	for _, text := range append(slices.Clone(scripts), long(), longText(3000), "too short a text", strings.Repeat("the same words over ", 10), strings.Repeat("日本 ", 200)) {
		k, _ := s.Sketch(text)
		counts, n := map[uint64]int{}, 0
		for _, token := range plainTokens(baseText(text, Keep{}), Auto, Keep{}) {
			counts[token.flag(s.keys.hash(token.text))>>54]++ // words of one counter are one
			n++
		}
		var want []byte
		if n >= topicTokens {
			want = make([]byte, topicBytes)
			often := min(max(n/topicShare, leastOften), mostOften)
			for counter, count := range counts {
				cell := counter * topicCells / counters
				if count >= often {
					want[cell/8] |= 1 << (cell % 8)
				}
				if count >= max(often/4, 2) {
					want[topicBytes/2+cell/8] |= 1 << (cell % 8)
				}
			}
		}
		expect.Same(t, want, k.Topics, "%.40q…", text)
		if k.OtherTopics(&k) {
			t.Errorf("%.40q…: has other topics than itself", text)
		}
	}
}

// TestOtherTopics: the same form about another subject has other topics, one changed word does not make others, and a short text has none.
func TestOtherTopics(t *testing.T) {
	s := newSketcher(t, nil)
	form := func(name string, sentences int) *Sketch {
		var b strings.Builder
		for i := range sentences {
			fmt.Fprintf(&b, "Option %c of %s sets how the program reads its file number %d. ", 'a'+i, name, i*i)
		}
		k, _ := s.Sketch(b.String())
		return &k
	}
	for _, c := range []struct {
		name string
		a, b *Sketch
		want bool
	}{
		{"one subject", form("mandel", 12), form("mandel", 12), false},
		{"another subject", form("mandel", 12), form("perch", 12), true},
		{"a longer text on it", form("mandel", 12), form("mandel", 14), false},
		{"short texts", form("mandel", 2), form("perch", 2), false},
	} {
		expect.Same(t, [2]bool{c.want, c.want}, [2]bool{c.a.OtherTopics(c.b), c.b.OtherTopics(c.a)}, "%s, and the other way round", c.name)
	}
	words := strings.Fields(long())
	one, _ := s.Sketch(strings.Join(words, " "))
	words[100] = "changed"
	if other, _ := s.Sketch(strings.Join(words, " ")); one.OtherTopics(&other) {
		t.Error("one word makes another topic")
	}
}

package sketch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

const (
	footer  = "This message is confidential, and is for its addressee alone. If you got it by mistake, please delete it at once."
	notice  = "本邮件及其附件含有保密信息，仅限于发送给上面地址中列出的个人或群组，禁止任何其他人以任何形式使用。"
	article = "The evening ferry to Saltmere sails again from Monday, after eleven years: the last boat leaves at 10.30."
	ferry   = "夜间渡轮恢复航行，十一年来首次，末班船十点离开北码头。"
)

// withoutPassages removes what boilerplate is, in the plainest way: of each run of tokens that is a window long and is also in a passage, all tokens go.
func withoutPassages(list []token, passages [][]token, w, n int) (left []token) {
	windows := func(list []token) (all [][2]int) {
		for from := range list {
			size := 0
			for i := from; i < len(list); i++ {
				if size += n; list[i].character {
					size += w - n
				}
				if size >= PassageWords*n {
					all = append(all, [2]int{from, i + 1})
					break
				}
			}
		}
		return all
	}
	gone := make([]bool, len(list))
	for _, passage := range passages {
		for _, p := range windows(passage) {
			for _, t := range windows(list) {
				if slices.Equal(list[t[0]:t[1]], passage[p[0]:p[1]]) {
					for i := t[0]; i < t[1]; i++ {
						gone[i] = true
					}
				}
			}
		}
	}
	for i, t := range list {
		if !gone[i] {
			left = append(left, t)
		}
	}
	return left
}

// checkSubtracted holds the sketch of a text under a scheme with boilerplate to the plain definition.
func checkSubtracted(t *testing.T, scheme Scheme, text string) {
	t.Helper()
	s := expect.Value(New(scheme))(t)
	scheme.Boilerplate = ""
	bare := expect.Value(New(scheme))(t)
	scheme = bare.Scheme()
	tokens := func(text string) []token {
		list := plainTokens(baseText(text, scheme.Keep), scheme.Features, scheme.Keep)
		if scheme.DropNumbers {
			list = slices.DeleteFunc(list, func(t token) bool { return t.number || t.sign })
		}
		return list
	}
	var passages [][]token
	for passage := range strings.Lines(s.scheme.Boilerplate) {
		passages = append(passages, tokens(passage))
	}
	before := tokens(text)
	left := withoutPassages(before, passages, scheme.Words, scheme.Characters)
	w := new(workspace)
	bare.fill(w, left)
	want := bare.appendShingles(nil, w.tokens)
	if len(left) < len(before) && quartersIn(w.tokens.hashes) < 4*PassageWords {
		want = []uint64{s.finish(s.Fingerprint(text))}
	}
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(want, s.Shingles(text)) {
		t.Errorf("%q without %q: %d shingles, want %d: %v", text, s.scheme.Boilerplate, len(s.Shingles(text)), len(want), left)
	}
	got, _ := s.Sketch(text)
	if quarters := quartersIn(w.tokens.hashes); got.Words != uint32((quarters+3)/4) || got.Numbers != uint32(w.tokens.numbers>>40) {
		t.Errorf("%q: %d words, numbers %x; want %d quarters, %x", text, got.Words, got.Numbers, quarters, w.tokens.numbers>>40)
	}
	exact := s.Text(text)
	if !slices.Equal(exact.set, want) {
		t.Errorf("%q: Text has other shingles", text)
	}
}

func quartersIn(hashes []uint64) (n uint64) {
	for _, h := range hashes {
		n += quartersOf(h)
	}
	return n
}

// TestBoilerplate: a text with passages has the sketch of the text without them.
func TestBoilerplate(t *testing.T) {
	scheme := Scheme{Boilerplate: footer + "\n" + notice, Seed: "s"}
	s, bare := expect.Value(New(scheme))(t), expect.Value(New(Scheme{Seed: "s"}))(t)
	for _, c := range []struct{ text, as string }{
		{article, article},
		{article + "\n\n" + footer, article},
		{footer + " " + article, article},
		{"THIS message is confidential and is for its   addressee alone if YOU " + article, article}, // a part of the passage
		{"This message is confidential. " + article, "This message is confidential. " + article},     // too short a part
		{article + " " + footer + " " + article, article + " " + article},
		{"船票。" + notice + ferry, "船票。" + ferry},
		{ferry + notice[:114], ferry},                // 36 characters
		{ferry + notice[:111], ferry + notice[:111]}, // 35
	} {
		got, _ := s.Sketch(c.text)
		want, _ := bare.Sketch(c.as)
		if got.Fingerprint != bare.Fingerprint(c.text) || got.Scheme == want.Scheme {
			t.Errorf("%q: the fingerprint or the scheme is not the text's own", c.text)
		}
		got.Fingerprint, got.Scheme = want.Fingerprint, want.Scheme
		expect.Same(t, want, got, "%q", c.text)
	}
	a, _ := s.Sketch(footer)
	b, ok := s.Sketch(footer + " " + footer)
	agreement, _ := a.Agreement(&b)
	if !ok || a.Shingles != 1 || a.Words != 0 || agreement > 0.1 || a.SameWords(&b) {
		t.Errorf("of nothing but boilerplate: %v, %+v and %+v agree by %v", ok, a, b, agreement)
	}
	for text, least := range map[string]uint32{"One two three four five six seven eight nine ten eleven ": 1, "1 2 3 4 5 6 7 8 9 10 11 12 ": 2} {
		under, _ := s.Sketch(text + footer)
		other, _ := s.Sketch(notice + text)
		if got := min(under.Shingles, 2); got != least || under.SameWords(&other) != (least == 2) {
			t.Errorf("%q has %d shingles under a passage, %d under another one", text, under.Shingles, other.Shingles)
		}
		if _, coverage := s.Text(text + footer).Compare(s.Text(notice + text)); (coverage == 1) != (least == 2) {
			t.Errorf("%q has coverage %v", text, coverage)
		}
	}
	again, _ := s.Sketch(strings.ToUpper(footer))
	if !a.SameText(&again) {
		t.Error("equal texts of boilerplate are not equal")
	}
	if k, ok := s.Sketch("…"); ok {
		t.Errorf("a text without a word has the sketch %+v", k)
	}
}

// TestBoilerplateIsPartOfTheScheme: another list is another scheme, and none is the scheme as it was.
func TestBoilerplateIsPartOfTheScheme(t *testing.T) {
	ids := map[uint32]string{}
	for _, list := range []string{"", footer, notice, footer + "\n" + notice} {
		id := Scheme{Boilerplate: list}.ID()
		if other, known := ids[id]; known {
			t.Errorf("%q has the id of %q", list, other)
		}
		ids[id] = list
	}
	for _, features := range []Features{CharacterShingles, Tags, Value64} {
		scheme := Scheme{Features: features, Boilerplate: footer}
		if features == Value64 {
			scheme.Family = Hamming
		}
		if _, err := New(scheme); err == nil || !strings.Contains(err.Error(), "boilerplate: does not go with features: "+string(features)) {
			t.Errorf("%s: %v", features, err)
		}
	}
}

// TestBoilerplateOfRandomTexts holds subtraction to its plain definition on texts of few words, where passages overlap, repeat and break off.
func TestBoilerplateOfRandomTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(effort.Seed(t), 0))
	words := []string{"a", "b", "c", "渡", "轮", "10.5", "-3", "don't", "été", "ไ"}
	text := func(most, kinds int) string {
		var b strings.Builder
		for range random.IntN(most) {
			b.WriteString(words[random.IntN(kinds)] + " ")
		}
		return b.String()
	}
	for range effort.Rounds(2000) {
		scheme := Scheme{Words: 1 + random.IntN(3), Characters: 1 + random.IntN(6), DropNumbers: random.IntN(4) == 0, Keep: Keep{Case: random.IntN(4) == 0}}
		if random.IntN(4) == 0 {
			scheme.Features = WordShingles
		}
		kinds := 1 + random.IntN(len(words))
		passages := []string{text(60, kinds), text(30, kinds), text(90, kinds)}
		scheme.Boilerplate = strings.Join(passages, "\n") + "\n."
		checkSubtracted(t, scheme, text(30, len(words))+passages[random.IntN(3)]+text(30, kinds)+passages[random.IntN(3)]+text(8, len(words)))
	}
}

// FuzzBoilerplate does the same with any text, and with places.
func FuzzBoilerplate(f *testing.F) {
	f.Add(article+footer, footer)
	f.Add("夜间渡轮恢复航行。"+notice+" x", notice)
	f.Add("ไม่ ຳ a\u0301 "+footer, "ทำไมเรือข้ามฟากตอนเย็นจึงกลับมาแล่นอีกครั้งในวันจันทร์")
	f.Fuzz(func(t *testing.T, text, passage string) {
		checkSubtracted(t, Scheme{Boilerplate: passage + "\n.", Content: ContentRaw}, text)
		s := expect.Value(New(Scheme{Content: ContentRaw}))(t)
		checkPlaces(t, s, text)
	})
}

// checkPlaces: what stands at the place of a window has that window and no other.
func checkPlaces(t *testing.T, s *Sketcher, text string) {
	t.Helper()
	places, windows := s.Places(text), s.Windows(text)
	if places == nil {
		return
	}
	expect.Same(t, len(windows), len(places), "%q", text)
	for i, p := range places {
		if p.Window != windows[i] || !slices.Contains(s.Windows(text[p.From:p.To]), p.Window) {
			t.Errorf("%q: window %d is not at %+v", text, i, p)
		}
	}
}

// TestPlaces: the places of a window are as near as words and characters allow.
func TestPlaces(t *testing.T) {
	s := expect.Value(New(Scheme{}))(t)
	for _, c := range []struct{ text, first, last string }{
		{"One two  three four five, six seven EIGHT nine ten 11 12, 13.", "One two  three four five, six seven EIGHT nine ten 11 12,", "two  three four five, six seven EIGHT nine ten 11 12, 13."},
		{notice, "本邮件及其附件含有保密信息，仅限于发送给上面地址中", "个人或群组，禁止任何其他人以任何形式使用。"},
		{article, "The evening ferry to Saltmere sails again from Monday, after eleven years:", "Monday, after eleven years: the last boat leaves at 10.30."},
	} {
		places := s.Places(c.text)
		expect.Same(t, len(s.Windows(c.text)), len(places), "%q", c.text)
		first, last := places[0], places[len(places)-1]
		if got := c.text[first.From:first.To]; !strings.HasPrefix(got, c.first) {
			t.Errorf("first %q, want %q", got, c.first)
		}
		if got := c.text[last.From:last.To]; !strings.HasSuffix(got, c.last) {
			t.Errorf("last %q, want %q", got, c.last)
		}
		checkPlaces(t, s, c.text)
	}
}

// BenchmarkBoilerplate has the cost of subtraction beside none, with 1,000 passages.
func BenchmarkBoilerplate(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 3000)
	for i := range words {
		words[i] = fmt.Sprintf("w%s", strings.Repeat(string(rune('a'+i%26)), 1+i/26%9))
	}
	text := func(n int) string {
		var t strings.Builder
		for range n {
			t.WriteString(words[random.IntN(len(words))] + " ")
		}
		return t.String()
	}
	var passages []string
	for range 1000 {
		passages = append(passages, text(50))
	}
	body := text(400) + passages[3]
	for name, list := range map[string][]string{"off": nil, "on": passages} {
		s, _ := New(Scheme{Boilerplate: strings.Join(list, "\n")})
		b.Run(name, func(b *testing.B) {
			var k Sketch
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				s.SketchInto(&k, body)
			}
		})
	}
}

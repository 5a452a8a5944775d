package sketch

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The tests of this file go through all code points. Which of them a repair is about, they take from the tables of Unicode.

// everyRune calls f for each assigned code point. With -short it leaves out most of Hangul and of the Chinese characters.
func everyRune(f func(r rune)) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if testing.Short() && unicode.Is(unicode.Lo, r) && r > 0x3100 && r%13 != 0 {
			continue
		}
		if utf8.ValidRune(r) && unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cf) {
			f(r)
		}
	}
}

// folds compares texts that readers would call the same, by the plain way and by the fast one.
type folds struct {
	t      *testing.T
	s      *Sketcher
	checks int
}

func newFolds(t *testing.T) *folds { return &folds{t: t, s: newSketcher(t, nil)} }

// same fails unless both texts have the same words, inside of others.
func (f *folds) same(a, b string) {
	f.t.Helper()
	f.checks++
	a, b = "one "+a+" two", "one "+b+" two"
	if x, y := Words(a), Words(b); !slices.Equal(x, y) {
		f.t.Errorf("%+q has the words %+q, %+q has %+q", a, x, b, y)
	} else if !slices.Equal(f.s.Shingles(a), f.s.Shingles(b)) {
		f.t.Errorf("%+q and %+q have the same words and other shingles", a, b)
	}
}

// apart fails if both texts have the same words.
func (f *folds) apart(a, b string) {
	f.t.Helper()
	f.checks++
	if x := Words(a); slices.Equal(x, Words(b)) {
		f.t.Errorf("%+q and %+q have the same words, %+q", a, b, x)
	}
}

// atLeast fails if fewer pairs were compared.
func (f *folds) atLeast(n int) {
	f.t.Helper()
	if f.checks < n {
		f.t.Errorf("%d pairs compared, want %d or more", f.checks, n)
	}
}

func TestCaseFolds(t *testing.T) {
	f := newFolds(t)
	everyRune(func(r rune) {
		if other := unicode.SimpleFold(r); other != r && r != '\u0345' && other != '\u0345' { // the iota below a vowel is an accent
			f.same(string(r)+"x", string(other)+"x")
		}
	})
	for _, i := range []string{"I", "İ", "ı", "i\u0307", "I\u0307"} { // of Turkish
		f.same("t"+i+"p", "tip")
	}
	for _, sigma := range []string{"Σ", "ς", "ϲ", "Ϲ"} { // at the end or not
		f.same("α"+sigma, "ασ")
		f.same("α"+sigma+"α", "ασα")
	}
	for _, sharp := range []string{"ß", "ẞ", "SS", "Ss"} {
		f.same("gro"+sharp+"e", "grosse")
	}
	f.atLeast(2700)
}

// TestAccentsFold: a letter with marks of Latin, Greek or Cyrillic is the letter, the iota below a vowel is such a mark, and a letter in
// pieces is the whole one.
func TestAccentsFold(t *testing.T) {
	f, iotas := newFolds(t), 0
	everyRune(func(r rune) {
		pieces := []rune(norm.NFD.String(string(r)))
		if pieces[0] == r || !unicode.IsLetter(r) {
			return
		}
		f.same(string(r), string(pieces))
		marks := pieces[1:]
		if slices.ContainsFunc(marks, func(m rune) bool { return m < 0x300 || m > 0x36f }) {
			return
		}
		f.same("x"+string(r)+"y", "x"+string(pieces[0])+"y")
		f.same(strings.ToUpper(string(r)), string(pieces[0]))
		if slices.Contains(marks, '\u0345') {
			iotas++
		}
	})
	f.atLeast(2000)
	if iotas < 50 {
		t.Errorf("%d letters with an iota below", iotas)
	}
	for bare, letters := range map[string]string{"d": "đĐ", "o": "øØ", "l": "łŁ", "h": "ħĦ", "t": "ŧŦ", "i": "ıİ", "ae": "æÆǽ", "oe": "œŒ"} {
		for _, r := range letters {
			f.same("x"+string(r)+"y", "x"+bare+"y")
		}
	}
	for _, points := range []string{"שָׁלוֹם שלום", "مُحَمَّد محمد", "كتـــاب كتاب", "ٱلرَّحْمَٰنِ ٱلرحمن"} {
		with, without, _ := strings.Cut(points, " ")
		f.same(with, without)
	}
}

// TestLettersInTheirOwnRightStay: marks without which a word is another one do not fold.
func TestLettersInTheirOwnRightStay(t *testing.T) {
	f := newFolds(t)
	everyRune(func(r rune) {
		pieces := []rune(norm.NFD.String(string(r)))
		if len(pieces) == 2 && (pieces[1] == '\u3099' || pieces[1] == '\u309a') { // the voicing marks of kana
			f.apart(string(r), string(pieces[0]))
			f.same(string(r), string(pieces))
		}
		if norm.NFD.PropertiesString(string(r)).CCC() == 7 && unicode.IsMark(r) { // nuktas
			f.apart("क"+string(r), "क")
		}
	})
	for _, pair := range []string{"कि की", "ก่า ก้า", "கா கி", "=x ≠x", "가 각"} {
		a, b, _ := strings.Cut(pair, " ")
		f.apart(a, b)
	}
	f.atLeast(140)
}

// TestNuktas: a letter with a nukta is the same whole, in pieces and with its marks in another order.
func TestNuktas(t *testing.T) {
	f := newFolds(t)
	everyRune(func(r rune) {
		pieces := []rune(norm.NFD.String(string(r)))
		if len(pieces) > 1 && norm.NFD.PropertiesString(string(pieces[1])).CCC() == 7 {
			f.same(string(r)+"ा", string(pieces)+"ा")
			f.same(string(r)+"\u094d", string(pieces[0])+"\u094d"+string(pieces[1:]))
		}
	})
	f.atLeast(30)
}

// TestCompatibilityFormsFold: forms that differ in width, ligature, position or style are the plain letters and numbers. It takes in the
// presentation forms of Arabic, half-width kana, jamo, ligatures, and letters and digits in circles and of mathematics.
func TestCompatibilityFormsFold(t *testing.T) {
	f, of := newFolds(t), map[string]int{}
	everyRune(func(r rune) {
		plain := norm.NFKC.String(string(r))
		if plain == string(r) || !unicode.In(r, unicode.L, unicode.N) {
			return
		}
		f.same(string(r), plain)
		f.same("é"+string(r), "é"+plain)
		for name, in := range map[string]bool{
			"Arabic": r >= 0xfb50 && r <= 0xfeff, "width": r >= 0xff00 && r <= 0xffef, "jamo": r >= 0x3130 && r <= 0x318f,
			"ligatures": r >= 0xfb00 && r <= 0xfb4f, "mathematics": r >= 0x1d400 && r <= 0x1d7ff,
		} {
			if in {
				of[name]++
			}
		}
	})
	for name, least := range map[string]int{"Arabic": 700, "width": 150, "jamo": 90, "ligatures": 40, "mathematics": 900} {
		if of[name] < least && !testing.Short() {
			t.Errorf("%s: %d forms, want %d or more", name, of[name], least)
		}
	}
	for r := rune(0xff01); r <= 0xff5e; r++ { // marks and signs of full width, too
		f.same("a"+string(r)+"b 1"+string(r)+"2", "a"+string(r-0xfee0)+"b 1"+string(r-0xfee0)+"2")
	}
	for r := rune(0xff66); r <= 0xff9d; r++ { // half-width kana with their voicing marks
		for _, mark := range []string{"ﾞ", "ﾟ"} {
			f.same(string(r)+mark, norm.NFKC.String(string(r)+mark))
		}
	}
}

// TestHangul: every syllable is the same as its jamo.
func TestHangul(t *testing.T) {
	f, step := newFolds(t), rune(1)
	if testing.Short() {
		step = 13
	}
	for r := rune(0xac00); r <= 0xd7a3; r += step {
		f.same(string(r)+"다", norm.NFD.String(string(r)+"다"))
	}
	f.atLeast(800)
}

// TestInvisibleRunesVanish: what Unicode calls default-ignorable changes neither words nor fingerprint, wherever it stands: zero-width
// spaces and joiners, soft hyphens, byte order marks, variation selectors, marks of direction, tags.
func TestInvisibleRunesVanish(t *testing.T) {
	f, n := newFolds(t), 0
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		ignorable := unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) &&
			!unicode.In(r, unicode.White_Space, unicode.Prepended_Concatenation_Mark) && !(r >= 0x13430 && r <= 0x13440)
		if !ignorable || testing.Short() && n > 700 && r%50 != 0 {
			continue
		}
		n++
		for _, text := range []string{"ab*cd", "ab *cd", "ab* cd", "1.*5", "*-3", "日*本", "e*\u0301", "a*", "é*x", "!*="} {
			with, without := strings.ReplaceAll(text, "*", string(r)), strings.ReplaceAll(text, "*", "")
			f.same(with, without)
			if f.s.Fingerprint(with) != f.s.Fingerprint(without) {
				t.Errorf("%+q and %+q have other fingerprints", with, without)
			}
		}
	}
	if n < 600 {
		t.Errorf("%d invisible runes", n)
	}
}

// TestQuotesFold: around words and inside them, quotes of every kind are the same.
func TestQuotesFold(t *testing.T) {
	f := newFolds(t)
	everyRune(func(r rune) {
		if unicode.In(r, unicode.Pi, unicode.Pf, unicode.Quotation_Mark) {
			f.same("say "+string(r)+"hello there"+string(r)+" now", `say "hello there" now`)
		}
	})
	for _, apostrophe := range []string{"’", "‘", "ʼ", "ʻ", "ʹ", "＇"} {
		f.same("don"+apostrophe+"t", "don't")
		f.same("об"+apostrophe+"єкт", "об'єкт")
	}
	f.atLeast(40)
}

// TestBlanksFold: every kind of white space is a blank.
func TestBlanksFold(t *testing.T) {
	f := newFolds(t)
	everyRune(func(r rune) {
		if unicode.In(r, unicode.Z) {
			f.same("a"+string(r)+"b", "a b")
			if f.s.Fingerprint("a"+string(r)+string(r)+"b") != f.s.Fingerprint("a b") {
				t.Errorf("%+q is no blank in the fingerprint", r)
			}
		}
	})
	f.atLeast(18)
}

// TestTraditionalIsSimplified: a traditional Chinese character has the words of its simplified form, which itself stays as it is.
func TestTraditionalIsSimplified(t *testing.T) {
	f := newFolds(t)
	everyRune(func(r rune) {
		simple := simplified(r)
		if simple == r {
			return
		}
		f.same("中"+string(r)+"文", "中"+string(simple)+"文")
		if again := simplified(simple); again != simple {
			t.Errorf("%c becomes %c, and that %c", r, simple, again)
		}
	})
	for _, pair := range []string{"臺灣圖書館 台湾图书馆", "繁體 繁体", "發展 发展", "頭髮 头发"} {
		a, b, _ := strings.Cut(pair, " ")
		f.same(a, b)
	}
	f.atLeast(250)
}

// TestFoldingIsDone: words that are cut again stay the same.
func TestFoldingIsDone(t *testing.T) {
	everyRune(func(r rune) {
		for _, text := range []string{string(r), "a" + string(r) + "b", "1" + string(r) + "2", "é" + string(r) + " か"} {
			words := Words(text)
			if again := Words(strings.Join(words, " ")); !slices.Equal(words, again) {
				t.Errorf("%+q: %+q, cut again %+q", text, words, again)
			}
		}
	})
}

// TestEverySignIsAWord: signs of money, arithmetic and comparison stand by themselves, wherever they are.
func TestEverySignIsAWord(t *testing.T) {
	f, n := newFolds(t), 0
	everyRune(func(r rune) {
		folded := norm.NFKC.String(string(r))
		if !unicode.In(r, unicode.Sm, unicode.Sc) || utf8.RuneCountInString(folded) != 1 || strings.ContainsAny(folded, "|~^`⁄") {
			return
		}
		n++
		f.same("a"+string(r)+"b", "a "+folded+" b")
		f.apart("a"+string(r)+"b", "a b")
	})
	if n < 900 {
		t.Errorf("%d signs", n)
	}
}

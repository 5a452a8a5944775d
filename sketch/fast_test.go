package sketch

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plainly returns the tokens and the base text of a text the plain way.
func plainly(s *Sketcher, text string) (base string, list tokens) {
	w := new(workspace)
	base = baseText(text, Keep{})
	s.cutPlain(w, base)
	return base, w.tokens
}

// quickly returns the same the fast way, with another text before it in the workspace.
func quickly(s *Sketcher, text string) (base string, list tokens) {
	w := new(workspace)
	w.appendBase("before Ünd")
	w.base = append(w.base, 0)
	start := len(w.base)
	w.appendBase(text)
	s.cutFast(w, start)
	return string(w.base[start:]), w.tokens
}

// checkFast holds the fast way against the plain one.
func checkFast(t *testing.T, s *Sketcher, text string) {
	t.Helper()
	wantBase, want := plainly(s, text)
	gotBase, got := quickly(s, text)
	if gotBase != wantBase {
		t.Fatalf("base text of %+q:\n got %+q\nwant %+q", text, gotBase, wantBase)
	}
	if !slices.Equal(got.hashes, want.hashes) {
		var list []string
		for _, token := range plainTokens(wantBase, Auto, Keep{}) {
			list = append(list, token.text)
		}
		t.Fatalf("%+q: got %d tokens, want %d: %+q", text, len(got.hashes), len(want.hashes), list)
	}
	if got.numbers != want.numbers {
		t.Fatalf("%+q: the numbers hash to %x, want %x", text, got.numbers, want.numbers)
	}
	var sizes []uint8
	if got.sizes != nil || want.sizes != nil {
		for _, of := range []*tokens{&got, &want} {
			if of.sizes == nil { // all words
				of.sizes = slices.Repeat([]uint8{uint8(s.scheme.Characters)}, len(of.hashes))
			}
		}
		sizes = want.sizes
	}
	if sizes != nil {
		if diff := cmp.Diff(want.sizes, got.sizes); diff != "" {
			t.Fatalf("%+q: sizes: %s", text, diff)
		}
	}
	if !slices.Equal(s.appendShingles(nil, got), s.appendShingles(nil, want)) {
		t.Fatalf("%+q: shingles differ", text)
	}
}

// scripts are texts in which every rule of normalisation and of word borders has something to do.
var scripts = []string{
	"The quick brown fox's den isn't at 3.14 km, or 1,000 miles; e.g. U.S.A. x_y __init__ a:b a;b 1:2 1;2 'quoted' \"a\".",
	"-3 is 1.25.3, not 12.5.3; EUR 1.250,00 or -125.000 (-7) x-3 3-4 --3 $-5 a==b a!=b a!=-3 !=-3 =-3 c<=d +49 5% 20°C € 5 £5 1½ 10² m² AT&T 1_000 1'000",
	"tabs\tand\nnew lines\r\n  and   many    blanks \v\f ends  ",
	"Straße STRASSE ΣΊΣΥΦΟΣ σίσυφος İstanbul ŉ ΐ ΰ ǰ ﬁne ﬀ ẞ Ⅳ ½ ㎏ ™ … ´ ¨ ª º ² ① ㈱ ㍿",
	"café cafe\u0301 e\u0323\u0301 e\u0301\u0323 x\u0304 \u0301start a\u00adb soft\u00adhyphen zero\u200bwidth zw\u200djoin \ufeffbom",
	"Привет мир, ёлка и Йод; пол-литра. Україна ґанок ’апостроф об’єкт",
	"Ελληνικά άέήίόύώ ϊϋΐΰ ᾳ ῥ ἄνθρωπος · άνω τελεία; τόνος",
	"עברית צה\"ל ג'ירפה ד\"ר שָׁלוֹם",
	"العربية مُحَمَّد كتـــاب ﻻ ﷺ ١٢٣٫٤ فارسی می\u200cخواهم",
	"हिन्दी क़िला ड़ ढ़ में क्\u200dष ज्ञान १२३ বাংলা ড় কো தமிழ் கோ കേരളം ಕನ್ನಡ తెలుగు ගු",
	"日本語のテキストと English が混ざっています。ガギグ ｶﾞｷﾞ ﾊﾟ か\u3099 ２０２４年３月 Ｇｏｏｇｌｅで、々〇ー",
	"中文文本，包含标点。简体 繁體 2024年",
	"한국어 텍스트 각 \u1100\u1161\u11a8 \u1112\u1161\u11ab 띄어쓰기",
	"ภาษาไทยไม่มีช่องว่าง ที่นี่ ກຳ ພາສາລາວ ខ្មែរភាសា မြန်မာဘာသာ བོད་ཡིག",
	"emoji 👩\u200d👩\u200d👧 🇩🇪🇫🇷 1️⃣ ℹ️ ☃︎ ❤️ a👍b x\U0001F3FDy 𝐁𝐨𝐥𝐝 𝟙𝟚 𐐀𐐨 ß\u0301",
	"invalid \xff\xfe bytes a\xffb \xc3( \xe2\x82 \xed\xa0\x80 \xf0\x9f end\xc3",
	"a.z z.a 0.9 9.0 a.b a..b a.-b a'b a''b a’b a_b a_.b _a_ a: b 1,2 1.a a.1 é.f f.é é_é 1.٢ a\u0301.b a.\u0301b a\u200d.b",
	strings.Repeat("longwordwithoutanyblankinsideofit", 20) + " " + strings.Repeat("ü", 300) + " " + strings.Repeat("日", 300),
	strings.Repeat("\u05b0", 40) + "a" + strings.Repeat("\u094d", 33) + " ก" + strings.Repeat("\u0e48", 31) + " b" + strings.Repeat("\u0e48\u05b0", 25) + " ｶ" + strings.Repeat("\uff9e", 35),
	"−3 ≠ 3 ± ÷ −x é-3 €-3 €3,50 ٣٫١٤-3 日-3 5，000 3．5 １！＝ 第3章 3%4 ‰5 ½5 5½ 1\u200b.\u200b5 1.\u20605 đổi Łódź ınce æon 臺灣圖書",
	"10² m² ²² x½ 5½ ½5 1①2 ①② Ⅳ½ 一① ①一 ٣² ²é é² 5\u0301² ½½ 10⁻² (²) ⒈5 5⒈ ㈠1 1㈠ ㊀㊁ 5㊀ ²·² 1.² ².1 -² a*b a * b 2*-3",
	"it's 10.30.15 a.b.c x.1 1.x 1,2.3 a'b'c 1'a a'1 p.m.; U.S.A. end. a:b:c 1:2:3 1;2,3 a'é é'a 1.٢ a.$ 1.+2 a._b " + strings.Repeat("abc'd", 60) + " " + strings.Repeat("1.2", 99),
	"l'été d’où s’achève l’œuvre l'œuf é'é'é é’é’é d'1é é'1 é'= é'_é é'ג ג’é é’² é’ﬁ ﬁ’é æ’æ é’ é' ’é 'é é''é é’’é é.é'é é'é.é é'日 日’é e\u0323’é é’\u0323e é’đ ʼé’ʼ " + strings.Repeat("é'a", 99),
	"б в г  д, е . ж — з\u0301 и й \u00a0к л\u00a0 м\xff н \x00о ёж подъём объём х²х я1 п% " + strings.Repeat("я", 300) + " " + strings.Repeat("я", 127) + "яй " + strings.Repeat("я", 129) + "й",
	"à ÿ÷ß éàÀ×Þ éé" + strings.Repeat("é", 20) + " aé\xc3 é\xa9\xc3\xa9\u0301 \u00a0é é\xc2 ÿé\xc3\xa0  é\té\u00adé 3é % é5",
	strings.Repeat("déjà vu ", 8) + "éčé x_y_1 _a_ a__b a_.b a_'b a_é a_b.c 1_000.5_x a_$ a_-3 a_!=b a_ snake_case_2's \"צה\"ל a\"é 1\"צ א\"1 \"א\"",
	"আমি ভালো কো ক\u09c7\u09be ড়া ড\u09bcা நான் போ ப\u0bc6\u0bbe \u0bbe ക\u0d46\u0d3e क़\u0301 न\u093cि e\u0302\u0323\u0301 ê\u0323 \u1100\u1161\u0301 x\u0304\u0301 か\u3099\u3099 a\u09be=\u0338",
	"\x00 \x01a\x02 nul\x00inside \x7f \u0085 \u2028 \u00a0nbsp\u00a0abcdefghij\u0301 \u3000ideographic　space",
}

func TestFastIsPlain(t *testing.T) {
	s := newSketcher(t, nil)
	for _, text := range scripts {
		checkFast(t, s, text)
		step := 1
		if testing.Short() {
			step = 7
		}
		for i := 0; i < len(text); i += step { // every end and every beginning, at every place in a block
			checkFast(t, s, text[:i])
			checkFast(t, s, text[i:])
		}
	}
}

// TestEveryRune puts every rune of Unicode beside letters of several kinds.
func TestEveryRune(t *testing.T) {
	s := newSketcher(t, nil)
	for r := rune(0x80); r <= 0x3ffff; r++ {
		if testing.Short() && r > 0x3000 {
			r += 700 // few pages: most of the time goes into making them
		}
		c := string(r)
		checkFast(t, s, "abc "+c+" a"+c+"b 1"+c+"2 é"+c+"é "+c+c+" か"+c+" ก"+c+" א"+c+"א")
	}
}

func FuzzFastIsPlain(f *testing.F) {
	for _, text := range scripts {
		f.Add(text)
	}
	s := newSketcher(f, nil)
	f.Fuzz(func(t *testing.T, text string) { checkFast(t, s, text) })
}

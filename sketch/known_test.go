package sketch

import (
	"fmt"
	"strings"
)

// knownCase is a document and a scheme that testdata/known_answers.json has the sketch of.
type knownCase struct {
	name   string
	scheme Scheme
	texts  []string
}

// inigo is the text of the slides; long has many more shingles than a sketch has positions.
const inigo = "My name is Inigo Montoya. You killed my father. Prepare to die"

func long() string { return longText(800) }

func longText(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("word%d", i*7919%613)
	}
	return strings.Join(words, " ")
}

// knownVector is a vector as JSON.
func knownVector(dimensions int) string {
	numbers := make([]string, dimensions)
	for i := range numbers {
		numbers[i] = fmt.Sprintf("%.4f", float64(i*7919%613-306)/613)
	}
	return "[" + strings.Join(numbers, ",") + "]"
}

// knownPage is an HTML page with a menu, an article and a footer.
const knownPage = `<!DOCTYPE html>
<html><head><title>Swimming pool stays open</title><style>p { color: red }</style><script>var hidden = 1;</script></head>
<body><nav><ul><li><a href="/">Home</a></li><li><a href="/sport">Sport</a></li><li><a href="/weather">Weather</a></li></ul></nav>
<article><h1>Swimming pool stays open</h1>
<p>The council voted on Tuesday to keep the old swimming pool open through the winter, after more than four thousand residents
signed a petition against closing it.</p>
<p>The mayor said that the money would come from the fund for roads &amp; bridges, and that the roof, which has leaked since the
storm of last October, would be mended before the first frost. A caf&eacute; is planned on the first floor.</p>
<p>Opponents of the plan, who had asked for a new pool outside of the town, said that they would look at the figures again in
spring, when the report of the engineers is due.</p></article>
<footer><p>Copyright The Daily Example. <a href="/terms">Terms</a> <a href="/privacy">Privacy</a></p></footer></body></html>`

// knownScripts are texts in many scripts, with what each has that is easily lost.
var knownScripts = []struct{ name, text string }{
	{"English", "The quick brown fox's den isn't at 3.14 km; e-mail x_y, “U.S.A.”"},
	{"German", "Straße und STRASSE, Ärger über Öl — groß wie ẞ"},
	{"French", "L’œuvre du café où l'été cafe\u0301 n’est pas fini…"},
	{"Turkish", "İstanbul'da ılık IĞDIR şehri"},
	{"Vietnamese", "Tiếng Việt có dấu: e\u0323\u0302 ế"},
	{"Greek", "Ελληνικά ΣΊΣΥΦΟΣ σίσυφος ᾳ ῥ ἄνθρωπος ΐ"},
	{"Russian", "Привет, мир! Ёлка и Йод: пол-литра"},
	{"Hebrew", "עברית צה\"ל ג'ירפה ד״ר שָׁלוֹם"},
	{"Arabic", "العربية مُحَمَّد كتـــاب ﻻ ﷺ ١٢٣٫٤"},
	{"Persian", "فارسی می\u200cخواهم کتاب\u200cها"},
	{"Hindi", "हिन्दी क़िला ड़ में क्\u200dष ज्ञान १२३"},
	{"Bengali and Tamil", "বাংলা ড় কো தமிழ் கோ"},
	{"Thai", "ภาษาไทยไม่มีช่องว่าง ที่นี่"},
	{"Lao, Khmer, Burmese, Tibetan", "ພາສາລາວ ຂອງ ខ្មែរភាសា မြန်မာဘာသာ བོད་ཡིག"},
	{"Japanese", "日本語のテキストと English が混ざっています。ｶﾞｷﾞ か\u3099 ２０２４年３月、々〇ー"},
	{"Chinese", "中文文本，包含标点。简体 繁體 2024年"},
	{"Korean", "한국어 텍스트 각 \u1100\u1161\u11a8 띄어쓰기"},
	{"emoji", "emoji 👩\u200d👩\u200d👧 🇩🇪🇫🇷 1\ufe0f\u20e3 ❤\ufe0f a👍b 𝐁𝐨𝐥𝐝 𝟙𝟚 𐐀𐐨"},
	{"compatibility forms", "ﬁne ﬀ Ⅳ ½ ㎏ ™ ª ² ① ㈱ ＡＢＣ"},
	{"invalid UTF-8", "invalid \xff\xfe bytes a\xffb \xc3( \xed\xa0\x80 end\xc3"},
	{"format characters", "\ufeffbom soft\u00adhyphen zero\u200bwidth word\u2060joiner nul\x00inside"},
	{"white space", " tabs\tand\r\nlines\u00a0nbsp\u3000wide\u2028end "},
	{"a long word", strings.Repeat("longwordwithoutanyblankinsideofit", 20) + " " + strings.Repeat("ü", 300)},
}

// knownCases lists every family, form, kind of features and option, and many scripts.
func knownCases() (list []knownCase) {
	add := func(name string, scheme Scheme, texts ...string) { list = append(list, knownCase{name, scheme, texts}) }
	for _, family := range []Family{FastSimilarity, Permutations, MSmallest, ZeroModM, SimHash} {
		scheme := Scheme{Family: family, Positions: 32}
		add(string(family)+", short text", scheme, inigo)
		add(string(family)+", long text", scheme, long())
		add(string(family)+", one word", scheme, "one")
		add(string(family)+", no word", scheme, " … ")
	}
	add("fast_similarity, 128 positions", Scheme{Positions: 128}, long())
	add("fast_similarity, 1024 positions", Scheme{Positions: 1024, Bits: 1}, long())
	for _, bits := range []int{1, 2, 4, 8} {
		add(fmt.Sprint("fast_similarity, bits ", bits), Scheme{Positions: 64, Bits: bits}, inigo)
		add(fmt.Sprint("permutations, bits ", bits), Scheme{Family: Permutations, Positions: 64, Bits: bits}, inigo)
	}
	add("zero_mod_m, every hash", Scheme{Family: ZeroModM, Modulus: 1, Repeats: 1}, inigo)
	add("zero_mod_m, no hash", Scheme{Family: ZeroModM, Modulus: 65536, Repeats: 1}, inigo)
	hamming := Scheme{Family: Hamming, Features: Value64}
	add("hamming", hamming, "0x0123456789abcdef")
	add("hamming, second text", hamming, "none", " FEDCBA9876543210 ")
	add("hamming, no value", hamming, "0123456789abcde")

	vectors := Scheme{Family: SimHash, Features: Vectors, Positions: 1024}
	add("vector", vectors, "[1, -2.5e-1, 0.3]")
	add("vector in base64", vectors, "P4AAAL6AAAA+mZma")
	add("vector of 1536 dimensions, with a seed", Scheme{Family: SimHash, Features: Vectors, Positions: 1024, Seed: "a secret"}, knownVector(1536))
	add("vector without a direction", vectors, "[0, 0, -0.0]")

	add("two texts", Scheme{Positions: 32}, "one two", "three four five six")
	add("C++", Scheme{Positions: 32}, "C++")
	add("C#", Scheme{Positions: 32}, "C#")
	add("seed", Scheme{Positions: 32, Seed: "a secret"}, inigo)
	add("one word to a shingle", Scheme{Positions: 32, Words: 1}, inigo)
	add("four words to a shingle", Scheme{Positions: 32, Words: 4}, inigo)
	add("tags", Scheme{Positions: 32, Features: Tags}, "Red ", "C++", "naïve", "red", "")
	mixed := "日本語のテキスト with some English words ภาษาไทย"
	for _, features := range []Features{Auto, WordShingles, CharacterShingles} {
		add("mixed scripts, features "+string(features), Scheme{Positions: 32, Features: features}, mixed)
	}
	add("mixed scripts, five characters to a shingle", Scheme{Positions: 32, Characters: 5}, mixed)
	kept := "Don’t FEAR the café: C++, ΣΊΣΥΦΟΣ; שָׁלוֹם!"
	add("keep nothing", Scheme{Positions: 32}, kept)
	add("keep case", Scheme{Positions: 32, Keep: Keep{Case: true}}, kept)
	add("keep accents", Scheme{Positions: 32, Keep: Keep{Accents: true}}, kept)
	add("keep punctuation", Scheme{Positions: 32, Keep: Keep{Punctuation: true}}, kept)
	add("keep all", Scheme{Positions: 32, Keep: Keep{Case: true, Accents: true, Punctuation: true}}, kept)
	for _, content := range []Content{ContentAll, ContentUseful, ContentRaw} {
		add("HTML, content "+string(content), Scheme{Positions: 32, Content: content}, knownPage)
	}
	for _, s := range knownScripts {
		add(s.name, Scheme{Positions: 32}, s.text)
		spelled := Scheme{Positions: 16, Features: CharacterShingles, Keep: Keep{Accents: true}}
		add(s.name+", accents kept, by characters", spelled, s.text)
	}
	return list
}

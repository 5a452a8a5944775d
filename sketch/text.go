package sketch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// A text becomes tokens in two steps. The base text is what the fingerprint hashes: without invisible characters, case folded, NFC, white
// space collapsed to single blanks. The tokens are cut from the base text: compatibility forms and accents folded (NFKC), cut at the word
// borders of UAX #29. The functions of this file do so in the plainest way, with the libraries for Unicode; they define what is right.
// fast.go does the same for the usual options, many times faster, and falls back to these for runes that it cannot handle. Fuzzing
// checks that both agree.

// token is one word, or one character of a script written without spaces.
type token struct {
	text string
	// character: it counts 1/n of a shingle; a word counts 1/w.
	character bool
	// number: it has a digit.
	number bool
	// sign: it is a sign.
	sign bool
}

// baseText returns the text that the fingerprint hashes. It leaves out invalid UTF-8, as engines do that accept it, and U+0000, which marks
// the border between two texts.
func baseText(text string, keep Keep) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
	return strings.Join(strings.Fields(foldedBase(text, keep)), " ")
}

// foldedBase drops what cannot be seen and folds case. The iota below a Greek vowel goes first, as all accents do later: folding case
// would turn it into a letter.
func foldedBase(text string, keep Keep) string {
	s := norm.NFD.String(strings.Map(dropInvisible, text))
	if !keep.Accents {
		s = strings.ReplaceAll(s, "\u0345", "")
	}
	if !keep.Case {
		s = foldCase(s)
	}
	return norm.NFC.String(s)
}

// foldCase folds case in full: "ß" is "ss". (A caser has no state when it folds, but its methods are not safe side by side.)
func foldCase(text string) string { return strings.Map(foldCherokee, cases.Fold().String(text)) }

// foldCherokee makes capitals of the small letters of Cherokee, as Unicode folds them. The library does not.
func foldCherokee(r rune) rune {
	if r >= 0x13f8 && unicode.Is(unicode.Cherokee, r) {
		return unicode.ToUpper(r)
	}
	return r
}

// dropInvisible is for [strings.Map]: it drops the runes that change nothing that a reader sees, such as zero-width spaces and joiners,
// soft hyphens, byte order marks and variation selectors.
func dropInvisible(r rune) rune {
	if r >= 0xad && unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r) {
		return -1
	}
	return r
}

// foldedText returns a base text with compatibility forms and accents folded, in the form in which it is cut into words.
func foldedText(base string, keep Keep) string {
	s := norm.NFKD.String(partRaised(markSigns(base)))
	if !keep.Accents {
		s, _, _ = transform.String(runes.Remove(runes.Predicate(isAccent)), s)
	}
	if !keep.Case {
		s = foldCase(s)
	}
	s = norm.NFKC.String(s)
	if !keep.Accents {
		s = foldLetters(s)
	}
	return s
}

// markSigns makes a minus of each hyphen that stands before a digit and behind no letter or digit, and one sign of "!=". Runes beyond ASCII
// count as letters here.
func markSigns(base string) string {
	s := strings.ReplaceAll(base, "!=", "≠")
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '-' && isASCIIDigit(s[i+1]) && (i == 0 || !joinsHyphen(s[i-1])) {
			s = s[:i] + "−" + s[i+1:]
		}
	}
	return s
}

func isASCIIDigit(c byte) bool { return c >= '0' && c <= '9' }

// joinsHyphen reports the bytes behind which a hyphen is no minus: letters, digits and all beyond ASCII.
func joinsHyphen(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || isASCIIDigit(c) || c >= utf8.RuneSelf
}

// partRaised puts a blank between a digit and a raised, lowered or circled one, or a fraction: 10² is not 102, and 1½ is not 11⁄2.
func partRaised(text string) string {
	var parted strings.Builder
	var before rune
	for _, r := range text {
		if isRaised(r) && unicode.IsNumber(before) {
			parted.WriteByte(' ')
		}
		parted.WriteRune(r)
		before = r
	}
	return parted.String()
}

// isRaised reports a number in a form that folds to plain digits, except those of full width and of mathematics.
func isRaised(r rune) bool {
	return r >= 0x80 && unicode.Is(unicode.No, r) && norm.NFKD.String(string(r)) != string(r)
}

// foldLetters folds letters that Unicode does not take apart and in which editions of one text differ: letters with a stroke, the i without
// a dot and ligatures. It makes simplified characters of traditional Chinese ones.
func foldLetters(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0 {
		return text
	}
	var folded strings.Builder
	for _, r := range text {
		if letters, ok := strokeless[r]; ok {
			folded.WriteString(letters)
		} else {
			folded.WriteRune(simplified(r))
		}
	}
	return folded.String()
}

var strokeless = map[rune]string{
	'đ': "d", 'Đ': "D", 'ø': "o", 'Ø': "O", 'ł': "l", 'Ł': "L", 'ħ': "h", 'Ħ': "H", 'ŧ': "t", 'Ŧ': "T", 'ı': "i",
	'æ': "ae", 'Æ': "AE", 'œ': "oe", 'Œ': "OE",
}

// isAccent reports the marks that editions of one text differ in: the combining diacritics of Latin, Greek and Cyrillic, the
// points of Hebrew and Arabic, the Arabic elongation, and the apostrophes and half rings that Unicode counts as letters. The vowel
// signs of India and South-East Asia and the voicing marks of kana are letters in their own right and stay. So does the stroke that
// makes ≠ of =.
func isAccent(r rune) bool {
	switch {
	case r < 0x0300:
		return r >= 0x02b9 && r <= 0x02bf || r == 'ˮ'
	case r == 0x0338:
		return false
	case r <= 0x036f, r >= 0x1ab0 && r <= 0x1aff, r >= 0x1dc0 && r <= 0x1dff, r >= 0x20d0 && r <= 0x20ff, r >= 0xfe20 && r <= 0xfe2f:
		return true
	case r >= 0x0591 && r <= 0x05c7:
		return unicode.Is(unicode.Mn, r)
	case r == 0x0640:
		return true
	case r >= 0x0610 && r <= 0x061a, r >= 0x064b && r <= 0x065f, r == 0x0670, r >= 0x06d6 && r <= 0x06ed:
		return unicode.Is(unicode.Mn, r)
	}
	return false
}

// isSign reports the signs that are words: those of money, arithmetic and comparison, percent and degree.
func isSign(r rune) bool {
	if r < 0x80 {
		return asciiSigns[r]
	}
	return unicode.Is(unicode.Sc, r) || unicode.Is(unicode.Sm, r) && r != fractionSlash || r == '‰' || r == '‱' || r == '°'
}

var asciiSigns = func() (is [utf8.RuneSelf]bool) {
	for _, c := range "$%&*+<=>" {
		is[c] = true
	}
	return is
}()

const fractionSlash = '⁄'

// isVisible reports what can be seen: no format and control characters.
func isVisible(r rune) bool { return !unicode.In(r, unicode.Cf, unicode.Cc) }

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// isDigit reports the digits that UAX #29 joins to a number.
func isDigit(r rune) bool {
	if r < 0x80 {
		return r >= '0' && r <= '9'
	}
	return unicode.IsNumber(r) && !standsAlone(r) && joins("1."+string(r))
}

// standsAlone reports whether a letter or number belongs to a script written without spaces: UAX #29 does not join two of them to a word,
// or it is Katakana.
func standsAlone(r rune) bool {
	return r >= 0x80 && (!joins(string(r)+string(r)) || joins(string(r)+"ア"))
}

// joins reports whether UAX #29 sees one word in the text.
func joins(text string) bool {
	it := words.FromString(text)
	return it.Next() && len(it.Value()) == len(text)
}

// Words returns the words, numbers and signs of a text as word shingles are made of them under the default scheme's folding: NFKC, case,
// accents and punctuation folded, cut at the word borders of UAX #29. A mark of punctuation between two digits stays ("1.5"), one between
// letters is left out ("don't" is "dont").
func Words(text string) []string {
	var list []string
	for _, t := range cut(foldedText(baseText(text, Keep{}), Keep{}), WordShingles, Keep{}) {
		list = append(list, t.text)
	}
	return list
}

// plainTokens returns the tokens of a base text.
func plainTokens(base string, features Features, keep Keep) []token {
	return cut(foldedText(base, keep), features, keep)
}

// cut returns the tokens of a folded text.
func cut(text string, features Features, keep Keep) []token {
	var list []token
	it := words.FromString(text)
	for it.Next() {
		if keep.Punctuation {
			list = appendSegment(list, strings.TrimSpace(it.Value()), features, isVisible)
		} else {
			list = appendSegment(list, it.Value(), features, nil)
		}
	}
	if features == CharacterShingles {
		return spell(list)
	}
	return list
}

// appendSegment appends the words and characters of one segment of UAX #29. It keeps letters and numbers, marks after a kept rune, a single
// mark of punctuation between two digits, and the runes for which also, if not nil, returns true. A sign is a word by itself.
func appendSegment(list []token, segment string, features Features, also func(rune) bool) []token {
	var word strings.Builder
	number := false // the word has a digit
	flush := func() {
		if word.Len() > 0 {
			list = append(list, token{text: word.String(), number: number})
			word.Reset()
		}
		number = false
	}
	kept, digit, point := false, false, rune(0) // of the rune before: kept, a digit; a mark behind a digit
	for _, r := range segment {
		before, between := digit, point
		digit, point = isDigit(r), 0
		switch {
		case isSign(r):
			flush()
			list = append(list, token{text: string(r), sign: true})
			kept = false
			continue
		case isLetter(r):
			kept = true
			if digit && between != 0 {
				word.WriteRune(between)
			}
			if features != WordShingles && standsAlone(r) {
				flush()
				list = append(list, token{text: string(r), character: true})
				continue
			}
		case kept && unicode.IsMark(r):
			// goes with the rune before it
			if last := len(list) - 1; word.Len() == 0 && last >= 0 && list[last].character {
				list = append(list, token{text: string(r), character: true})
				continue
			}
		case also != nil && also(r):
			kept = true
		default:
			kept = false
			if before && !unicode.Is(unicode.Pc, r) {
				point = r
			}
			continue
		}
		word.WriteRune(r)
		number = number || digit
	}
	flush()
	return list
}

// spell cuts words into characters, with one blank between two words.
func spell(list []token) []token {
	var spelled []token
	for i, t := range list {
		if i > 0 && !t.character && !list[i-1].character {
			spelled = append(spelled, token{text: " ", character: true})
		}
		for _, r := range t.text {
			spelled = append(spelled, token{text: string(r), character: true, number: t.number, sign: t.sign})
		}
	}
	return spelled
}

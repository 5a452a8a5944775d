package sketch

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// A text becomes tokens in two steps. The base text is what the fingerprint hashes: NFC, case folded, white space collapsed to
// single blanks. The tokens are cut from the base text: compatibility forms and accents folded (NFKC), cut at the word borders
// of UAX #29. The functions of this file do so in the plainest way, with the libraries for Unicode; they define what is right.
// fast.go does the same for the usual options, many times faster, and falls back to these for runes that it cannot handle. Fuzzing
// checks that both agree.

// token is one word, or one character of a script written without spaces.
type token struct {
	text string
	// character: it counts 1/n of a shingle; a word counts 1/w.
	character bool
}

// baseText returns the text that the fingerprint hashes. It leaves out invalid UTF-8, as engines do that accept it, and U+0000, which marks
// the border between two texts.
func baseText(text string, keep Keep) string {
	s := norm.NFC.String(strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", ""))
	if !keep.Case {
		s = norm.NFC.String(foldCase(s))
	}
	return strings.Join(strings.Fields(s), " ")
}

// foldCase folds case in full: "ß" is "ss". (A caser has no state when it folds, but its methods are not safe side by side.)
func foldCase(text string) string { return cases.Fold().String(text) }

// foldedText returns a base text with compatibility forms and accents folded, in the form in which it is cut into words.
func foldedText(base string, keep Keep) string {
	s := norm.NFKD.String(base)
	if !keep.Accents {
		s, _, _ = transform.String(runes.Remove(runes.Predicate(isAccent)), s)
	}
	if !keep.Case {
		s = foldCase(s)
	}
	return norm.NFKC.String(s)
}

// isAccent reports the marks that editions of one text differ in: the combining diacritics of Latin, Greek and Cyrillic, the
// points of Hebrew and Arabic, and the Arabic elongation. The vowel signs of India and South-East Asia and the voicing marks of
// kana are letters in their own right and stay.
func isAccent(r rune) bool {
	switch {
	case r < 0x0300:
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

// isVariation reports variation selectors, which change a glyph and no letter.
func isVariation(r rune) bool {
	return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef || r >= 0x180b && r <= 0x180f
}

// isVisible reports what can be seen: no selectors, soft hyphens, joiners, byte order marks and control characters.
func isVisible(r rune) bool { return !isVariation(r) && !unicode.In(r, unicode.Cf, unicode.Cc) }

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

func isMark(r rune) bool { return unicode.IsMark(r) && !isVariation(r) }

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

// Words returns the words of a text as word shingles are made of them under the default scheme's folding: NFKC, case, accents and
// punctuation folded, cut at the word borders of UAX #29. Segments that hold neither a letter nor a digit are no words; marks
// of punctuation inside a word are left out ("don't" is "dont").
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

// appendSegment appends the words and characters of one segment of UAX #29. It keeps letters and numbers, marks after a kept rune, and the
// runes for which also, if not nil, returns true.
func appendSegment(list []token, segment string, features Features, also func(rune) bool) []token {
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			list = append(list, token{text: word.String()})
			word.Reset()
		}
	}
	kept, alone := false, false
	for _, r := range segment {
		switch {
		case isLetter(r):
			kept, alone = true, features != WordShingles && standsAlone(r)
		case kept && isMark(r):
			// goes with the rune before it
		case also != nil && also(r):
			kept, alone = true, false
		default:
			kept = false
			continue
		}
		if alone {
			flush()
			list = append(list, token{text: string(r), character: true})
		} else {
			word.WriteRune(r)
		}
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
			spelled = append(spelled, token{text: string(r), character: true})
		}
	}
	return spelled
}

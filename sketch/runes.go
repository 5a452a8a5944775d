package sketch

import (
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// runeInfo is what the fast way needs to know about a rune, in one word:
//
//	bits  0–20  the rune in the base text
//	bits 21–41  the rune in a word, if the rune is in the base text
//	bits 42–46  its class in a word
//	bits 47–54  its canonical combining class
//	bit  55     doubtBase: in a text, only the plain way can fold it and its neighbours
//	bit  56     doubtWord: the same in a base text
//	bit  57     manyBase: it becomes none or several runes in the base text; bits 0–20 are the index of their text in the page
//	bit  58     manyWord: it becomes several in a word; bits 21–41 are the index
//	bit  59     raised: see isRaised
//	bit  60     mayCompose: it stays as it is, in a base text and in a word, unless it composes with the rune before it
type runeInfo uint64

const (
	doubtBase runeInfo = 1 << (55 + iota)
	doubtWord
	manyBase
	manyWord
	raised
	mayCompose
)

const runeBits = 1<<21 - 1

// staysMask selects the bits that equal the rune if it stays the same in the base text, as nearly all small letters and all Han and kana
// do, unless it composes with the rune before it. (White space has 0 for its rune.)
const staysMask = runeBits | doubtBase | manyBase

// keptLetter reports whether the rune is a letter, of Hebrew too, that stays the same in a word.
func (i runeInfo) keptLetter(r rune) bool {
	return (i>>21-runeInfo(r)-runeInfo(letter)<<21)&^(1<<21) == 0
}

// keptMark reports whether the rune is a mark that stays the same in a word, unless it composes with the rune before it.
func (i runeInfo) keptMark(r rune) bool {
	return i>>21&(1<<26-1|(doubtWord|manyWord)>>21) == runeInfo(attached)<<21|runeInfo(r)
}

func (i runeInfo) base() rune   { return rune(i & runeBits) }
func (i runeInfo) word() rune   { return rune(i >> 21 & runeBits) }
func (i runeInfo) class() class { return class(i >> 42 & 31) }
func (i runeInfo) ccc() uint8   { return uint8(i >> 47) }

// class is what a rune does to words: the properties of UAX #29 that matter here.
type class uint8

const (
	// other ends a word.
	other class = iota
	// letter and hebrew join with letters, digits and, over a mark that letters take between them, with letters.
	letter
	hebrew // letter + 1: see keptLetter
	// digit joins with letters, digits and, over a mark that digits take between them, with digits.
	digit
	// alone is a token by itself.
	alone
	// attached belongs to the rune before it and is kept: vowel signs and the like.
	attached
	// ignored neither joins nor parts words and is not kept: format characters that can be seen.
	ignored
	// connector joins its neighbours: the low line.
	connector
	// betweenLetters, betweenDigits, betweenBoth join two letters or two digits if nothing else is between these.
	betweenLetters
	betweenDigits
	betweenBoth
	// quotation joins two Hebrew letters.
	quotation
	// blank is white space in a text. (A base text has single blanks alone.)
	blank
	// nothing: the rune vanishes.
	nothing
	// silentLetter and silentDigit join as letters and digits do, but are symbols and not kept.
	silentLetter
	silentDigit
	// sign is a word by itself.
	sign
)

const (
	pageBits = 7
	pageSize = 1 << pageBits
)

// page has the info of 128 neighbouring runes.
type page struct {
	info [pageSize]runeInfo
	many []string
}

// pages are made when they are first needed, from what the plain way does to each rune: 0.2 ms a page. So there is no generated table
// to keep in step with the libraries, and English texts do not pay for Chinese.
var pages [(unicode.MaxRune + 1) / pageSize]atomic.Pointer[page]

func pageOf(r rune) *page {
	p := pages[r>>pageBits].Load()
	if p == nil {
		p = makePage(r)
	}
	return p
}

// infoOf returns the info of a rune.
func infoOf(r rune) runeInfo { return pageOf(r).info[r&(pageSize-1)] }

// makePage makes the page of a rune.
func makePage(r rune) *page {
	p := new(page)
	for i := range p.info {
		p.info[i] = p.describe(r&^(pageSize-1) + rune(i))
	}
	pages[r>>pageBits].Store(p) // two goroutines that make it make the same
	return p
}

// describe computes the info of a rune from what the plain way does to it.
func (p *page) describe(r rune) runeInfo {
	if !utf8.ValidRune(r) {
		return doubtBase | doubtWord
	}
	text := string(r)
	info := runeInfo(norm.NFC.PropertiesString(text).CCC()) << 47
	if unicode.IsSpace(r) {
		return info | runeInfo(blank)<<42
	}
	b := foldedBase(text, Keep{})
	switch first, size := utf8.DecodeRuneInString(b); {
	case b == "" && info.ccc() == 0: // invisible
		info |= manyBase | runeInfo(p.remember(b))
	case norm.NFKD.PropertiesString(text).LeadCCC() != info.ccc():
		info |= doubtBase
	case b == text && !inert(text):
		info |= mayCompose | runeInfo(r)
	case !inert(b[:size]) || info.ccc() != 0 && b != text:
		info |= doubtBase
	case size == len(b):
		info |= runeInfo(first)
	default:
		info |= manyBase | runeInfo(p.remember(b))
	}
	switch w := foldedText(text, Keep{}); {
	case w == "":
		info |= runeInfo(nothing) << 42
	case info&mayCompose != 0 && w == text:
		info |= runeInfo(r)<<21 | runeInfo(classOf(r))<<42
	case !inert(w) || info.ccc() != 0 && w != text:
		info |= doubtWord
	case utf8.RuneCountInString(w) == 1:
		first, _ := utf8.DecodeRuneInString(w)
		info |= runeInfo(first)<<21 | runeInfo(classOf(first))<<42
	case foldedText(w, Keep{}) != w:
		info |= doubtWord // its parts would not stay as they are
	default:
		info |= manyWord | runeInfo(p.remember(w))<<21
	}
	if isRaised(r) {
		info |= raised
	}
	return info
}

// compositions has what pairs of runes become in NFC: bits 21–62 the pair, bits 0–20 the rune. It is filled as pairs come.
var compositions [1 << 12]atomic.Uint64

// apart and manyRunes are returned by compose where no single rune comes of a pair.
const (
	apart     = 0
	manyRunes = runeBits
)

// compose returns the rune that two become in NFC, apart if they stay as they are, or manyRunes if they become something else. The first
// must be in NFC.
func compose(first, second rune) rune {
	pair := uint64(first)<<21 | uint64(second)
	place := &compositions[pair*golden>>52]
	if found := place.Load(); found>>21 == pair {
		return rune(found & runeBits)
	}
	two := string(first) + string(second)
	composed := rune(manyRunes)
	if text := norm.NFC.String(two); text == two {
		composed = apart
	} else if r, size := utf8.DecodeRuneInString(text); size == len(text) {
		composed = r
	}
	place.Store(pair<<21 | uint64(composed))
	return composed
}

// staysApart reports whether a rune stays as it is behind a text in NFC that is not empty.
func staysApart(text []byte, r rune) bool {
	before, _ := utf8.DecodeLastRune(text)
	return compose(before, r) == apart
}

// marks counts combining marks as runes come.
type marks struct {
	// ccc is the combining class of the last rune.
	ccc uint8
	// run is how many runes with another ccc than 0 came last.
	run int
}

// manyMarks is how many combining marks in a row take the plain way: from 30 on, Unicode's stream-safe form parts them.
const manyMarks = 20

// doubt reports whether the next rune is a mark that normalisation may move or part from the one it belongs to.
func (m *marks) doubt(ccc uint8) bool {
	if m.ccc == 0 {
		m.run = 0
	}
	if ccc != 0 {
		m.run++
	}
	return ccc != 0 && ccc < m.ccc || m.run > manyMarks
}

func (p *page) remember(text string) int {
	p.many = append(p.many, text)
	return len(p.many) - 1
}

// inert reports whether a text in NFC stays the same beside any other text, except for the order of combining marks.
func inert(text string) bool {
	for i, r := range text {
		one := "x" + string(r)
		if norm.NFC.QuickSpanString(one) != len(one) || i > 0 && norm.NFC.PropertiesString(string(r)).CCC() != 0 {
			return false
		}
	}
	return true
}

// classOf finds the class of a rune in a folded text by asking which words UAX #29 makes with it.
func classOf(r rune) class {
	s := string(r)
	switch {
	case isSign(r):
		return sign
	case joins("(" + s):
		if unicode.IsMark(r) {
			return attached
		}
		return ignored
	case isLetter(r) && standsAlone(r):
		return alone
	case joins("1." + s):
		if !isLetter(r) {
			return silentDigit
		}
		return digit
	case joins("א\"" + s):
		return hebrew
	case joins("a:" + s):
		if !isLetter(r) {
			return silentLetter
		}
		return letter
	case joins("a"+s) && joins(s+"a"):
		return connector
	}
	letters, digits := joins("a"+s+"a"), joins("1"+s+"1")
	switch {
	case letters && digits:
		return betweenBoth
	case letters:
		return betweenLetters
	case digits:
		return betweenDigits
	case joins("א" + s + "א"):
		return quotation
	}
	return other
}

// asciiClass are the classes of ASCII, small letters included.
var asciiClass = func() (classes [utf8.RuneSelf]class) {
	for c := range classes {
		classes[c] = classOf(rune(c))
	}
	return classes
}()

// asciiBase are the bytes of ASCII in a base text: small letters, and blanks for all white space.
var asciiBase = func() (bytes [utf8.RuneSelf]byte) {
	for c := range bytes {
		bytes[c] = strings.ToLower(string(rune(c)))[0]
		if unicode.IsSpace(rune(c)) {
			bytes[c] = ' '
		}
	}
	return bytes
}()

package sketch

import (
	"bytes"
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// chunk cuts the text between two blanks into tokens, rune by rune, by those rules of UAX #29 that matter once marks of punctuation are
// left out.
type chunk struct {
	s *Sketcher
	w *workspace
	// n is the length of the current word in w.word.
	n int
	// last is the class of the last rune that was not ignored; other at the start.
	last class
	// before is the class before last, where last may join two letters or digits.
	before class
	// kept: the last rune is part of a token, so a mark after it belongs to it.
	kept bool
	// number: the current word has a digit.
	number bool
	// digit: the last rune is a digit. point is the last rune if it is a mark behind a digit, else 0.
	digit bool
	point rune
	marks
}

// maxWord is the longest word with runes beyond ASCII, in bytes. A longer one takes the plain way.
const maxWord = 256

// cutRun appends the tokens of a run of word bytes without looking at the rest of its chunk. It can do so if each rune is a letter with its
// marks, a digit, a sign, a token by itself or an apostrophe between two letters, or ends a word. Otherwise it appends nothing and reports
// false. next is the byte after the run. At least 16 bytes follow the run in its array.
func (s *Sketcher) cutRun(w *workspace, run []byte, next byte) bool {
	word, n, before, hebrews, number := w.word[:maxWord+2*utf8.UTFMax], 0, w.tokens, false, false
	ccc := uint8(0)    // of the last rune
	character := false // the last token is a character by itself, and nothing that is kept has come since
	for i := 0; i < len(run); {
		b := run[i]
		if n > maxWord {
			w.tokens = before
			return false
		}
		if b < utf8.RuneSelf {
			i, ccc = i+1, 0
			if b < 'a' && !isASCIIDigit(b) { // a sign or an apostrophe
				if b == '\'' {
					if !betweenTwoLetters(run, i-1, i) {
						n = maxWord + 1 // ends the loop
					}
					continue
				}
				s.addWord(w, n, number)
				n, number, character = 0, false, false
				s.addSign(w, rune(b))
				continue
			}
			number = number || b < 'a'
			word[n] = b
			n++
			continue
		}
		var r rune
		var size int // a base text is valid UTF-8
		if b < 0xe0 && i+2 <= len(run) {
			r, size = rune(b&0x1f)<<6|rune(run[i+1]&0x3f), 2
		} else if b < 0xf0 && i+3 <= len(run) {
			r, size = rune(b&0x0f)<<12|rune(run[i+1]&0x3f)<<6|rune(run[i+2]&0x3f), 3
		} else {
			r, size = utf8.DecodeRune(run[i:])
		}
		i += size
		p := pages[r>>pageBits].Load() // pageOf is not inlined
		if p == nil {
			p = makePage(r)
		}
		info := p.info[r&(pageSize-1)]
		switch class := info >> 42; {
		case class == runeInfo(letter) && size < utf8.UTFMax && info.word() == r: // it stays as it is, as most do
			word[n], word[n+1], word[n+2] = b, run[i-size+1], run[i-1]
			n, ccc = n+size, 0
		case class == runeInfo(letter) && info.word() < utf8.RuneSelf: // it loses its accent
			word[n] = byte(info.word())
			n, ccc = n+1, 0
		case class == runeInfo(letter), class == runeInfo(digit), class == runeInfo(hebrew):
			hebrews, number = hebrews || class == runeInfo(hebrew), number || class == runeInfo(digit)
			n += utf8.EncodeRune(word[n:n+utf8.UTFMax], info.word())
			ccc = 0
		case class == runeInfo(alone):
			if n > 0 {
				s.addWord(w, n, number)
				n, number = 0, false
			}
			ccc, character = 0, true
			s.addCharacter(w, info.word())
		case class == runeInfo(other), n == 0 && (class == runeInfo(betweenLetters) || class == runeInfo(betweenDigits) || class == runeInfo(betweenBoth)):
			s.addWord(w, n, number)
			n, number, ccc, character = 0, false, 0, false
		case class == runeInfo(sign):
			s.addWord(w, n, number)
			n, number, ccc, character = 0, false, 0, false
			s.addSign(w, info.word())
		case info.class() == nothing:
		case info&mayCompose != 0 && (n == 0 || !staysApart(word[:n], info.word())):
			n = maxWord + 1 // ends the loop
		case (class == runeInfo(betweenLetters) || class == runeInfo(betweenBoth)) && betweenTwoLetters(run, i-size, i):
			ccc = 0 // an apostrophe is left out
		case info.class() == attached && n > 0 && info&(doubtWord|manyWord) == 0 && (ccc == 0 || info.ccc() == 0):
			n += utf8.EncodeRune(word[n:n+utf8.UTFMax], info.word())
			ccc = info.ccc()
		case info.class() == attached && character && n == 0 && info&(doubtWord|manyWord) == 0 && (ccc == 0 || info.ccc() == 0):
			s.addCharacter(w, info.word())
			ccc = info.ccc()
		case info&raised != 0 && info&(doubtWord|manyWord) == 0 && info.class() == digit:
			if parted(run[:i-size]) {
				s.addWord(w, n, number)
				n = 0
			}
			n += utf8.EncodeRune(word[n:n+utf8.UTFMax], info.word())
			number, ccc = true, 0
		case info&manyWord != 0 && info&(doubtWord|raised) == 0 && isLetters(p.many[info.word()]):
			n += copy(word[n:], p.many[info.word()])
			ccc = 0
		case info&manyWord != 0 && info&(doubtWord|raised) == 0 && character && n == 0 && isCharacters(p.many[info.word()]):
			for _, r := range p.many[info.word()] {
				s.addCharacter(w, r)
			}
			ccc = 0
		default:
			n = maxWord + 1 // ends the loop
		}
	}
	if n > maxWord || hebrews && next == '"' {
		w.tokens = before
		return false
	}
	s.addWord(w, n, number)
	return true
}

// betweenTwoLetters reports whether there is a letter on each side of the bytes from begin to end, so that a mark there joins them.
func betweenTwoLetters(run []byte, begin, end int) bool {
	if begin == 0 || end == len(run) {
		return false
	}
	before, after := rune(run[begin-1]), rune(run[end])
	if before >= utf8.RuneSelf {
		before, _ = utf8.DecodeLastRune(run[:begin])
	}
	if after >= utf8.RuneSelf {
		after, _ = utf8.DecodeRune(run[end:])
	}
	return isPlainLetter(before) && isPlainLetter(after)
}

// isPlainLetter reports whether a rune of a base text is one letter in a word, or several of ASCII.
func isPlainLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z'
	}
	p := pageOf(r)
	info := p.info[r&(pageSize-1)]
	return info>>42 == runeInfo(letter) || info&manyWord != 0 && info&(doubtWord|raised) == 0 && isLetters(p.many[info.word()])
}

// parted reports whether a raised number begins a word of its own after the text: it ends with a number.
func parted(text []byte) bool {
	before, _ := utf8.DecodeLastRune(text)
	return unicode.IsNumber(before)
}

// isLetters reports whether a short text has small letters of ASCII alone.
func isLetters(text string) bool {
	for i := range len(text) {
		if text[i] < 'a' || text[i] > 'z' {
			return false
		}
	}
	return len(text) <= utf8.UTFMax
}

// isCharacters reports whether a short text has characters that are tokens by themselves, and marks behind them, alone.
func isCharacters(text string) bool {
	for _, r := range text {
		if class := infoOf(r) >> 42; class != runeInfo(alone) && class != runeInfo(attached) {
			return false
		}
	}
	return true
}

// addWord appends the token in the first n bytes of w.word, if any.
func (s *Sketcher) addWord(w *workspace, n int, number bool) {
	if n > 0 {
		s.add(w, flagged(s.keys.hashPadded(w.word, n), number), false)
	}
}

// addSign appends a token for a sign.
func (s *Sketcher) addSign(w *workspace, r rune) {
	s.add(w, s.characterHash(r)|signFlags, false)
}

// cutChunk appends the tokens between first, where a word begins, and the next blank, and returns where that blank is.
func (s *Sketcher) cutChunk(w *workspace, buffer []byte, first int) (end int) {
	end = first + bytes.IndexByte(buffer[first:], ' ')
	before := w.tokens
	c := chunk{s: s, w: w}
	if c.cut(buffer[first:end]) {
		return end
	}
	w.tokens = before
	s.addAll(w, plainTokens(string(buffer[first:end]), s.scheme.Features, s.scheme.Keep))
	return end
}

// cut appends the tokens of the text. It reports false if only the plain way can cut it.
func (c *chunk) cut(text []byte) bool {
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			c.ccc = 0
			if (b == '-' || b == '!') && i+1 < len(text) && signed(text, i+1) {
				i += c.putSigned(b)
				continue
			}
			i++
			if k := asciiClass[b]; (k == letter || k == digit) && (c.last == letter || c.last == digit) && c.point == 0 && c.n <= maxWord {
				c.w.word[c.n] = b // as put does, without a call
				c.n, c.last, c.kept, c.digit = c.n+1, k, true, k == digit
				c.number = c.number || c.digit
			} else {
				c.put(rune(b), k)
			}
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		i += size
		p := pages[r>>pageBits].Load() // pageOf is not inlined
		if p == nil {
			p = makePage(r)
		}
		info := p.info[r&(pageSize-1)]
		doubt := c.marks.doubt(info.ccc())
		if info&raised != 0 && parted(text[:i-size]) {
			c.put(' ', other)
		}
		switch {
		case info.class() == nothing:
		case info>>42 == runeInfo(alone):
			c.ccc, c.last = 0, alone
			c.flush()
			c.character(info.word())
		case info&doubtWord != 0 || doubt || c.n > maxWord, info&mayCompose != 0 && !c.staysApart(info.word()):
			return false
		case info&manyWord != 0:
			c.ccc = 0
			for _, r := range p.many[info.word()] {
				c.put(r, infoOf(r).class())
			}
		default:
			c.ccc = info.ccc()
			c.put(info.word(), info.class())
		}
	}
	c.flush()
	return c.n <= maxWord
}

// staysApart reports whether a rune that may compose does not, as far as the current word tells.
func (c *chunk) staysApart(r rune) bool {
	return c.kept && c.last != alone && c.n > 0 && staysApart(c.w.word[:c.n], r)
}

// putSigned adds a minus before a digit or the sign "!=", and returns how many bytes that took.
func (c *chunk) putSigned(b byte) int {
	if b == '-' {
		c.put('−', sign)
		return 1
	}
	c.put('≠', sign)
	return 2
}

// put adds the next rune of the folded text.
func (c *chunk) put(r rune, k class) {
	before, between := c.digit, c.point
	c.digit, c.point = false, 0
	switch k {
	case letter, hebrew, digit:
		if !c.joins(k) {
			c.flush()
			between = 0
		}
		if k == digit {
			if between != 0 {
				c.append(between)
			}
			c.digit, c.number = true, true
		}
		c.append(r)
	case silentLetter, silentDigit:
		if k = loud[k]; !c.joins(k) {
			c.flush()
			before = false
		}
		c.drop(r, before)
	case attached:
		c.attach(r)
		return
	case ignored:
		c.drop(r, before)
		return
	case alone:
		c.flush()
		c.character(r)
	case connector:
		if c.last != letter && c.last != hebrew && c.last != digit && c.last != connector {
			c.flush()
		}
		c.kept = false
	case betweenLetters, betweenDigits, betweenBoth, quotation:
		if c.last != letter && c.last != hebrew && c.last != digit {
			c.flush()
			k, before = other, false
		}
		c.drop(r, before)
		c.before = c.last
	case sign:
		c.flush()
		c.s.addSign(c.w, r)
		c.kept, k = false, other
	default:
		c.flush()
		c.kept = false
	}
	c.last = k
}

// drop leaves out a rune, until a digit follows if one is before.
func (c *chunk) drop(r rune, before bool) {
	c.kept = false
	if before {
		c.point = r
	}
}

// loud maps the classes of letters and digits that are not kept to those that are.
var loud = [...]class{silentLetter: letter, silentDigit: digit}

// joins reports whether a letter or digit continues the current word (WB5 to WB13b).
func (c *chunk) joins(k class) bool {
	isLetter, wasLetter := k != digit, c.before == letter || c.before == hebrew
	switch c.last {
	case letter, hebrew, digit, connector:
		return true
	case betweenLetters:
		return isLetter && wasLetter
	case betweenDigits:
		return !isLetter && c.before == digit
	case betweenBoth:
		return isLetter && wasLetter || !isLetter && c.before == digit
	case quotation:
		return k == hebrew && c.before == hebrew
	}
	return false
}

// append adds a rune to the current word. cut notices a word that is too long.
func (c *chunk) append(r rune) {
	c.kept = true
	if c.n <= maxWord {
		c.n += utf8.EncodeRune(c.w.word[c.n:c.n+utf8.UTFMax], r)
	}
}

// attach keeps a mark with the rune before it, if that was kept.
func (c *chunk) attach(r rune) {
	switch {
	case !c.kept:
	case c.last == alone:
		c.character(r)
	default:
		c.append(r)
	}
}

// character appends a token for a character that is a token by itself.
func (c *chunk) character(r rune) {
	c.kept = true
	c.s.addCharacter(c.w, r)
}

// addCharacter appends a token for a character.
func (s *Sketcher) addCharacter(w *workspace, r rune) {
	h := flagged(s.characterHash(r), false) | characterFlag(r)
	if t := &w.tokens; t.sizes != nil {
		t.hashes, t.sizes = append(t.hashes, h), append(t.sizes, uint8(s.scheme.Words))
	} else {
		s.add(w, h, true)
	}
}

// characterHash returns the hash of a token of one rune.
func (s *Sketcher) characterHash(r rune) uint64 {
	x := uint64(0xe0|r>>12) | uint64(0x80|r>>6&0x3f)<<8 | uint64(0x80|r&0x3f)<<16 // the three bytes of most of them
	if r < 0x800 || r > 0xffff {
		var text [utf8.UTFMax]byte
		utf8.EncodeRune(text[:], r)
		x = uint64(binary.LittleEndian.Uint32(text[:]))
	}
	return foldMul(x^s.keys.word, s.keys.rest)
}

// flush appends the current word, if any.
func (c *chunk) flush() {
	if c.n == 0 || c.n > maxWord {
		return
	}
	c.s.add(c.w, flagged(c.s.keys.hashPadded(c.w.word, c.n), c.number), false)
	c.n, c.number = 0, false
}

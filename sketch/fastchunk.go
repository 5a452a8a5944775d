package sketch

import (
	"bytes"
	"encoding/binary"
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
	marks
}

// maxWord is the longest word with runes beyond ASCII, in bytes. A longer one takes the plain way.
const maxWord = 256

// cutRun appends the tokens of a run of word bytes without looking at the rest of its chunk. It can do so if each rune is a letter, a digit
// or a token by itself, or ends a word. Otherwise it appends nothing and reports false. next is the byte after the run.
func (s *Sketcher) cutRun(w *workspace, run []byte, next byte) bool {
	word, n, tokens, hebrews := w.word[:maxWord+2*utf8.UTFMax], 0, len(w.tokens.hashes), false
	for i := 0; i < len(run); {
		b := run[i]
		if n > maxWord {
			w.tokens.truncate(tokens)
			return false
		}
		if b < utf8.RuneSelf {
			word[n] = b
			i, n = i+1, n+1
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
		case class == runeInfo(letter), class == runeInfo(digit), class == runeInfo(hebrew):
			hebrews = hebrews || class == runeInfo(hebrew)
			n += utf8.EncodeRune(word[n:n+utf8.UTFMax], info.word())
		case class == runeInfo(alone), class == runeInfo(other):
			if n > 0 {
				s.add(w, s.keys.hashPadded(w.word, n), false)
				n = 0
			}
			if class == runeInfo(alone) {
				s.addCharacter(w, info.word())
			}
		case info.class() == nothing:
		default:
			n = maxWord + 1 // ends the loop
		}
	}
	if n > maxWord || hebrews && next == '"' {
		w.tokens.truncate(tokens)
		return false
	}
	if n > 0 {
		s.add(w, s.keys.hashPadded(w.word, n), false)
	}
	return true
}

// cutChunk appends the tokens between first, where a word begins, and the next blank, and returns where that blank is.
func (s *Sketcher) cutChunk(w *workspace, buffer []byte, first int) (end int) {
	end = first + bytes.IndexByte(buffer[first:], ' ')
	tokens := len(w.tokens.hashes)
	c := chunk{s: s, w: w}
	if c.cut(buffer[first:end]) {
		return end
	}
	w.tokens.truncate(tokens)
	s.addAll(w, plainTokens(string(buffer[first:end]), s.scheme.Features, s.scheme.Keep))
	return end
}

// cut appends the tokens of the text. It reports false if only the plain way can cut it.
func (c *chunk) cut(text []byte) bool {
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			c.ccc = 0
			i++
			if k := asciiClass[b]; (k == letter || k == digit) && (c.last == letter || c.last == digit) && c.n <= maxWord {
				c.w.word[c.n] = b // as put does, without a call
				c.n, c.last, c.kept = c.n+1, k, true
			} else {
				c.put(rune(b), k)
			}
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		i += size
		p := pageOf(r)
		info := p.info[r&(pageSize-1)]
		doubt := c.marks.doubt(info.ccc())
		switch {
		case info.class() == nothing:
		case info>>42 == runeInfo(alone):
			c.ccc, c.last = 0, alone
			c.flush()
			c.character(info.word())
		case info&doubtWord != 0 || doubt || c.n > maxWord:
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

// put adds the next rune of the folded text.
func (c *chunk) put(r rune, k class) {
	switch k {
	case letter, hebrew, digit:
		if !c.joins(k) {
			c.flush()
		}
		c.append(r)
	case silentLetter, silentDigit:
		if k = loud[k]; !c.joins(k) {
			c.flush()
		}
		c.kept = false
	case attached:
		c.attach(r)
		return
	case ignored:
		c.kept = false
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
			k = other
		}
		c.kept, c.before = false, c.last
	default:
		c.flush()
		c.kept = false
	}
	c.last = k
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
	var text [utf8.UTFMax]byte
	utf8.EncodeRune(text[:], r)
	s.add(w, foldMul(uint64(binary.LittleEndian.Uint32(text[:]))^s.keys.word, s.keys.rest), true)
}

// flush appends the current word, if any.
func (c *chunk) flush() {
	if c.n == 0 || c.n > maxWord {
		return
	}
	c.s.add(c.w, c.s.keys.hashPadded(c.w.word, c.n), false)
	c.n = 0
}

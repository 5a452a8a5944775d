package sketch

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// masks keep the first n bytes of sixteen, as two little-endian numbers.
var masks = func() (m [64][2]uint64) {
	for n := range m {
		for i := range min(n, 16) {
			m[n][i/8] |= 0xff << (i % 8 * 8)
		}
	}
	return m
}()

// mayGoOn has a 1 for two bytes, the first in the low byte of the index, after which a word of ASCII before them may continue.
var mayGoOn = func() (may [1 << 16]uint8) {
	for next := range 256 {
		may['_'|next<<8] = 1
		if next >= utf8.RuneSelf {
			may['"'|next<<8] = 1 // between letters of Hebrew
		}
		for _, c := range "'.:,;" {
			if isWordByte[next] {
				may[int(c)|next<<8] = 1
			}
		}
	}
	return may
}()

// isWordByte are the bytes of words: letters, digits and signs of a base text, and all beyond ASCII.
var isWordByte = func() (is [256]bool) {
	for c := range is {
		is[c] = c >= 'a' && c <= 'z' || c >= utf8.RuneSelf || isASCIIDigit(byte(c)) || asciiSigns[c]
	}
	return is
}()

// wordBytes has the top bit set in each word byte of a base text.
func wordBytes(x uint64) uint64 {
	z := x & sevens
	letters := (z + each*(0x80-'a')) ^ (z + each*(0x80-'z'-1))
	return letters | numberBytes(z) | x
}

// cutFast fills the tokens from the base text that begins at start of w.base.
func (s *Sketcher) cutFast(w *workspace, start int) {
	length := len(w.base)
	buffer := w.base[:length+padding]
	copy(buffer[length:], blanks)
	t := &w.tokens
	t.hashes, t.sizes = slices.Grow(t.hashes[:0], (length-start)/2+2), nil

	// Simple words are written to room and counted in n. cutWord appends the others, and needs the tokens before them.
	room, n := t.hashes[:cap(t.hashes)], 0
	key, rest := s.keys.word, s.keys.rest
	first, done := start, start // where the current word begins; the end of what is cut
	open := uint64(0)           // 1 if a word continues from the block before
	for block := start &^ 63; block <= length; block += 64 {
		word := binary.LittleEndian.Uint64(w.wordBits[block/8:])
		if done >= block {
			word &= ^uint64(0) << (done - block) // nothing of it from 64 on
			open = 0
		}
		// edges has a bit where a word begins and where it has ended, the end of the current word first.
		edges := word ^ (word<<1 | open)
		if open == 0 {
			first = block + bits.TrailingZeros64(edges)
			edges &= edges - 1
		}
		open = word >> 63
		// The bytes of the block, and those before it that a simple word may begin with. Its size lets the compiler leave out checks.
		origin := max(block-16, 0)
		window := (*[128 + 16]byte)(buffer[origin:])
		for edges != 0 {
			end := block + bits.TrailingZeros64(edges)
			edges &= edges - 1
			size := end - first
			bytes, mask := window[(first-origin)&127:], &masks[size&63]
			a, b := binary.LittleEndian.Uint64(bytes)&mask[0], binary.LittleEndian.Uint64(bytes[8:])&mask[1]
			room[n] = foldMul(a^key, b^rest) &^ flags
			notLetters := ((a ^ mask[0]) | (b ^ mask[1])) << 1 // digits and signs lie below 0x40
			if (a|b|notLetters|uint64(16-size))&tops|uint64(mayGoOn[binary.LittleEndian.Uint16(window[(end-origin)&127:])]) == 0 {
				n++
				first = block + bits.TrailingZeros64(edges)
				edges &= edges - 1
				continue
			}
			t.hashes = room[:n]
			done = s.cutWord(w, buffer, start, first, end)
			t.hashes = slices.Grow(t.hashes, (length-done)/2+2)
			room, n = t.hashes[:cap(t.hashes)], len(t.hashes)
			if done > end { // continue with the words that begin after done
				if done >= block+64 {
					break
				}
				word &= ^uint64(0) << (done - block)
				edges = word ^ word<<1
			}
			first = block + bits.TrailingZeros64(edges)
			edges &= edges - 1
		}
	}
	t.hashes = room[:n]
	s.levelSizes(w)
}

// blanks follow a base text, so that no word continues there.
var blanks = strings.Repeat(" ", padding)

// levelSizes gives the simple words their sizes, if the text has both words and characters.
func (s *Sketcher) levelSizes(w *workspace) {
	if t := &w.tokens; t.sizes != nil {
		for len(t.sizes) < len(t.hashes) {
			t.sizes = append(t.sizes, uint8(s.scheme.Characters))
		}
		w.kinds = t.sizes // it may have grown: reuse it for the next text
	}
}

// cutWord appends the tokens of a word that is not simple: it is long, or not plain ASCII, or has a digit or a sign, or may continue after
// its last byte. It returns the end of what is cut. start is where the text begins.
func (s *Sketcher) cutWord(w *workspace, buffer []byte, start, first, end int) int {
	s.levelSizes(w)
	goesOn, number := mayGoOn[binary.LittleEndian.Uint16(buffer[end:])] != 0, false
	if !goesOn && w.keepsLetters(first, end) {
		s.add(w, s.keys.hashPadded(buffer[first:], end-first)&^flags, false)
		return end
	}
	if w.word == nil {
		w.word = make([]byte, maxWord+2*utf8.UTFMax+16)
	}
	if signed(buffer[start:], first-start) {
		return s.cutChunk(w, buffer, first-1)
	}
	signs := false
	for i := first; i < end; i += 8 {
		x, mask := binary.LittleEndian.Uint64(buffer[i:]), masks[min(end-i, 8)][0]
		if x&tops&mask != 0 {
			return s.cutWide(w, buffer, first, end)
		}
		signs, number = signs || signBytes(x)&tops&mask != 0, number || ^x&mask&(each*0x40) != 0
	}
	if goesOn || signs {
		if end := s.cutASCII(w, buffer, first); end > 0 {
			return end
		}
		return s.cutWide(w, buffer, first, end)
	}
	s.add(w, flagged(s.keys.hashPadded(buffer[first:], end-first), number), false)
	return end
}

// keepsLetters reports whether a run of word bytes of the base text is one word, of letters that stay as they are and of their marks.
func (w *workspace) keepsLetters(first, end int) bool {
	bytes := w.base[:end+8]
	for i := first; i < end; i += 8 {
		n := min(end-i, 8)
		x := binary.LittleEndian.Uint64(bytes[i:])
		odd := binary.LittleEndian.Uint16(w.oddBits[i/8:]) >> (i % 8) & (1<<n - 1)
		if ^(x|x<<1)&tops&masks[n][0]|uint64(odd) != 0 { // digits and signs of ASCII are no letters
			return false
		}
	}
	return true
}

// cutASCII appends the tokens of a run of word bytes of ASCII, and of those that follow it after a mark that joins words, such as "isn't",
// "10.30", "snake_case" or "<a.h>". It returns the end of what is cut. If another rune comes before that, or a word is too long, it appends
// nothing and returns 0.
func (s *Sketcher) cutASCII(w *workspace, buffer []byte, first int) (end int) {
	word, n, number, tokens := w.word[:maxWord], 0, false, w.tokens
	for end = first; n < maxWord-1; end++ {
		c := buffer[end]
		k := asciiClass[c&0x7f]
		switch {
		case c >= utf8.RuneSelf:
			n = maxWord // ends the loop
		case k == letter || k == digit:
			word[n] = c
			n, number = n+1, number || k == digit
		case k == sign:
			s.addWord(w, n, number)
			n, number = 0, false
			s.add(w, foldMul(uint64(c)^s.keys.word, s.keys.rest)|signFlags, false)
		case mayGoOn[binary.LittleEndian.Uint16(buffer[end:])] == 0:
			s.addWord(w, n, number)
			return end
		case buffer[end+1] >= utf8.RuneSelf:
			n = maxWord // ends the loop
		case k == connector:
			if after := asciiClass[buffer[end+1]]; n == 0 || after != letter && after != digit && after != connector {
				s.addWord(w, n, number)
				return end + 1
			}
		default:
			before, after := asciiClass[buffer[end-1]], asciiClass[buffer[end+1]]
			if before != after || before != letter && before != digit || k != betweenBoth && (k == betweenLetters) != (after == letter) {
				s.addWord(w, n, number) // two words
				return end
			}
			if after == digit {
				word[n] = c
				n++
			}
		}
	}
	w.tokens = tokens
	return 0
}

// cutWide appends the tokens of a run of word bytes and of those that follow it after an apostrophe, such as "l'été", and returns the end of
// what is cut.
func (s *Sketcher) cutWide(w *workspace, buffer []byte, first, end int) int {
	for buffer[end] == '\'' && isWordByte[buffer[end+1]] {
		for end++; isWordByte[buffer[end]]; end++ {
		}
	}
	if (mayGoOn[binary.LittleEndian.Uint16(buffer[end:])] == 0 || partsCharacters(buffer[first:], end-first)) && s.cutRun(w, buffer[first:end], buffer[end]) {
		return end
	}
	return s.cutChunk(w, buffer, first)
}

// partsCharacters reports whether a mark in the text that may join words does not, because a character that is a token by itself is before or
// after it.
func partsCharacters(text []byte, mark int) bool {
	before, _ := utf8.DecodeLastRune(text[:mark])
	after, _ := utf8.DecodeRune(text[mark+1:])
	return text[mark] != '_' && (infoOf(before)>>42 == runeInfo(alone) || infoOf(after)>>42 == runeInfo(alone))
}

// signed reports whether the byte before a word belongs to it: a minus before a digit, or the first half of "!=".
func signed(text []byte, first int) bool {
	if first == 0 {
		return false
	}
	switch text[first-1] {
	case '-':
		return isASCIIDigit(text[first]) && (first == 1 || !joinsHyphen(text[first-2])) &&
			(first < 3 || text[first-3] != '!' || text[first-2] != '=') // that "!=" is one rune beyond ASCII by then
	case '!':
		return text[first] == '='
	}
	return false
}

// hashPadded returns the hash of a token from the first n bytes of a slice that has at least 16 more: 16 bytes a step, the last step
// padded with zeros. No token contains a zero.
func (k *keys) hashPadded(bytes []byte, n int) uint64 {
	h := k.word
	for ; n > 16; n -= 16 {
		h = foldMul(binary.LittleEndian.Uint64(bytes)^h, binary.LittleEndian.Uint64(bytes[8:])^k.rest)
		bytes = bytes[16:]
	}
	mask := &masks[n]
	a, b := binary.LittleEndian.Uint64(bytes)&mask[0], binary.LittleEndian.Uint64(bytes[8:])&mask[1]
	return foldMul(a^h, b^k.rest)
}

package sketch

import (
	"encoding/binary"
	"math/bits"
	"slices"
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
		for _, c := range "'.:,;" {
			if isWordByte(byte(next)) {
				may[int(c)|next<<8] = 1
			}
		}
	}
	return may
}()

// isWordByte reports the bytes of words: letters and digits of a base text, and all beyond ASCII.
func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

// wordBytes8 returns one bit for each of eight bytes that says whether it is a word byte.
func wordBytes8(b []byte) uint64 {
	y := binary.LittleEndian.Uint64(b)
	z := y & sevens
	letters := (z + each*(0x80-'a')) ^ (z + each*(0x80-'z'-1))
	digits := (z + each*(0x80-'0')) ^ (z + each*(0x80-'9'-1))
	return gather(letters | digits | y)
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
		for edges != 0 {
			end := block + bits.TrailingZeros64(edges)
			edges &= edges - 1
			size := end - first
			bytes, mask := (*[16]byte)(buffer[first:]), &masks[size&63]
			a, b := binary.LittleEndian.Uint64(bytes[:8])&mask[0], binary.LittleEndian.Uint64(bytes[8:])&mask[1]
			room[n] = foldMul(a^key, b^rest)
			if (a|b|uint64(16-size))&tops|uint64(mayGoOn[binary.LittleEndian.Uint16(buffer[end:])]) == 0 {
				n++
				first = block + bits.TrailingZeros64(edges)
				edges &= edges - 1
				continue
			}
			t.hashes = room[:n]
			done = s.cutWord(w, buffer, first, end)
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
const blanks = "                                                                                "

// levelSizes gives the simple words their sizes, if the text has both words and characters.
func (s *Sketcher) levelSizes(w *workspace) {
	if t := &w.tokens; t.sizes != nil {
		for len(t.sizes) < len(t.hashes) {
			t.sizes = append(t.sizes, uint8(s.scheme.Characters))
		}
		w.kinds = t.sizes // it may have grown: reuse it for the next text
	}
}

// cutWord appends the tokens of a word that is not simple: it is long, or not plain ASCII, or may continue after its last byte. It returns
// the end of what is cut.
func (s *Sketcher) cutWord(w *workspace, buffer []byte, first, end int) int {
	s.levelSizes(w)
	if w.word == nil {
		w.word = make([]byte, maxWord+2*utf8.UTFMax+16)
	}
	if mayGoOn[binary.LittleEndian.Uint16(buffer[end:])] != 0 {
		return s.cutChunk(w, buffer, first)
	}
	for i := first; i < end; i += 8 {
		if binary.LittleEndian.Uint64(buffer[i:])&tops&masks[min(end-i, 8)][0] != 0 {
			if s.cutRun(w, buffer[first:end], buffer[end]) {
				return end
			}
			return s.cutChunk(w, buffer, first)
		}
	}
	s.add(w, s.keys.hashPadded(buffer[first:], end-first), false)
	return end
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

package elastic

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// unicodeForm is how the characters of JSON are written, if not in UTF-8: in units of 2 or 4 bytes.
type unicodeForm struct {
	unit  int
	order binary.ByteOrder
}

var unicodeForms = []unicodeForm{{4, binary.BigEndian}, {4, binary.LittleEndian}, {2, binary.BigEndian}, {2, binary.LittleEndian}}

// first returns the unit that data begins with; 0 if it holds none.
func (f unicodeForm) first(data []byte) rune {
	switch {
	case len(data) < f.unit:
		return 0
	case f.unit == 2:
		return rune(f.order.Uint16(data))
	}
	return rune(min(f.order.Uint32(data), utf8.MaxRune+1))
}

const byteOrderMark = 0xFEFF

// unicodeFormOf returns how the engines read JSON that begins so: with a byte order mark, or with a character of ASCII, as RFC 4627 has it. ok is
// false for UTF-8, and for what they refuse.
func unicodeFormOf(data []byte) (f unicodeForm, ok bool) {
	for _, f := range unicodeForms {
		if first := f.first(data); first == byteOrderMark || first > 0 && first < 0x100 {
			return f, true
		}
	}
	return f, false
}

// inUTF8 returns JSON as the engines read it, in UTF-8: data itself if it is in that.
//
// Engines store JSON in UTF-16 or UTF-32 as it came, and put these bytes into replies in UTF-8, which no client can read. Stored in UTF-8
// the same document can be read.
func inUTF8(data []byte) []byte {
	f, ok := unicodeFormOf(data)
	if !ok {
		return data
	}
	if f.first(data) == byteOrderMark {
		data = data[f.unit:]
	}
	var out []byte
	if f.unit == 2 {
		units := make([]uint16, len(data)/2)
		for i := range units {
			units[i] = f.order.Uint16(data[2*i:])
		}
		out = []byte(string(utf16.Decode(units))) // half a pair becomes U+FFFD, as in the engines, and so does half a character
		if len(data)%2 > 0 {
			out = utf8.AppendRune(out, utf8.RuneError)
		}
		return out
	}
	for ; len(data) > 0; data = data[4:] {
		if len(data) < 4 || f.first(data) > utf8.MaxRune { // the engines' reader stops there
			return append(out, invalid)
		}
		out = utf8.AppendRune(out, f.first(data))
	}
	return out
}

// invalid is a byte that no JSON parser takes anywhere.
const invalid = 0x01

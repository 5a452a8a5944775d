package elastic

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// unicodeForm is how the characters of JSON are written, if not in UTF-8: in units of 2 or 4 bytes, behind a byte order mark or not.
type unicodeForm struct {
	unit, mark int
	order      binary.ByteOrder
}

// unicodeFormOf returns how the engines read JSON that begins so. They look at its first four bytes, as RFC 4627 has it. ok is false for UTF-8, and
// for what they refuse.
func unicodeFormOf(data []byte) (f unicodeForm, ok bool) {
	big, little := binary.ByteOrder(binary.BigEndian), binary.ByteOrder(binary.LittleEndian)
	if len(data) >= 4 {
		switch quad := binary.BigEndian.Uint32(data); {
		case quad == 0x0000FEFF:
			return unicodeForm{4, 4, big}, true
		case quad == 0xFFFE0000:
			return unicodeForm{4, 4, little}, true
		case quad>>16 == 0xFEFF:
			return unicodeForm{2, 2, big}, true
		case quad>>16 == 0xFFFE:
			return unicodeForm{2, 2, little}, true
		case quad>>8 == 0:
			return unicodeForm{4, 0, big}, true
		case quad&0x00FFFFFF == 0:
			return unicodeForm{4, 0, little}, true
		}
	}
	switch {
	case len(data) < 2 || data[0] == 0 && data[1] == 0:
		return f, false
	case data[0] == 0:
		return unicodeForm{2, 0, big}, true
	case data[1] == 0:
		return unicodeForm{2, 0, little}, true
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
	data = data[f.mark:]
	if f.unit == 2 {
		units := make([]uint16, len(data)/2)
		for i := range units {
			units[i] = f.order.Uint16(data[2*i:])
		}
		out := string(utf16.Decode(units)) // half a pair becomes U+FFFD, as in the engines, and so does half a character
		if len(data)%2 > 0 {
			out += string(utf8.RuneError)
		}
		return []byte(out)
	}
	var out []byte
	for ; len(data) > 0; data = data[4:] {
		if len(data) < 4 || f.order.Uint32(data) > utf8.MaxRune { // the engines' reader stops there
			return append(out, invalid)
		}
		out = utf8.AppendRune(out, rune(f.order.Uint32(data)))
	}
	return out
}

// invalid is a byte that no JSON parser takes anywhere.
const invalid = 0x01

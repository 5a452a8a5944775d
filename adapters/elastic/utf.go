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

// formOf returns how the engines read JSON that begins so. They look at its first four bytes, as RFC 4627 has it. ok is false for UTF-8, and
// for what they refuse.
func formOf(data []byte) (f unicodeForm, ok bool) {
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
	f, ok := formOf(data)
	if !ok {
		return data
	}
	data = data[f.mark:]
	out := make([]byte, 0, len(data)/f.unit*3/2+utf8.UTFMax)
	for ; len(data) >= f.unit; data = data[f.unit:] {
		var c rune
		if f.unit == 4 {
			code := f.order.Uint32(data)
			if code > utf8.MaxRune { // the engines' reader stops there
				return append(out, invalid)
			}
			c = rune(code)
		} else if c = rune(f.order.Uint16(data)); utf16.IsSurrogate(c) {
			pair := utf8.RuneError
			if len(data) >= 4 {
				pair = utf16.DecodeRune(c, rune(f.order.Uint16(data[2:])))
			}
			if c = pair; pair != utf8.RuneError {
				data = data[2:]
			}
		}
		out = utf8.AppendRune(out, c) // half a pair becomes U+FFFD, as in the engines
	}
	if len(data) > 0 { // half a character
		if f.unit == 4 {
			return append(out, invalid)
		}
		out = utf8.AppendRune(out, utf8.RuneError)
	}
	return out
}

// invalid is a byte that no JSON parser takes, wherever it stands.
const invalid = 0x01

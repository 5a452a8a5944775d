package jsonedit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the decoded string, and false if value is no JSON string. A character that is written in more bytes of UTF-8 than it needs
// reads as that character, as Elasticsearch and OpenSearch have it: a name of ours may be spelled so.
func Text(value []byte) (string, bool) {
	text, _, ok := TextIn(nil, value, false)
	return string(text), ok
}

// TextBytes is [Text] as bytes, which share the value's memory if nothing in it is escaped.
func TextBytes(value []byte) ([]byte, bool) {
	if len(value) >= 2 && value[0] == '"' && simple(value) {
		return value[1 : len(value)-1 : len(value)-1], true
	}
	text, _, ok := TextIn(nil, value, false)
	return text, ok
}

// TextIn is [TextBytes] of a value that may be known to be valid UTF-8. Where it can't share the value's memory, it appends the text to room, which it
// returns longer.
func TextIn(room, value []byte, valid bool) (text, _ []byte, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, room, false
	}
	if valid = valid || utf8.Valid(value); !valid {
		value = shortened(value)
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner[:len(inner):len(inner)], room, true
	}
	start, known := len(room), false
	if valid {
		room, known = appendUnescaped(room, inner)
	}
	if !known {
		var s string
		if json.Unmarshal(value, &s) != nil {
			return nil, room[:start], false
		}
		room = append(room[:start], s...)
	}
	return room[start:len(room):len(room)], room, true
}

// appendUnescaped appends what is between the quotes of a JSON string of valid UTF-8, decoded as encoding/json does, in a fraction of its time.
// It returns false for what may not be there, and for surrogates.
func appendUnescaped(dst, inner []byte) ([]byte, bool) {
	dst = slices.Grow(dst, len(inner)) // no escape stands for more bytes than it has
	for {
		n := plain(inner)
		dst = append(dst, inner[:n]...)
		if inner = inner[n:]; len(inner) == 0 {
			return dst, true
		}
		n = escape(inner)
		switch {
		case n == 0:
			return dst, false
		case inner[1] != 'u':
			dst = append(dst, standsFor[inner[1]])
		default:
			r, err := strconv.ParseUint(string(inner[2:n]), 16, 16)
			if err != nil || utf16.IsSurrogate(rune(r)) {
				return dst, false
			}
			dst = utf8.AppendRune(dst, rune(r))
		}
		inner = inner[n:]
	}
}

// Strings makes strings that share memory: many short ones take few allocations. The zero Strings is ready; Size is about how many bytes they have
// together, where that is known.
type Strings struct {
	Size int
	room strings.Builder
}

// Of returns bytes as a string.
func (s *Strings) Of(text []byte) string {
	if s.room.Cap()-s.room.Len() < len(text) { // the strings that are in the room keep it
		size := min(max(2*s.room.Cap(), 64), 1<<10)
		s.room.Reset()
		s.room.Grow(max(len(text), size, s.Size))
		s.Size = 0
	}
	start := s.room.Len()
	s.room.Write(text)
	return s.room.String()[start:]
}

// standsFor holds the characters that an escape of two bytes stands for, by its second one.
var standsFor = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// long returns the character that text begins with and its bytes, if they are more than it needs; else 0 bytes. UTF-8 forbids those; parsers
// that take the bits without a look take them.
func long(text []byte) (c rune, bytes int) {
	follows := func(i int) bool { return i < len(text) && text[i]&0xC0 == 0x80 }
	switch {
	case len(text) == 0:
	case text[0]&0xFE == 0xC0 && follows(1):
		return rune(text[0]&0x1F)<<6 | rune(text[1]&0x3F), 2
	case text[0] == 0xE0 && follows(1) && text[1] < 0xA0 && follows(2):
		return rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F), 3
	}
	return 0, 0
}

// shortened returns a JSON string in which such characters are escaped.
func shortened(quoted []byte) []byte {
	out := make([]byte, 0, len(quoted)+16)
	for i := 0; i < len(quoted); {
		c, n := long(quoted[i:])
		if n == 0 {
			out, i = append(out, quoted[i]), i+1
			continue
		}
		out, i = fmt.Appendf(out, `\u%04x`, c), i+n
	}
	return out
}

// ValueText returns a value as text: a string as it reads, a number in the one form for it (1, 1.0 and 1e0 are equal), true and false as
// such. It returns false for anything else.
func ValueText(value []byte) (text string, ok bool) {
	if len(value) == 0 {
		return "", false
	}
	switch value[0] {
	case '"':
		return Text(value)
	case '{', '[', 'n':
		return "", false
	case 't', 'f':
		return string(value), true
	}
	if text = string(value); !strings.ContainsAny(text, ".eE") { // a whole number, be it larger than those of 53 bits
		return text, true
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text, true
	}
	return strconv.FormatFloat(n+0, 'f', -1, 64), true // -0 is 0
}

// AppendString appends s as a JSON string, keeping every byte that JSON need not escape; invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(slices.Grow(dst, len(s)+2), '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// simple reports whether a string needs no decoding: nothing in it is escaped, nor written in more bytes than it needs. Most are short keys,
// for which a loop takes a third of the time of the two calls.
func simple(quoted []byte) bool {
	return len(quoted) <= 32 && plainASCII(quoted) || bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted)
}

func plainASCII(text []byte) bool {
	for _, c := range text {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

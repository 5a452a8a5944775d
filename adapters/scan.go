package adapters

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// scanner walks over JSON by the grammar of RFC 8259, and over comments between its tokens. Its methods return false where what stands
// there is not well-formed; where it then stands means nothing.
type scanner struct {
	data    []byte
	at      int
	deepest int
	strict  bool // comments are none
	trusted bool // the strings are known to be well-formed: only where they end is looked for
	counts  bool // keys that can be names of fields of ours are counted
	named   int  // so many there were
}

// begin returns a scanner that stands at the first value in data.
func begin(data []byte) scanner {
	s := scanner{data: data, deepest: maxDepth}
	if bytes.HasPrefix(data, byteOrderMark) {
		s.at = len(byteOrderMark)
	}
	s.space()
	return s
}

// byteOrderMark may stand in front of a document, though RFC 8259 tells writers not to.
var byteOrderMark = []byte("\uFEFF")

// space goes over white space, and over comments: engines read them, so a document may hold some. Most tokens have neither in front.
func (s *scanner) space() {
	if s.at < len(s.data) && s.data[s.at] > ' ' && s.data[s.at] != '/' {
		return
	}
	s.spaces()
}

func (s *scanner) spaces() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		case '/':
			n := comment(s.data[s.at:])
			if n == 0 || s.strict {
				return
			}
			s.at += n
		default:
			return
		}
	}
}

// comment returns the length of the comment that data begins with, or 0.
func comment(data []byte) int {
	end := "*/"
	switch {
	case len(data) < 2:
		return 0
	case data[1] == '/':
		end = "\n"
	case data[1] != '*':
		return 0
	}
	if i := bytes.Index(data[2:], []byte(end)); i >= 0 {
		return 2 + i + len(end)
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

// value goes over one value whose container stands at the depth.
func (s *scanner) value(depth int) bool {
	if s.at >= len(s.data) || depth > s.deepest {
		return false
	}
	switch s.data[s.at] {
	case '"':
		return s.str()
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

// object goes over an object that stands at the depth.
func (s *scanner) object(depth int) bool {
	s.at++
	if s.space(); s.take('}') {
		return true
	}
	for {
		if !s.key() || !s.value(depth+1) {
			return false
		}
		if s.space(); s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
		s.space()
	}
}

// key goes over a member's key and what stands between it and its value.
func (s *scanner) key() bool {
	start := s.at
	if !s.str() {
		return false
	}
	s.count(start)
	if s.space(); !s.take(':') {
		return false
	}
	s.space()
	return true
}

// count counts the key that starts there and was gone over.
func (s *scanner) count(start int) {
	if s.counts && mayBeOurs(s.data[start:s.at]) {
		s.named++
	}
}

// array goes over an array that stands at the depth.
func (s *scanner) array(depth int) bool {
	s.at++
	if s.space(); s.take(']') {
		return true
	}
	for {
		if !s.value(depth + 1) {
			return false
		}
		if s.space(); s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
		s.space()
	}
}

func (s *scanner) literal(word string) bool {
	if len(s.data)-s.at < len(word) || string(s.data[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

// str goes over a string.
func (s *scanner) str() bool {
	if !s.take('"') {
		return false
	}
	if s.trusted {
		return s.skip()
	}
	for {
		s.at += plain(s.data[s.at:])
		if s.at >= len(s.data) {
			return false
		}
		switch s.data[s.at] {
		case '"':
			s.at++
			return true
		case '\\':
			if !s.escape() {
				return false
			}
		default: // a control character
			return false
		}
	}
}

// skip goes to the end of a well-formed string: to the first quote with an even number of backslashes in front.
func (s *scanner) skip() bool {
	for {
		from := s.at
		n := bytes.IndexByte(s.data[from:], '"')
		if n < 0 {
			return false
		}
		s.at += n + 1
		escapes := 0
		for at := from + n - 1; at >= from && s.data[at] == '\\'; at-- {
			escapes++
		}
		if escapes%2 == 0 {
			return true
		}
	}
}

// plain returns how many bytes at the beginning of data are none of a quote, a backslash and a control character, looking at eight at a
// time. Most of a reply is inside strings, and this makes going over one several times as fast.
func plain(data []byte) int {
	n := 0
	for ; len(data)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(data[n:])
		// The high bit of a byte is set where it is below 0x20, or 0 after an exclusive or, and was not set before; and of some behind such
		// a byte.
		const each, high = 0x0101010101010101, 0x8080808080808080
		if found := ((x - each*0x20) | (x ^ each*'"' - each) | (x ^ each*'\\' - each)) &^ x & high; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for ; n < len(data); n++ {
		if c := data[n]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return n
}

// escape goes over a backslash and what it stands in front of.
func (s *scanner) escape() bool {
	if len(s.data)-s.at < 2 {
		return false
	}
	switch s.data[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return true
	case 'u':
	default:
		return false
	}
	if len(s.data)-s.at < 6 {
		return false
	}
	for _, h := range s.data[s.at+2 : s.at+6] {
		if !(h >= '0' && h <= '9' || h >= 'a' && h <= 'f' || h >= 'A' && h <= 'F') {
			return false
		}
	}
	s.at += 6
	return true
}

func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && s.digits() == 0 {
		return false
	}
	if s.take('.') && s.digits() == 0 {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits() > 0
	}
	return true
}

func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.data) && s.data[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at - start
}

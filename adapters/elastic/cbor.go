package elastic

import (
	"encoding/binary"
	"math"
	"strconv"
)

// cborForm reads and writes CBOR (RFC 8949) as the engines' parser takes it: keys may be texts or bytes, in pieces or behind tags, or whole numbers.
// Texts by reference (tags 25 and 256), which that parser knows too, are not read.
type cborForm struct{}

// Major types of CBOR, and the byte that ends what has no length.
const (
	cborUint, cborNegative, cborBytes, cborText, cborArray, cborMap, cborTag, cborSimple = 0, 1, 2, 3, 4, 5, 6, 7

	cborBreak = 0xFF
)

// head reads the type of a value and its number. indefinite says that a break ends it.
func (cborForm) head(s *scanner) (major byte, n uint64, indefinite bool) {
	c := s.byte()
	major, info := c>>5, c&0x1F
	switch {
	case info < 24:
		return major, uint64(info), false
	case info < 28:
		var room [8]byte
		size := 1 << (info - 24)
		copy(room[8-size:], s.take(size))
		return major, binary.BigEndian.Uint64(room[:]), false
	}
	s.bad = s.bad || info != 31 || major < cborBytes || major > cborMap
	return major, 0, true
}

func (cborForm) start(*scanner, int) (head []byte) { return nil }

func (c cborForm) read(s *scanner, key bool) (t token) {
	at := s.at
	major, n, indefinite := c.head(s)
	for major == cborTag && !s.bad {
		s.bad, at = n == 25 || n == 256, s.at
		major, n, indefinite = c.head(s)
	}
	switch t.kind = '0'; {
	case s.bad:
	case major == cborText || major == cborBytes && key:
		t.kind, t.text = '"', c.text(s, major, n, indefinite)
	case major == cborBytes:
		c.text(s, major, n, indefinite)
	case major == cborUint:
		t.text = strconv.AppendUint(nil, n, 10)
	case major == cborNegative && n < math.MaxUint64:
		t.text = strconv.AppendUint([]byte{'-'}, n+1, 10)
	case key:
		s.bad = true
	case major == cborArray || major == cborMap:
		t.kind, t.count = map[byte]byte{cborArray: '[', cborMap: '{'}[major], int(n)
		if indefinite {
			t.count = -1
		}
		s.bad = n > uint64(len(s.data)-s.at) // each takes a byte at least
	case s.data[at] == 0xF4:
		t.kind = 'f'
	case s.data[at] == 0xF5:
		t.kind = 't'
	case s.data[at] == 0xF6 || s.data[at] == 0xF7: // null, undefined
		t.kind = 'n'
	case s.data[at] == 0xF9:
		t.text = floatText(halfFloat(uint16(n)), 32)
	case s.data[at] == 0xFA:
		t.text = floatText(float64(math.Float32frombits(uint32(n))), 32)
	case s.data[at] == 0xFB:
		t.text = floatText(math.Float64frombits(n), 64)
	}
	return t
}

// halfFloat returns a number of 16 bits.
func halfFloat(bits uint16) float64 {
	exponent, fraction := int(bits>>10&0x1F), float64(bits&0x3FF)
	x := math.Ldexp(fraction, -24)
	switch {
	case exponent == 0x1F && fraction == 0:
		x = math.Inf(1)
	case exponent == 0x1F:
		return math.NaN()
	case exponent > 0:
		x = math.Ldexp(1024+fraction, exponent-25)
	}
	if bits>>15 != 0 {
		return -x
	}
	return x
}

// text reads a text, or bytes, and joins its pieces. One with a length is a single piece.
func (c cborForm) text(s *scanner, major byte, n uint64, indefinite bool) (text []byte) {
	if !indefinite {
		return s.take(int(n))
	}
	for !s.bad && !s.passes(cborBreak) {
		piece, n, nested := c.head(s)
		s.bad = s.bad || nested || piece != major
		text = append(text, s.take(int(n))...)
	}
	return text
}

func (cborForm) marks() (object, list [2]byte, null byte) {
	return [2]byte{0xBF, cborBreak}, [2]byte{0x9F, cborBreak}, 0xF6
}

func (c cborForm) appendText(dst []byte, text string, _ bool) []byte {
	return append(c.appendHead(dst, cborText, uint64(len(text))), text...)
}

func (c cborForm) appendInt(dst []byte, n int64) []byte {
	if n < 0 {
		return c.appendHead(dst, cborNegative, uint64(-1-n))
	}
	return c.appendHead(dst, cborUint, uint64(n))
}

// appendHead appends a head with its number in four bytes or eight: the engines' parsers take it in more bytes than it needs.
func (cborForm) appendHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major<<5|byte(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major<<5|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major<<5|27), n)
}

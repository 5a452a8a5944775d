package elastic

import (
	"encoding/binary"
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

// head returns the type of the value and its number. indefinite says that a break ends it.
func (cborForm) head(data []byte, at int) (major byte, n uint64, next int, indefinite, ok bool) {
	if at < 0 || at >= len(data) {
		return 0, 0, 0, false, false
	}
	major, info := data[at]>>5, data[at]&0x1F
	at++
	switch {
	case info < 24:
		return major, uint64(info), at, false, true
	case info < 28:
		size := 1 << (info - 24)
		if len(data)-at < size {
			return 0, 0, 0, false, false
		}
		var room [8]byte
		copy(room[8-size:], data[at:at+size])
		return major, binary.BigEndian.Uint64(room[:]), at + size, false, true
	case info == 31 && major >= cborBytes && major <= cborMap:
		return major, 0, at, true, true
	}
	return 0, 0, 0, false, false
}

// untagged returns where the value behind its tags begins.
func (c cborForm) untagged(data []byte, at int) (int, bool) {
	for {
		major, n, next, _, ok := c.head(data, at)
		switch {
		case !ok || major == cborTag && (n == 25 || n == 256):
			return 0, false
		case major != cborTag:
			return at, true
		}
		at = next
	}
}

func (cborForm) start([]byte, int) (head []byte, ok bool) { return nil, true }

func (cborForm) ends(data []byte, at int, _ byte) (end int, ok bool) {
	return at + 1, at < len(data) && data[at] == cborBreak
}

func (c cborForm) next(data []byte, at int, key bool) (t token, end int, ok bool) {
	if at, ok = c.untagged(data, at); !ok {
		return t, 0, false
	}
	major, n, end, indefinite, _ := c.head(data, at)
	switch t = (token{kind: '0'}); {
	case major == cborText || major == cborBytes && key:
		t.kind = '"'
		t.text, end, ok = c.text(data, at)
	case major == cborBytes:
		_, end, ok = c.text(data, at)
	case key && major == cborUint:
		t.text = strconv.AppendUint(nil, n, 10)
	case key && major == cborNegative:
		t.text = strconv.AppendUint([]byte{'-'}, n+1, 10)
	case key:
		return t, 0, false
	case major == cborArray || major == cborMap:
		t.kind, t.count = map[byte]byte{cborArray: '[', cborMap: '{'}[major], int(n)
		if indefinite {
			t.count = -1
		}
		ok = n <= uint64(len(data)-end) // each takes a byte at least
	case data[at] == 0xF4:
		t.kind = 'f'
	case data[at] == 0xF5:
		t.kind = 't'
	case data[at] == 0xF6 || data[at] == 0xF7: // null, undefined
		t.kind = 'n'
	}
	return t, end, ok
}

// text returns a text, or bytes, joined from its pieces. One with a length is a single piece.
func (c cborForm) text(data []byte, at int) (text []byte, end int, ok bool) {
	major, n, next, indefinite, ok := c.head(data, at)
	if !ok || !indefinite {
		if !ok || n > uint64(len(data)-next) {
			return nil, 0, false
		}
		end = next + int(n)
		return data[next:end:end], end, true
	}
	for {
		if end, ok := c.ends(data, next, 0); ok {
			return text, end, true
		}
		piece, n, start, indefinite, ok := c.head(data, next)
		if !ok || indefinite || piece != major || n > uint64(len(data)-start) {
			return nil, 0, false
		}
		next = start + int(n)
		text = append(text, data[start:next]...)
	}
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

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

func (c cborForm) object(data []byte, at int) (first, count int, ok bool) {
	return c.container(data, at, cborMap)
}

func (c cborForm) list(data []byte, at int) (first, count int, ok bool) {
	return c.container(data, at, cborArray)
}

func (c cborForm) container(data []byte, at int, of byte) (first, count int, ok bool) {
	if at, ok = c.untagged(data, at); !ok {
		return 0, 0, false
	}
	major, n, next, indefinite, _ := c.head(data, at)
	switch {
	case major != of || n > uint64(len(data)):
		return 0, 0, false
	case indefinite:
		return next, -1, true
	}
	return next, int(n), true
}

func (cborForm) ends(data []byte, at int) (end int, ok bool) {
	return at + 1, at < len(data) && data[at] == cborBreak
}

func (c cborForm) listEnds(data []byte, at int) (end int, ok bool) { return c.ends(data, at) }

func (c cborForm) key(data []byte, at int) (name string, value int, ok bool) {
	if at, ok = c.untagged(data, at); !ok {
		return "", 0, false
	}
	switch major, n, next, _, _ := c.head(data, at); major {
	case cborBytes, cborText:
		raw, end, ok := c.text(data, at)
		if !ok {
			return "", 0, false
		}
		name, ok = nameOf(raw)
		return name, end, ok
	case cborUint:
		return strconv.FormatUint(n, 10), next, true
	case cborNegative:
		return "-" + strconv.FormatUint(n+1, 10), next, true
	}
	return "", 0, false
}

// text returns a text, or bytes, joined from its pieces.
func (c cborForm) text(data []byte, at int) (text []byte, end int, ok bool) {
	end, ok = c.pieces(data, at, func(piece []byte) {
		if text == nil {
			text = piece[:len(piece):len(piece)]
		} else {
			text = append(text, piece...)
		}
	})
	return text, end, ok
}

// pieces visits the pieces of a text, or of bytes, and returns where that ends. One with a length is a single piece.
func (c cborForm) pieces(data []byte, at int, visit func(piece []byte)) (end int, ok bool) {
	major, n, next, indefinite, ok := c.head(data, at)
	if !ok || !indefinite {
		if !ok || n > uint64(len(data)-next) {
			return 0, false
		}
		end = next + int(n)
		visit(data[next:end])
		return end, true
	}
	for {
		if end, ok := c.ends(data, next); ok {
			return end, true
		}
		piece, n, start, indefinite, ok := c.head(data, next)
		if !ok || indefinite || piece != major || n > uint64(len(data)-start) {
			return 0, false
		}
		next = start + int(n)
		visit(data[start:next])
	}
}

func (c cborForm) value(data []byte, at, depth int) (end int, ok bool) {
	if at, ok = c.untagged(data, at); !ok || depth > maxPackedDepth {
		return 0, false
	}
	major, n, next, indefinite, _ := c.head(data, at)
	switch major {
	case cborBytes, cborText:
		return c.pieces(data, at, func([]byte) {})
	case cborArray, cborMap:
		if !indefinite && n > uint64(len(data)-next) { // each takes a byte at least
			return 0, false
		}
		for i := uint64(0); indefinite || i < n; i++ {
			if end, ok := c.ends(data, next); ok {
				return end, indefinite
			}
			if major == cborMap {
				if _, next, ok = c.key(data, next); !ok {
					return 0, false
				}
			}
			if next, ok = c.value(data, next, depth+1); !ok {
				return 0, false
			}
		}
	}
	return next, true
}

func (c cborForm) scalar(dst, data []byte, at int) ([]byte, int) {
	end, _ := c.value(data, at, 0)
	at, _ = c.untagged(data, at)
	switch major, _, _, _, _ := c.head(data, at); major {
	case cborText:
		text, _, _ := c.text(data, at)
		return quote(dst, text), end
	case cborSimple:
		switch data[at] {
		case 0xF4:
			return append(dst, "false"...), end
		case 0xF5:
			return append(dst, "true"...), end
		case 0xF6, 0xF7: // null, undefined
			return append(dst, "null"...), end
		}
	}
	return append(dst, '0'), end
}

func (cborForm) appendOpen(dst []byte) []byte    { return append(dst, 0xBF) }
func (cborForm) appendClose(dst []byte) []byte   { return append(dst, cborBreak) }
func (cborForm) appendList(dst []byte) []byte    { return append(dst, 0x9F) }
func (cborForm) appendListEnd(dst []byte) []byte { return append(dst, cborBreak) }
func (cborForm) appendNull(dst []byte) []byte    { return append(dst, 0xF6) }

func (c cborForm) appendKey(dst []byte, key string) []byte { return c.appendText(dst, key) }

func (c cborForm) appendText(dst []byte, text string) []byte {
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

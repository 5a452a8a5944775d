package elastic

import (
	"bytes"
	"io"
	"slices"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// smileForm reads SMILE, and writes it without references. (Smile Data Format 1.0, https://github.com/FasterXML/smile-format-specification.)
// A name or a text that came before can be written as its number in a table, so that what a byte means depends on all bytes before it.
type smileForm struct {
	names, texts smileShared
	left         int // how many bytes more the document may have without references
}

// smileShared are the names, or texts, that can be referred to, as they stand.
type smileShared struct {
	on   bool
	list [][]byte
}

func (s *smileShared) add(raw []byte) {
	if !s.on {
		return
	}
	if len(s.list) == smileTable {
		s.list = s.list[:0]
	}
	s.list = append(s.list, raw)
}

// Bytes of SMILE, and the bits of the byte that ends its head.
const (
	smileEmpty, smileNull, smileFalse, smileTrue                         = 0x20, 0x21, 0x22, 0x23
	smileInt, smileLong, smileBig, smileFloat, smileDouble, smileDecimal = 0x24, 0x25, 0x26, 0x28, 0x29, 0x2A
	smileLongName                                                        = 0x34
	smileLongASCII, smileLongText, smileBinary                           = 0xE0, 0xE4, 0xE8
	smileArray, smileArrayEnd, smileObject, smileObjectEnd               = 0xF8, 0xF9, 0xFA, 0xFB
	smileTextEnd, smileRaw, smileEnd                                     = 0xFC, 0xFD, 0xFF

	smileSharesNames, smileSharesTexts = 0x01, 0x02

	smileHeadLength = 4
	// smileTable is how many names, and how many texts, can be referred to: then the table is emptied.
	smileTable = 1024
)

var smileHead = []byte(":)\n")

func (f *smileForm) start(data []byte, most int) (head []byte, ok bool) {
	if len(data) < smileHeadLength || !bytes.HasPrefix(data, smileHead) || data[3]>>4 != 0 {
		return nil, false
	}
	*f = smileForm{left: most}
	f.names.on, f.texts.on = data[3]&smileSharesNames != 0, data[3]&smileSharesTexts != 0
	return append(slices.Clone(smileHead), data[3]&^(smileSharesNames|smileSharesTexts)), true
}

// plainSMILE returns how long a document may be without references. They stand for up to 64 bytes each; of what clients send they seldom make
// more than ten times as much.
func plainSMILE(body []byte) int { return min(16*len(body)+piece, jsonedit.MaxDocument) }

// smileBulk enriches the parts of a bulk in SMILE, one after the other. Each is a document of its own, with its head.
type smileBulk struct{ bulk }

// unreadableSMILE is what no parser of SMILE takes. It replaces a part that can't be read, so that the engine refuses that.
var unreadableSMILE = append(slices.Clone(smileHead), 0, smileObject, 0x02, smileEnd)

// refuseSMILE copies a part that is too long.
func refuseSMILE(dst io.Writer, _ io.Reader) error {
	_, err := dst.Write(unreadableSMILE) // the rest is left out
	return err
}

// edit returns the next part as the engine gets it.
func (b *smileBulk) edit(part []byte) []byte {
	op := b.op
	b.op = ""
	body, ended := bytes.CutSuffix(part, []byte{smileEnd})
	if len(body) == 0 {
		return part
	}
	if op == "" {
		k := openPacked(&smileForm{}, body, piece)
		if k == nil || k.end < len(body) {
			return unreadableSMILE
		}
		b.start(k.json())
		if b.broken {
			return unreadableSMILE
		}
		return part
	}
	if b.index == "" || ruleOf(b.e, b.index, op == "update") == nil {
		return part
	}
	out, why := editFormat(formatSMILE, b.e, b.index, body, op == "update")
	switch {
	case why != "":
		b.e.Count(rule.Unreadable)
		return unreadableSMILE
	case ended:
		out = append(slices.Clip(out), smileEnd)
	}
	return out
}

// piece is how long an action may be.
const piece = 64 << 10

// next reads a token, or what a reference stands for.
func (f *smileForm) next(data []byte, at int, key bool) (t token, end int, ok bool) {
	if at >= len(data) {
		return t, 0, false
	}
	shared, read := &f.texts, smileValue
	if key {
		shared, read = &f.names, smileName
	}
	if i, n := smileReference(data[at:], key); n == 0 {
		if t, end, ok = read(data, at); !ok {
			return t, 0, false
		}
		if c := data[at]; key && c >= 0x80 || !key && c >= 0x40 && c < 0xC0 { // a long one has no number
			shared.add(data[at:end])
		}
		f.left -= end - at
	} else if i < len(shared.list) {
		t, _, ok = read(shared.list[i], 0)
		t.raw, end = shared.list[i], at+n
		f.left -= len(t.raw)
	}
	return t, end, ok && f.left >= 0
}

// smileReference returns the number of the name or text that data begins with a reference to, and its length; 0 if it does not.
func smileReference(data []byte, key bool) (i, n int) {
	c := data[0]
	long := len(data) > 1 && (key && c >= 0x30 && c <= 0x33 || !key && c >= 0xEC && c <= 0xEF)
	switch {
	case long:
		return int(c&3)<<8 | int(data[1]), 2
	case key && c >= 0x40 && c < 0x80:
		return int(c & 0x3F), 1
	case !key && c > 0 && c < smileEmpty:
		return int(c) - 1, 1
	}
	return 0, 0
}

// smileName reads a name that is no reference.
func smileName(data []byte, at int) (t token, end int, ok bool) {
	c, text := data[at], at+1
	switch {
	case c == smileEmpty:
		end = text
	case c == smileLongName:
		if end = bytes.IndexByte(data[text:], smileTextEnd) + text; end < text {
			return t, 0, false
		}
		return token{kind: '"', text: data[text:end]}, end + 1, true
	case c >= 0x80 && c < 0xC0:
		end = text + int(c&0x3F) + 1
	case c >= 0xC0 && c < smileArray:
		end = text + int(c&0x3F) + 2
	}
	if end == 0 || end > len(data) {
		return t, 0, false
	}
	return token{kind: '"', text: data[text:end]}, end, true
}

func (*smileForm) ends(data []byte, at int, open byte) (end int, ok bool) {
	return at + 1, at < len(data) && (data[at] == smileObjectEnd && open == '{' || data[at] == smileArrayEnd && open == '[')
}

// smileValue reads the token of a value that is no reference.
func smileValue(data []byte, at int) (t token, end int, ok bool) {
	c := data[at]
	t, end = token{kind: '0'}, at+1
	switch {
	case c >= 0x40 && c < 0xC0:
		if end += smileTextLength(c); end <= len(data) {
			t = token{kind: '"', text: data[at+1 : end]}
		}
	case c == smileEmpty:
		t.kind = '"'
	case c == smileNull:
		t.kind = 'n'
	case c == smileFalse:
		t.kind = 'f'
	case c == smileTrue:
		t.kind = 't'
	case c >= 0xC0 && c < smileLongASCII:
	case c == smileInt, c == smileLong:
		_, end, ok = smileNumber(data, end)
		return t, end, ok
	case c == smileFloat:
		end += 5
	case c == smileDouble:
		end += 10
	case c == smileBig, c == smileBinary:
		end, ok = smileSevens(data, end)
		return t, end, ok
	case c == smileDecimal:
		if _, end, ok = smileNumber(data, end); ok {
			end, ok = smileSevens(data, end)
		}
		return t, end, ok
	case c == smileRaw:
		n, end, ok := smileNumber(data, end)
		return t, end + n, ok && n <= len(data)-end
	case c == smileLongASCII, c == smileLongText:
		n := bytes.IndexByte(data[end:], smileTextEnd)
		if n < 0 {
			return t, 0, false
		}
		return token{kind: '"', text: data[end : end+n]}, end + n + 1, true
	case c == smileArray:
		t = token{kind: '[', count: -1}
	case c == smileObject:
		t = token{kind: '{', count: -1}
	default:
		return t, 0, false
	}
	return t, end, end <= len(data)
}

// smileTextLength returns the length of a short text from the byte in front of it.
func smileTextLength(c byte) int {
	return int(c&0x1F) + [...]int{0x40 >> 5: 1, 0x60 >> 5: 33, 0x80 >> 5: 2, 0xA0 >> 5: 34}[c>>5]
}

// smileNumber returns a number of variable length: seven bits in each byte, but six in the last, whose first bit is set. Of one that is no
// length the value means nothing.
func smileNumber(data []byte, at int) (n, end int, ok bool) {
	for i := range 10 {
		if at+i >= len(data) {
			break
		}
		c := data[at+i]
		if c >= 0x80 {
			n = n<<6 | int(c&0x3F)
			return n, at + i + 1, n >= 0
		}
		if n = n<<7 | int(c); n < 0 {
			break
		}
	}
	return 0, 0, false
}

// smileSevens returns the end of bytes that are written as groups of seven bits, with their number in front.
func smileSevens(data []byte, at int) (end int, ok bool) {
	n, end, ok := smileNumber(data, at)
	if !ok || n > len(data) {
		return 0, false
	}
	end += (8*n + 6) / 7
	return end, end <= len(data)
}

func (*smileForm) marks() (object, list [2]byte, null byte) {
	return [2]byte{smileObject, smileObjectEnd}, [2]byte{smileArray, smileArrayEnd}, smileNull
}

// appendText appends a text of ours, which is ASCII.
func (*smileForm) appendText(dst []byte, text string, key bool) []byte {
	mark := byte(smileLongASCII)
	if key {
		mark = smileLongName
	}
	return append(append(append(dst, mark), text...), smileTextEnd)
}

func (*smileForm) appendInt(dst []byte, n int64) []byte {
	z := uint64(n)<<1 ^ uint64(n>>63)
	var room [10]byte
	at := len(room) - 1
	room[at] = byte(z&0x3F) | 0x80
	for z >>= 6; z > 0; z >>= 7 {
		at--
		room[at] = byte(z & 0x7F)
	}
	return append(append(dst, smileLong), room[at:]...)
}

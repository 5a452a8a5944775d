package elastic

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// smileForm reads SMILE, and writes it without references. (Smile Data Format 1.0, https://github.com/FasterXML/smile-format-specification.)
// A name or a text that came before can be written as its number in a table, so that what a byte means depends on all bytes before it.
type smileForm struct {
	names, texts smileShared
	left         int // how many bytes more the document may have without references
}

// smileShared are the names, or texts, that can be referred to.
type smileShared struct {
	on   bool
	list []token
}

func (s *smileShared) add(t token) {
	if !s.on {
		return
	}
	if len(s.list) == smileTable {
		s.list = s.list[:0]
	}
	s.list = append(s.list, t)
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

func (f *smileForm) start(s *scanner, most int) (head []byte) {
	*f = smileForm{left: most}
	if head = slices.Clone(s.take(smileHeadLength)); !bytes.HasPrefix(head, smileHead) || head[3]>>4 != 0 {
		s.bad = true
		return nil
	}
	f.names.on, f.texts.on = head[3]&smileSharesNames != 0, head[3]&smileSharesTexts != 0
	head[3] &^= smileSharesNames | smileSharesTexts
	return head
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
		action, end := packedAsJSON(&smileForm{}, body, piece)
		if action == nil || end < len(body) {
			return unreadableSMILE
		}
		b.begin(action)
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

// read reads a token, or what a reference stands for.
func (f *smileForm) read(s *scanner, key bool) (t token) {
	shared, start := &f.texts, s.at
	if key {
		shared = &f.names
	}
	c := s.byte()
	if i, is := smileReference(s, c, key); is {
		if i >= len(shared.list) {
			s.bad = true
			return t
		}
		t = shared.list[i]
	} else {
		if key {
			t = token{kind: '"', text: smileName(s, c)}
		} else {
			t = smileValue(s, c)
		}
		t.raw = s.data[start:s.at]
		if key && c >= 0x80 || !key && c >= 0x40 && c < 0xC0 { // a long one has no number
			shared.add(t)
		}
	}
	f.left -= len(t.raw)
	s.bad = s.bad || f.left < 0
	return t
}

// smileReference returns the number of the name or text that a byte begins a reference to, and false if it does not.
func smileReference(s *scanner, c byte, key bool) (i int, is bool) {
	switch {
	case key && c >= 0x30 && c <= 0x33, !key && c >= 0xEC && c <= 0xEF:
		return int(c&3)<<8 | int(s.byte()), true
	case key && c >= 0x40 && c < 0x80:
		return int(c & 0x3F), true
	case !key && c > 0 && c < smileEmpty:
		return int(c) - 1, true
	}
	return 0, false
}

// smileName reads what follows the first byte of a name that is no reference.
func smileName(s *scanner, c byte) []byte {
	switch {
	case c == smileEmpty:
		return nil
	case c == smileLongName:
		return smileMarked(s)
	case c >= 0x80 && c < 0xC0:
		return s.take(int(c&0x3F) + 1)
	case c >= 0xC0 && c < smileArray:
		return s.take(int(c&0x3F) + 2)
	}
	s.bad = true
	return nil
}

// smileValue reads what follows the first byte of a value that is no reference.
func smileValue(s *scanner, c byte) token {
	t := token{kind: '0'}
	switch {
	case c >= 0x40 && c < 0xC0:
		t.kind, t.text = '"', s.take(smileTextLength(c))
	case c == smileEmpty:
		t.kind = '"'
	case c == smileNull:
		t.kind = 'n'
	case c == smileFalse:
		t.kind = 'f'
	case c == smileTrue:
		t.kind = 't'
	case c >= 0xC0 && c < smileLongASCII:
		t.text = unzigzag(int(c & 0x1F))
	case c == smileInt, c == smileLong:
		t.text = unzigzag(smileNumber(s))
	case c == smileFloat:
		t.text = floatText(float64(math.Float32frombits(uint32(smileBits(s, 5)))), 32)
	case c == smileDouble:
		t.text = floatText(math.Float64frombits(smileBits(s, 10)), 64)
	case c == smileBig, c == smileBinary:
		smileSevens(s)
	case c == smileDecimal:
		smileNumber(s)
		smileSevens(s)
	case c == smileRaw:
		s.take(smileNumber(s))
	case c == smileLongASCII, c == smileLongText:
		t.kind, t.text = '"', smileMarked(s)
	case c == smileArray:
		t.kind, t.count = '[', -1
	case c == smileObject:
		t.kind, t.count = '{', -1
	default:
		s.bad = true
	}
	return t
}

// smileMarked reads a long text, and goes over the mark at its end.
func smileMarked(s *scanner) []byte {
	text := s.take(bytes.IndexByte(s.data[s.at:], smileTextEnd))
	s.byte()
	return text
}

// smileTextLength returns the length of a short text from the byte in front of it.
func smileTextLength(c byte) int {
	return int(c&0x1F) + [...]int{0x40 >> 5: 1, 0x60 >> 5: 33, 0x80 >> 5: 2, 0xA0 >> 5: 34}[c>>5]
}

// smileNumber reads a number of variable length: seven bits in each byte, but six in the last, whose first bit is set. One that is no length
// may be too large for an int: then its value means nothing.
func smileNumber(s *scanner) (n int) {
	for range 10 {
		c := s.byte()
		if c >= 0x80 {
			return n<<6 | int(c&0x3F)
		}
		n = n<<7 | int(c)
	}
	s.bad = true
	return 0
}

// unzigzag returns a whole number, whose sign is in its lowest bit.
func unzigzag(n int) []byte { return strconv.AppendInt(nil, int64(uint(n)>>1)^-int64(n&1), 10) }

// smileBits reads a number that is written in groups of seven bits.
func smileBits(s *scanner, groups int) (bits uint64) {
	for _, c := range s.take(groups) {
		bits = bits<<7 | uint64(c&0x7F)
	}
	return bits
}

// smileSevens reads bytes that are written as groups of seven bits, with their number in front.
func smileSevens(s *scanner) {
	n := smileNumber(s)
	s.bad = s.bad || n < 0 || n > len(s.data)
	s.take((8*n + 6) / 7)
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

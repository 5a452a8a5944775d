package elastic

import (
	"bytes"
	"io"
	"slices"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// smileForm reads and writes SMILE less references: a document as [smilePlain] returns it. (Smile Data Format 1.0,
// https://github.com/FasterXML/smile-format-specification.) In a document as clients send it, a name or a text that came before can stand as
// its number in a table, so that what a byte means depends on all bytes before it.
type smileForm struct{}

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

// smilePlain returns a document without references, and where it ends in data. ok is false if it can't be read, or is longer than most bytes
// without them.
func smilePlain(data []byte, most int) (plain []byte, end int, ok bool) {
	if len(data) < smileHeadLength || !bytes.HasPrefix(data, smileHead) || data[3]>>4 != 0 {
		return nil, 0, false
	}
	w := smileWalk{data: data, at: smileHeadLength, most: most, out: make([]byte, 0, len(data)+len(data)/2)}
	w.names.on, w.texts.on = data[3]&smileSharesNames != 0, data[3]&smileSharesTexts != 0
	w.out = append(append(w.out, smileHead...), data[3]&^(smileSharesNames|smileSharesTexts))
	ok = w.value(0)
	return w.out, w.at, ok
}

// plainSMILE returns how long a document may be without references. They stand for up to 64 bytes each; of what clients send they seldom make
// more than ten times as much.
func plainSMILE(body []byte) int { return min(16*len(body)+piece, jsonedit.MaxDocument) }

// smileBulk enriches the parts of a bulk in SMILE, one after the other. Each is a document of its own, with its head.
type smileBulk struct{ bulk }

// unreadableSMILE is what no parser of SMILE takes. It stands in the place of a part that can't be read, so that the engine refuses that.
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
		plain, end, ok := smilePlain(body, piece)
		if !ok || end < len(body) {
			return unreadableSMILE
		}
		b.action(packedJSON(smileForm{}, nil, plain, smileHeadLength))
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

// smileWalk copies a document less references.
type smileWalk struct {
	data         []byte
	at, most     int
	out          []byte
	names, texts smileShared
}

// smileShared are the names, or texts, that can be referred to, as they stand.
type smileShared struct {
	on   bool
	list [][]byte
}

func (s *smileShared) add(token []byte) {
	if !s.on {
		return
	}
	if len(s.list) == smileTable {
		s.list = s.list[:0]
	}
	s.list = append(s.list, token)
}

func (s *smileShared) get(i int) (token []byte, ok bool) {
	if i < 0 || i >= len(s.list) {
		return nil, false
	}
	return s.list[i], true
}

// value copies the value that comes next.
func (w *smileWalk) value(depth int) bool {
	if w.at >= len(w.data) || depth > maxPackedDepth {
		return false
	}
	switch c := w.data[w.at]; {
	case c > 0 && c < smileEmpty:
		return w.refer(&w.texts, int(c)-1, 1)
	case c >= 0xEC && c <= 0xEF && w.at+1 < len(w.data):
		return w.refer(&w.texts, int(c&3)<<8|int(w.data[w.at+1]), 2)
	}
	t, end, ok := smileForm{}.next(w.data, w.at, false)
	if !ok {
		return false
	}
	if c := w.data[w.at]; c >= 0x40 && c < 0xC0 {
		w.texts.add(w.data[w.at:end])
	}
	ok = w.take(end)
	for t.count != 0 && ok {
		if end, ended := (smileForm{}).ends(w.data, w.at, t.kind); ended {
			return w.take(end)
		}
		ok = (t.kind == '[' || w.name()) && w.value(depth+1)
	}
	return ok
}

// take copies up to the end.
func (w *smileWalk) take(end int) bool {
	w.out = append(w.out, w.data[w.at:end]...)
	w.at = end
	return len(w.out) <= w.most
}

// refer copies what a reference of the length stands for.
func (w *smileWalk) refer(s *smileShared, i, length int) bool {
	token, ok := s.get(i)
	w.out = append(w.out, token...)
	w.at += length
	return ok && len(w.out) <= w.most
}

func (w *smileWalk) name() bool {
	if w.at >= len(w.data) {
		return false
	}
	switch c := w.data[w.at]; {
	case c >= 0x40 && c < 0x80:
		return w.refer(&w.names, int(c&0x3F), 1)
	case c >= 0x30 && c <= 0x33 && w.at+1 < len(w.data):
		return w.refer(&w.names, int(c&3)<<8|int(w.data[w.at+1]), 2)
	}
	_, end, ok := smileName(w.data, w.at)
	if !ok {
		return false
	}
	if w.data[w.at] >= 0x80 { // a long name has no number
		w.names.add(w.data[w.at:end])
	}
	return w.take(end)
}

// smileName returns the name that stands there, if it is no reference.
func smileName(data []byte, at int) (raw []byte, end int, ok bool) {
	if at >= len(data) {
		return nil, 0, false
	}
	c := data[at]
	at++
	switch {
	case c == smileEmpty:
		return nil, at, true
	case c == smileLongName:
		n := bytes.IndexByte(data[at:], smileTextEnd)
		if n < 0 {
			return nil, 0, false
		}
		return data[at : at+n], at + n + 1, true
	case c >= 0x80 && c < 0xC0:
		end = at + int(c&0x3F) + 1
	case c >= 0xC0 && c < smileArray:
		end = at + int(c&0x3F) + 2
	default:
		return nil, 0, false
	}
	if end > len(data) {
		return nil, 0, false
	}
	return data[at:end], end, true
}

func (smileForm) ends(data []byte, at int, open byte) (end int, ok bool) {
	return at + 1, at < len(data) && (data[at] == smileObjectEnd && open == '{' || data[at] == smileArrayEnd && open == '[')
}

func (smileForm) next(data []byte, at int, key bool) (t token, end int, ok bool) {
	if key {
		raw, end, ok := smileName(data, at)
		return token{kind: '"', text: raw}, end, ok
	}
	if at >= len(data) {
		return t, 0, false
	}
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

func (smileForm) marks() (object, list [2]byte, null byte) {
	return [2]byte{smileObject, smileObjectEnd}, [2]byte{smileArray, smileArrayEnd}, smileNull
}

// appendText appends a text of ours, which is ASCII.
func (smileForm) appendText(dst []byte, text string, key bool) []byte {
	mark := byte(smileLongASCII)
	if key {
		mark = smileLongName
	}
	return append(append(append(dst, mark), text...), smileTextEnd)
}

func (smileForm) appendInt(dst []byte, n int64) []byte {
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

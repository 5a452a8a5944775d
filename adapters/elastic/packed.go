package elastic

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// packed is a binary form of JSON. Its methods never panic, whatever the data.
type packed interface {
	// start goes over what is written before the value, and returns what is written there instead, which is as long. Of data that is longer
	// than most bytes without references no more is read.
	start(s *scanner, most int) (head []byte)
	// read reads the token that comes next, that of a key where key says so.
	read(s *scanner, key bool) token

	// marks returns the marks around an object, those around a list, and null.
	marks() (object, list [2]byte, null byte)
	// appendText appends a text, or a key.
	appendText(dst []byte, text string, key bool) []byte
	// appendInt appends a whole number.
	appendInt(dst []byte, n int64) []byte
}

// token is a part of a packed form. Its kind is the first byte of it in JSON: '{' and '[' begin what holds count values more, and count is negative
// where an end mark follows instead of a count; of a key or text, '"', it has the text, and of a key the name; 't', 'f' and 'n' are words; '0' is
// any other value, of which the text is that of a number, if it was read. raw are its bytes, or those that a reference stands for.
type token struct {
	kind      byte
	text, raw []byte
	name      string
	count     int
}

// scanner reads the tokens of a document in a packed form, each once. From the first that is not well-formed on, bad is set and there are no more.
type scanner struct {
	p     packed
	data  []byte
	at    int
	depth int
	bad   bool
}

// maxPackedDepth bounds how deep values may nest. The engines stop at 1,000.
const maxPackedDepth = 1 << 11

// take goes over the next n bytes and returns them.
func (s *scanner) take(n int) []byte {
	if s.bad || n < 0 || n > len(s.data)-s.at {
		s.bad = true
		return nil
	}
	s.at += n
	return s.data[s.at-n : s.at : s.at]
}

// byte reads the next byte. At the end it returns 0.
func (s *scanner) byte() byte {
	if next := s.take(1); next != nil {
		return next[0]
	}
	return 0
}

// passes goes over the next byte if it is c.
func (s *scanner) passes(c byte) bool {
	if s.bad || s.at == len(s.data) || s.data[s.at] != c {
		return false
	}
	s.at++
	return true
}

// next reads a token, that of a key where key says so.
func (s *scanner) next(key bool) token {
	start := s.at
	t := s.p.read(s, key)
	if t.raw == nil {
		t.raw = s.data[start:s.at]
	}
	if key {
		var ok bool
		t.name, ok = nameOf(t.text)
		s.bad = s.bad || !ok
	}
	if t.kind == '{' || t.kind == '[' {
		s.depth++
		s.bad = s.bad || s.depth > maxPackedDepth
	}
	return t
}

// more reports whether there is a further member or element of what a token began, and goes over the mark at its end.
func (s *scanner) more(t *token) bool {
	marks, list, _ := s.p.marks()
	if t.kind == '[' {
		marks = list
	}
	if t.count != 0 && !s.bad && !s.passes(marks[1]) {
		t.count--
		return true
	}
	s.depth--
	s.bad = s.bad || t.count > 0
	return false
}

// unreadNumber stands in JSON for a number that was not read, and for what else has no place there. It is too large for a vector.
const unreadNumber = "1e999"

// floatText returns a number as JSON; nil for one that JSON does not know.
func floatText(x float64, bits int) []byte {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return strconv.AppendFloat(nil, x, 'g', -1, bits)
}

// json appends the value that comes next as JSON: texts and numbers as they are, and [unreadNumber] for what is neither.
func (s *scanner) json(dst []byte) []byte {
	t := s.next(false)
	switch t.kind {
	case '"':
		return quote(dst, t.text)
	case 't':
		return append(dst, "true"...)
	case 'f':
		return append(dst, "false"...)
	case 'n':
		return append(dst, "null"...)
	case '{', '[':
	default:
		if t.text == nil {
			return append(dst, unreadNumber...)
		}
		return append(dst, t.text...)
	}
	dst = append(dst, t.kind)
	for first := true; s.more(&t); first = false {
		if !first {
			dst = append(dst, ',')
		}
		if t.kind == '{' {
			dst = append(quote(dst, []byte(s.next(true).name)), ':')
		}
		dst = s.json(dst)
	}
	return append(dst, t.kind+2)
}

// packedAsJSON returns the value that data begins with as JSON, and where it ends; nil if that is not well-formed, or longer than most bytes without
// references.
func packedAsJSON(p packed, data []byte, most int) (value []byte, end int) {
	s := scanner{p: p, data: data}
	p.start(&s, most)
	if value = s.json(nil); s.bad {
		return nil, 0
	}
	return value, s.at
}

// nameOf returns a name as the engines' parsers of binary forms read it: they take characters in more bytes than these need, and any byte
// behind the first of a character. It returns false for what they refuse.
func nameOf(raw []byte) (name string, ok bool) {
	if utf8.Valid(raw) {
		return string(raw), true
	}
	runes := make([]rune, 0, len(raw))
	for len(raw) > 0 {
		c, n := rune(raw[0]), 1
		switch {
		case c < 0x80:
		case c&0xE0 == 0xC0:
			c, n = c&0x1F, 2
		case c&0xF0 == 0xE0:
			c, n = c&0x0F, 3
		case c&0xF8 == 0xF0:
			c, n = c&0x07, 4
		default:
			return "", false
		}
		if n > len(raw) {
			return "", false
		}
		for _, more := range raw[1:n] {
			c = c<<6 | rune(more&0x3F)
		}
		if n == 4 && c < 0x10000 { // which they do not read as that character
			c = utf8.RuneError
		}
		runes, raw = append(runes, c), raw[n:]
	}
	return string(runes), true
}

// quote appends a text as a JSON string. Bytes that are no UTF-8 stay.
func quote(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// appendPacked appends a value that a field of ours can have: a text, a list of whole numbers, or null.
func appendPacked(p packed, dst, value []byte) []byte {
	_, list, null := p.marks()
	if text, ok := jsonedit.Text(value); ok {
		return p.appendText(dst, text, false)
	}
	elements, err := jsonedit.Elements(value)
	if err != nil {
		return append(dst, null)
	}
	dst = append(dst, list[0])
	for _, element := range elements {
		n, _ := strconv.ParseInt(string(element), 10, 64) // a band's key
		dst = p.appendInt(dst, n)
	}
	return append(dst, list[1])
}

// editPacked returns a document, or the body of an update, enriched; nil if it can't be read.
func editPacked(p packed, e *rule.Enricher, index string, body []byte, update bool) []byte {
	most := plainSMILE(body)
	shadow, _ := packedAsJSON(p, body, most)
	if len(shadow) == 0 || shadow[0] != '{' {
		return nil
	}
	in := documentsIn(e, index, shadow, update)
	return cutPacked(p, body, most, jsonedit.Cuts{Drop: in.drops}, in)
}

// maxPackedReply is how long a reply in CBOR or SMILE may be whose fields of ours are cut out: it is held whole.
const maxPackedReply = 8 << 20

// packedOf returns what reads a reply that begins so; nil if it is in neither CBOR nor SMILE.
func packedOf(head []byte) packed {
	switch {
	case bytes.HasPrefix(head, smileHead):
		return &smileForm{}
	case len(head) > 0 && head[0]>>5 == cborMap: // no text of JSON or YAML begins with such a byte
		return cborForm{}
	}
	return nil
}

// cleanPacked copies a reply in CBOR or SMILE without the members that are cut. A reply that is too long or malformed is copied unchanged.
func cleanPacked(p packed, dst io.Writer, src io.Reader, cuts jsonedit.Cuts) error {
	body, err := io.ReadAll(io.LimitReader(src, maxPackedReply+1))
	if err != nil {
		_, _ = dst.Write(body)
		return err
	}
	if len(body) <= maxPackedReply {
		body = cutPacked(p, body, 4*maxPackedReply, cuts, nil)
	}
	if _, err = dst.Write(body); err == nil {
		_, err = io.Copy(dst, src)
	}
	return err
}

// packedEditor edits a value as its tokens are read.
type packedEditor struct {
	scanner
	cuts    jsonedit.Cuts
	adds    documents
	path    []string
	places  []int // in the lists around, for cuts.DropElement
	out     []byte
	changed bool
}

// cutPacked returns data with its value edited: data itself if there is nothing to change, or it is not well-formed, or longer than most bytes
// without references.
func cutPacked(p packed, data []byte, most int, cuts jsonedit.Cuts, adds documents) []byte {
	e := packedEditor{scanner: scanner{p: p, data: data}, cuts: cuts, adds: adds}
	e.out = append(make([]byte, 0, len(data)), p.start(&e.scanner, most)...)
	if e.value(false); e.bad || !e.changed {
		return data
	}
	return append(e.out, data[e.at:]...)
}

// value appends what stays of the value that comes next, looking at each byte once. emptied says that the value is to be pruned.
func (e *packedEditor) value(element bool) (emptied bool) {
	t := e.next(false)
	kept, dropped := false, false
	switch t.kind {
	case '{':
		kept, dropped = e.object(&t)
	case '[':
		kept, dropped = e.list(&t)
	case '"':
		e.text(&t)
	default:
		e.out = append(e.out, t.raw...)
	}
	return dropped && !kept && len(e.path) > 0 && e.cuts.Prune != nil && e.cuts.Prune(e.path, element)
}

// text appends a text, edited.
func (e *packedEditor) text(t *token) {
	if e.cuts.Edit != nil {
		quoted := quote(nil, t.text)
		if edited := e.cuts.Edit(e.path, quoted); !bytes.Equal(edited, quoted) {
			text, _ := jsonedit.Text(edited)
			e.out, e.changed = e.p.appendText(e.out, text, false), true
			return
		}
	}
	e.out = append(e.out, t.raw...)
}

// object appends what stays of the object that t begins, and says whether members of it were kept, and whether any were dropped.
func (e *packedEditor) object(t *token) (kept, dropped bool) {
	marks, _, _ := e.p.marks()
	e.out = append(e.out, marks[0])
	for e.more(t) {
		before, key := len(e.out), e.next(true)
		e.out, e.path = append(e.out, key.raw...), append(e.path, key.name)
		cut := e.cuts.Drop(e.path)
		gone := e.value(false) || cut
		e.path, e.changed = e.path[:len(e.path)-1], e.changed || cut
		if kept, dropped = kept || !gone, dropped || gone; gone {
			e.out = e.out[:before]
		}
	}
	ours, _ := e.adds.at(e.path)
	for _, m := range ours {
		e.out = appendPacked(e.p, e.p.appendText(e.out, m.Key, true), m.Value)
		e.changed = true
	}
	e.out = append(e.out, marks[1])
	return kept, dropped
}

// list appends what stays of the list that t begins, and says the same of its elements. If none is dropped it keeps its head, which may have a tag.
func (e *packedEditor) list(t *token) (kept, dropped bool) {
	_, marks, _ := e.p.marks()
	head, counted := len(e.out), t.count >= 0
	e.out = append(e.out, t.raw...)
	e.places = append(e.places, -1)
	for e.more(t) {
		e.places[len(e.places)-1]++
		before := len(e.out)
		cut := e.cuts.DropElement != nil && e.cuts.DropElement(e.path, e.places)
		gone := e.value(true) || cut
		e.changed = e.changed || cut
		if kept, dropped = kept || !gone, dropped || gone; gone {
			e.out = e.out[:before]
		}
	}
	e.places = e.places[:len(e.places)-1]
	if counted && dropped { // there are fewer than its head says
		e.out, counted = slices.Replace(e.out, head, head+len(t.raw), marks[0]), false
	}
	if !counted {
		e.out = append(e.out, marks[1])
	}
	return kept, dropped
}

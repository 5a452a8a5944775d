package elastic

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// packed is a binary form of JSON. Its methods take the data and a place in it. They never panic, whatever the data.
type packed interface {
	// start begins to read data, and returns what is written before its value, which is as long as what stands there. Of data that is longer
	// than most bytes without references no more is read.
	start(data []byte, most int) (head []byte, ok bool)
	// next reads the token that stands there, that of a key where key says so, and returns where it ends. Each is read once, in order.
	next(data []byte, at int, key bool) (t token, end int, ok bool)
	// ends returns where the mark ends that stands there, if it is one that ends what open began.
	ends(data []byte, at int, open byte) (end int, ok bool)

	// marks returns the marks around an object, those around a list, and null.
	marks() (object, list [2]byte, null byte)
	// appendText appends a text, or a key.
	appendText(dst []byte, text string, key bool) []byte
	// appendInt appends a whole number.
	appendInt(dst []byte, n int64) []byte
}

// token is a part of a packed form. Its kind is the first byte of it in JSON: '{' and '[' begin what holds count values, -1 if a mark ends them;
// of a key or text, '"', it has the text; 't', 'f' and 'n' are words; '0' is any other value. raw is what a reference stands for, else nil.
type token struct {
	kind      byte
	text, raw []byte
	count     int
}

// maxPackedDepth bounds how deep values may nest. The engines stop at 1,000.
const maxPackedDepth = 1 << 11

// each calls visit with the place of each member or element of what a token began, which returns where that ends; and returns where all of it
// ends.
func (t token) each(p packed, data []byte, at int, visit func(at int) (end int, ok bool)) (end int, ok bool) {
	for n := t.count; n != 0; n-- {
		if end, ok := p.ends(data, at, t.kind); ok {
			return end, n < 0
		}
		if at, ok = visit(at); !ok {
			return 0, false
		}
	}
	return at, true
}

// packedEnd returns where a value ends that stands at the depth, and false if it is not well-formed.
func packedEnd(p packed, data []byte, at, depth int) (end int, ok bool) {
	t, end, ok := p.next(data, at, false)
	if !ok || t.kind != '{' && t.kind != '[' {
		return end, ok
	}
	if depth >= maxPackedDepth {
		return 0, false
	}
	return t.each(p, data, end, func(at int) (end int, ok bool) {
		if t.kind == '{' {
			var key token
			if key, at, ok = p.next(data, at, true); !ok {
				return 0, false
			}
			if _, ok = nameOf(key.text); !ok {
				return 0, false
			}
		}
		return packedEnd(p, data, at, depth+1)
	})
}

// appendJSON appends a well-formed value as JSON: texts as they are, and 0 for each number and what else is no text.
func appendJSON(p packed, dst, data []byte, at int) (out []byte, end int) {
	t, end, _ := p.next(data, at, false)
	switch t.kind {
	case '"':
		return quote(dst, t.text), end
	case 't':
		return append(dst, "true"...), end
	case 'f':
		return append(dst, "false"...), end
	case 'n':
		return append(dst, "null"...), end
	case '{', '[':
	default:
		return append(dst, '0'), end
	}
	dst = append(dst, t.kind)
	first := end
	end, _ = t.each(p, data, end, func(at int) (end int, ok bool) {
		if at > first {
			dst = append(dst, ',')
		}
		if t.kind == '{' {
			var key token
			key, at, _ = p.next(data, at, true)
			name, _ := nameOf(key.text)
			dst = append(quote(dst, []byte(name)), ':')
		}
		dst, end = appendJSON(p, dst, data, at)
		return end, true
	})
	return append(dst, t.kind+2), end
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
	k := openPacked(p, body, plainSMILE(body))
	if k == nil {
		return nil
	}
	shadow := k.json()
	if shadow[0] != '{' {
		return nil
	}
	return k.edited(edits(e, index, shadow, update))
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
		body = cutPacked(p, body, cuts)
	}
	if _, err = dst.Write(body); err == nil {
		_, err = io.Copy(dst, src)
	}
	return err
}

// cutPacked returns a body less what is cut.
func cutPacked(p packed, body []byte, cuts jsonedit.Cuts) []byte {
	if k := openPacked(p, body, 4*maxPackedReply); k != nil {
		return k.edited(cuts)
	}
	return body
}

// packedKnife edits a body that is a well-formed value.
type packedKnife struct {
	p       packed
	body    []byte
	most    int
	end     int // of the value
	cuts    jsonedit.Cuts
	path    []string
	changed bool
}

// openPacked returns what edits a body; nil if that is not well-formed, or longer than most bytes without references.
func openPacked(p packed, body []byte, most int) *packedKnife {
	head, ok := p.start(body, most)
	if !ok {
		return nil
	}
	end, ok := packedEnd(p, body, len(head), 0)
	if !ok {
		return nil
	}
	return &packedKnife{p: p, body: body, most: most, end: end}
}

// json returns the value as [appendJSON] has it.
func (k *packedKnife) json() []byte {
	head, _ := k.p.start(k.body, k.most)
	value, _ := appendJSON(k.p, nil, k.body, len(head))
	return value
}

// edited returns the body with its value edited: itself if there is nothing to change.
func (k *packedKnife) edited(cuts jsonedit.Cuts) []byte {
	k.cuts = cuts
	head, _ := k.p.start(k.body, k.most)
	out, _, _ := k.value(append(make([]byte, 0, len(k.body)), head...), len(head), false)
	if !k.changed {
		return k.body
	}
	return append(out, k.body[k.end:]...)
}

// copied appends a token.
func (k *packedKnife) copied(dst []byte, t token, at, end int) []byte {
	if t.raw != nil {
		return append(dst, t.raw...)
	}
	return append(dst, k.body[at:end]...)
}

// value appends what stays of a value and returns where that ends, looking at each byte once. emptied says that the value is to be pruned.
func (k *packedKnife) value(dst []byte, at int, element bool) (out []byte, end int, emptied bool) {
	t, end, _ := k.p.next(k.body, at, false)
	switch t.kind {
	case '{':
	case '[':
		dst = k.copied(dst, t, at, end)
		last := end
		end, _ = t.each(k.p, k.body, end, func(at int) (end int, ok bool) {
			dst, last, _ = k.value(dst, at, true)
			return last, true
		})
		return append(dst, k.body[last:end]...), end, false
	default:
		return k.copied(dst, t, at, end), end, false
	}
	kept, dropped := 0, 0
	marks, _, _ := k.p.marks()
	dst = append(dst, marks[0])
	end, _ = t.each(k.p, k.body, end, func(start int) (end int, ok bool) {
		before := len(dst)
		key, value, _ := k.p.next(k.body, start, true)
		name, _ := nameOf(key.text)
		k.path = append(k.path, name)
		gone := k.cuts.Drop(k.path)
		if gone {
			k.changed = true
			end, _ = packedEnd(k.p, k.body, value, 0)
		} else {
			dst, end, gone = k.value(k.copied(dst, key, start, value), value, false)
		}
		k.path = k.path[:len(k.path)-1]
		if gone {
			dst = dst[:before]
			dropped++
		} else {
			kept++
		}
		return end, true
	})
	for _, m := range added(k.cuts, k.path) {
		dst = appendPacked(k.p, k.p.appendText(dst, m.Key, true), m.Value)
		k.changed = true
	}
	return append(dst, marks[1]), end, dropped > 0 && kept == 0 && len(k.path) > 0 && k.cuts.Prune != nil && k.cuts.Prune(k.path, element)
}

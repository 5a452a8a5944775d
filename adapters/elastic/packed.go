package elastic

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// packed is a binary form of JSON in which a value's bytes mean the same wherever they stand, so that an object can be edited by
// leaving members out and appending others. Its methods take the data and a place in it. They never panic, whatever the data.
type packed interface {
	// next reads the token that stands there, that of a key where key says so, and returns where it ends.
	next(data []byte, at int, key bool) (t token, end int, ok bool)
	// ends returns where the mark ends that stands there, if it is one that ends what open began.
	ends(data []byte, at int, open byte) (end int, ok bool)

	// appendOpen and appendClose append the marks around an object's members, appendText a text, appendKey a key, appendInt a whole number,
	// appendNull null, appendList the marks around a list.
	appendOpen(dst []byte) []byte
	appendClose(dst []byte) []byte
	appendKey(dst []byte, key string) []byte
	appendText(dst []byte, text string) []byte
	appendInt(dst []byte, n int64) []byte
	appendNull(dst []byte) []byte
	appendList(dst []byte) []byte
	appendListEnd(dst []byte) []byte
}

// token is a part of a packed form. Its kind is the first byte of it in JSON: '{' and '[' begin what holds count values, -1 if a mark ends them;
// of a key or text, '"', it has the text; 't', 'f' and 'n' are words; '0' is any other value.
type token struct {
	kind  byte
	text  []byte
	count int
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
			if _, at, ok = p.next(data, at, true); !ok {
				return 0, false
			}
		}
		return packedEnd(p, data, at, depth+1)
	})
}

// packedMember is a member of an object: its key, and where it starts, its value starts and it ends.
type packedMember struct {
	name              string
	start, value, end int
}

// eachMember visits the members of the object and returns where that ends. ok is false if it is no object or not well-formed.
func eachMember(p packed, data []byte, at int, visit func(m packedMember)) (end int, ok bool) {
	object, at, ok := p.next(data, at, false)
	if !ok || object.kind != '{' {
		return 0, false
	}
	return object.each(p, data, at, func(at int) (end int, ok bool) {
		m := packedMember{start: at}
		key, value, ok := p.next(data, at, true)
		if !ok {
			return 0, false
		}
		m.value = value
		if m.name, ok = nameOf(key.text); !ok {
			return 0, false
		}
		if m.end, ok = packedEnd(p, data, value, 1); ok {
			visit(m)
		}
		return m.end, ok
	})
}

// packedJSON appends a well-formed value as JSON: texts as they are, and 0 for each number and what else is no text.
func packedJSON(p packed, dst, data []byte, at int) []byte {
	dst, _ = appendJSON(p, dst, data, at)
	return dst
}

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

// packedFields returns what a document gets of our fields. own says that it has some of the client's.
func packedFields(p packed, e *rule.Enricher, index string, data []byte, at int, partial, scripted bool) (fields []byte, own bool, end int, ok bool) {
	r := ruleOf(e, index, partial)
	shadow := []byte{'{'}
	end, ok = eachMember(p, data, at, func(m packedMember) {
		if own = own || rule.Our(m.name); r == nil || !r.Concerns(m.name) {
			return
		}
		if len(shadow) > 1 {
			shadow = append(shadow, ',')
		}
		shadow = append(quote(shadow, []byte(m.name)), ':')
		shadow = packedJSON(p, shadow, data, m.value)
	})
	if !ok || r == nil {
		return nil, false, end, ok
	}
	for _, m := range oursFor(e, index, append(shadow, '}'), partial, scripted) {
		fields = appendPacked(p, p.appendKey(fields, m.Key), m.Value)
	}
	return fields, own, end, true
}

// packedDocument appends the object with its document enriched. changed says that it is another,
// ok that it could be read.
func packedDocument(p packed, e *rule.Enricher, index string, dst, data []byte, at int, partial, scripted bool) (out []byte, changed, ok bool) {
	fields, own, end, ok := packedFields(p, e, index, data, at, partial, scripted)
	switch {
	case !ok:
		return dst, false, false
	case !own && len(fields) == 0:
		return append(dst, data[at:end]...), false, true
	}
	return withFields(p, dst, data, at, fields), true, true
}

// withFields appends the object with our fields in place of the client's.
func withFields(p packed, dst, data []byte, at int, fields []byte) []byte {
	dst = p.appendOpen(dst)
	eachMember(p, data, at, func(m packedMember) {
		if !rule.Our(m.name) {
			dst = append(dst, data[m.start:m.end]...)
		}
	})
	return p.appendClose(append(dst, fields...))
}

// appendPacked appends a value that a field of ours can have: a text, a list of whole numbers, or null.
func appendPacked(p packed, dst, value []byte) []byte {
	if text, ok := jsonedit.Text(value); ok {
		return p.appendText(dst, text)
	}
	list, err := jsonedit.Elements(value)
	if err != nil {
		return p.appendNull(dst)
	}
	dst = p.appendList(dst)
	for _, element := range list {
		n, _ := strconv.ParseInt(string(element), 10, 64) // a band's key
		dst = p.appendInt(dst, n)
	}
	return p.appendListEnd(dst)
}

// packedUpdate is packedDocument for the body of an update.
func packedUpdate(p packed, e *rule.Enricher, index string, dst, data []byte, at int) (out []byte, changed, ok bool) {
	scripted, whole := false, true
	eachMember(p, data, at, func(m packedMember) {
		scripted = scripted || m.name == "scripted_upsert" && yes(packedJSON(p, nil, data, m.value))
	})
	out = p.appendOpen(dst)
	end, ok := eachMember(p, data, at, func(m packedMember) {
		if value, _, _ := p.next(data, m.value, false); value.kind != '{' || m.name != "doc" && m.name != "upsert" {
			out = append(out, data[m.start:m.end]...)
			return
		}
		out = append(out, data[m.start:m.value]...)
		var edited, read bool
		out, edited, read = packedDocument(p, e, index, out, data, m.value, m.name == "doc", m.name == "upsert" && scripted)
		changed, whole = changed || edited, whole && read
	})
	switch {
	case !ok || !whole:
		return dst, false, false
	case !changed:
		return append(dst, data[at:end]...), false, true
	}
	return p.appendClose(out), true, true
}

// maxPackedReply is how long a reply in CBOR or SMILE may be whose fields of ours are cut out: it is held whole.
const maxPackedReply = 8 << 20

// packedOf returns what reads a reply that begins so; nil if it is in neither CBOR nor SMILE.
func packedOf(head []byte) packed {
	switch {
	case bytes.HasPrefix(head, smileHead):
		return smileForm{}
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
	plain, head, ended := body, 0, len(body)
	if _, ok := p.(smileForm); ok {
		var whole bool
		if plain, ended, whole = smilePlain(body, 4*maxPackedReply); !whole {
			return body
		}
		head = smileHeadLength
	}
	end, ok := packedEnd(p, plain, head, 0)
	if !ok {
		return body
	}
	if head == 0 {
		ended = end
	}
	k := packedKnife{p: p, data: plain, cuts: cuts}
	out, _, _ := k.value(append(make([]byte, 0, len(plain)), plain[:head]...), head, false)
	if !k.cut {
		return body
	}
	return append(out, body[ended:]...)
}

// packedKnife cuts members out of a well-formed value.
type packedKnife struct {
	p    packed
	data []byte
	cuts jsonedit.Cuts
	path []string
	cut  bool
}

// value appends what stays of a value and returns where that ends, looking at each byte once. emptied says that the value is to be pruned.
func (k *packedKnife) value(dst []byte, at int, element bool) (out []byte, end int, emptied bool) {
	t, end, _ := k.p.next(k.data, at, false)
	switch t.kind {
	case '{':
	case '[':
		dst = append(dst, k.data[at:end]...)
		last := end
		end, _ = t.each(k.p, k.data, end, func(at int) (end int, ok bool) {
			dst, last, _ = k.value(dst, at, true)
			return last, true
		})
		return append(dst, k.data[last:end]...), end, false
	default:
		return append(dst, k.data[at:end]...), end, false
	}
	kept, dropped := 0, 0
	dst = k.p.appendOpen(dst)
	end, _ = t.each(k.p, k.data, end, func(start int) (end int, ok bool) {
		before := len(dst)
		key, value, _ := k.p.next(k.data, start, true)
		name, _ := nameOf(key.text)
		k.path = append(k.path, name)
		gone := k.cuts.Drop(k.path)
		if gone {
			k.cut = true
			end, _ = packedEnd(k.p, k.data, value, 0)
		} else {
			dst, end, gone = k.value(append(dst, k.data[start:value]...), value, false)
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
	return k.p.appendClose(dst), end, dropped > 0 && kept == 0 && len(k.path) > 0 && k.cuts.Prune != nil && k.cuts.Prune(k.path, element)
}

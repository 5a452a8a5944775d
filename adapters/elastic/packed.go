package elastic

import (
	"strconv"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// packed is a binary form of JSON in which a value's bytes mean the same wherever they stand, so that an object can be edited by
// leaving members out and appending others. Its methods take the data and where a value in it begins. They never panic, whatever the data.
type packed interface {
	// object returns where the members of an object begin, and false for any other value. count is how many members there are, or -1 if a mark ends
	// them.
	object(data []byte, at int) (first, count int, ok bool)
	// ends returns where the object ends if its mark stands there.
	ends(data []byte, at int) (end int, ok bool)
	// list and listEnds are object and ends of a list.
	list(data []byte, at int) (first, count int, ok bool)
	listEnds(data []byte, at int) (end int, ok bool)
	// key returns a key and where its value begins.
	key(data []byte, at int) (name string, value int, ok bool)
	// value returns where the value ends.
	value(data []byte, at, depth int) (end int, ok bool)
	// scalar appends a well-formed value that is no object and no list, as packedJSON does, and returns where it ends.
	scalar(dst, data []byte, at int) (out []byte, end int)

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

// maxPackedDepth bounds how deep values may nest. The engines stop at 1,000.
const maxPackedDepth = 1 << 11

// packedMember is a member of an object: its key, and where it starts, its value starts and it ends.
type packedMember struct {
	name              string
	start, value, end int
}

// eachMember visits the members of the object and returns where that ends. ok is false if it is no object or not well-formed.
func eachMember(p packed, data []byte, at int, visit func(m packedMember)) (end int, ok bool) {
	at, count, ok := p.object(data, at)
	if !ok {
		return 0, false
	}
	for ; count != 0; count-- {
		if end, ok := p.ends(data, at); ok {
			return end, count < 0
		}
		m := packedMember{start: at}
		name, value, ok := p.key(data, at)
		if !ok {
			return 0, false
		}
		if m.end, ok = p.value(data, value, 1); !ok {
			return 0, false
		}
		m.name, m.value = name, value
		visit(m)
		at = m.end
	}
	return at, true
}

// packedJSON appends a well-formed value as JSON: texts as they are, and 0 for each number and what else is no text.
func packedJSON(p packed, dst, data []byte, at int) []byte {
	dst, _ = appendJSON(p, dst, data, at)
	return dst
}

func appendJSON(p packed, dst, data []byte, at int) (out []byte, end int) {
	open, ends := byte('{'), p.ends
	end, count, ok := p.object(data, at)
	if !ok {
		open, ends = '[', p.listEnds
		if end, count, ok = p.list(data, at); !ok {
			return p.scalar(dst, data, at)
		}
	}
	dst = append(dst, open)
	for first := end; count != 0; count-- {
		if after, ok := ends(data, end); ok {
			end = after
			break
		}
		if end > first {
			dst = append(dst, ',')
		}
		if open == '{' {
			var name string
			name, end, _ = p.key(data, end)
			dst = append(quote(dst, []byte(name)), ':')
		}
		dst, end = appendJSON(p, dst, data, end)
	}
	return append(dst, open+2), end
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
func packedFields(p packed, e *adapters.Enricher, index string, data []byte, at int, partial, scripted bool) (fields []byte, own bool, end int, ok bool) {
	rule := ruleOf(e, index, partial)
	shadow := []byte{'{'}
	end, ok = eachMember(p, data, at, func(m packedMember) {
		if own = own || adapters.Our(m.name); rule == nil || !rule.Concerns(m.name) {
			return
		}
		if len(shadow) > 1 {
			shadow = append(shadow, ',')
		}
		shadow = append(quote(shadow, []byte(m.name)), ':')
		shadow = packedJSON(p, shadow, data, m.value)
	})
	if !ok || rule == nil {
		return nil, false, end, ok
	}
	for _, m := range oursFor(e, index, append(shadow, '}'), partial, scripted) {
		fields = appendPacked(p, p.appendKey(fields, m.Key), m.Value)
	}
	return fields, own, end, true
}

// packedDocument appends the object with its document enriched. changed says that it is another,
// ok that it could be read.
func packedDocument(p packed, e *adapters.Enricher, index string, dst, data []byte, at int, partial, scripted bool) (out []byte, changed, ok bool) {
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
		if !adapters.Our(m.name) {
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
func packedUpdate(p packed, e *adapters.Enricher, index string, dst, data []byte, at int) (out []byte, changed, ok bool) {
	scripted, whole := false, true
	eachMember(p, data, at, func(m packedMember) {
		scripted = scripted || m.name == "scripted_upsert" && yes(packedJSON(p, nil, data, m.value))
	})
	out = p.appendOpen(dst)
	end, ok := eachMember(p, data, at, func(m packedMember) {
		if _, _, object := p.object(data, m.value); !object || m.name != "doc" && m.name != "upsert" {
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

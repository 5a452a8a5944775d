package elastic

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
)

// errUnsure: what the engine would leave of a reply can't be told.
var errUnsure = adapters.Alone{Reason: "filter_path", Searched: true}

// filter returns what the engine answers with the filter to the request that it answered with body without it; body is one JSON
// object, pretty-printed or not, and all of it where f is nil. It returns errUnsure where that can't be told: the body is no such object,
// or a document holds a number that engines write in more than one way; and ErrLate where late, if not nil, reports that the time is over
// before a large body is done with. An error of the engine (a status of 400 and above, but for a document that is not there) is never
// filtered: that is for the caller to know.
func (f *pathFilter) filter(body []byte, late func() bool) ([]byte, error) {
	if f == nil {
		return body, nil
	}
	if _, err := adapters.Members(body); err != nil || body[0] > unicode.MaxASCII { // a byte order mark, which engines don't send
		return nil, errUnsure
	}
	pass := filtering{
		data: body, out: make([]byte, 0, len(body)/4), pretty: bytes.HasSuffix(body, []byte("}\n")),
		late: late, ahead: lookAfter,
	}
	if f.keep != nil {
		pass.run(f.keep, false, false)
	}
	if (f.drop != nil || f.keep == nil) && !pass.over {
		pass.run(f.drop, true, f.keepsEmpty)
	}
	switch {
	case pass.over:
		return nil, adapters.ErrLate
	case pass.unsure:
		return nil, errUnsure
	}
	return pass.data, nil
}

// filtering is one going over a body. What the engine filters it writes anew, so a document's source, which otherwise goes out as
// it was sent, comes out as the engine writes JSON.
type filtering struct {
	data   []byte // well-formed JSON
	at     int
	out    []byte
	pretty bool // which is how a source comes out too
	unsure bool // something can't be written for certain as the engine does

	late  func() bool
	ahead int // bytes of keys until the next look at the time
	over  bool

	paths      *paths
	drops      bool // what paths lead to is taken out, not kept
	keepsEmpty bool
}

// run filters data by the paths; the result is the data of a further run.
func (f *filtering) run(p *paths, drops, keepsEmpty bool) {
	if p == nil {
		p = new(paths)
	}
	f.at, f.paths, f.drops, f.keepsEmpty = 0, p, drops, keepsEmpty
	f.space()
	if f.value(place{next: p.first, root: true}); len(f.out) == 0 {
		f.out = append(f.out, "{}"...)
	}
	if f.pretty {
		f.out = append(f.out, '\n')
	}
	f.data, f.out = f.out, make([]byte, 0, len(f.out))
}

// place is where a value stands.
type place struct {
	next   places // in the paths that lead to a part of the value; none where the value is kept as it is
	depth  int
	source bool // in a source
	root   bool
}

func (p place) whole() bool { return p.next == places{} && !p.root }

// value goes over one value and writes what is kept of it. It returns false if nothing was written.
func (f *filtering) value(p place) bool {
	switch c := f.data[f.at]; c {
	case '{', '[':
		return f.container(p, c)
	case '"':
		s := f.str()
		if p.whole() || f.drops {
			f.out = append(f.out, s...)
			return true
		}
	default:
		token := f.token()
		if p.whole() || f.drops {
			f.scalar(token, p.source)
			return true
		}
	}
	return false
}

// container writes an object or array, unless paths lead into it and nothing is kept of it.
func (f *filtering) container(p place, open byte) bool {
	f.at++
	f.out = append(f.out, open)
	before, count, kept := len(f.out), 0, 0
	for f.space(); !f.over && f.data[f.at] != open+2; f.space() {
		if f.data[f.at] == ',' {
			f.at++
			continue
		}
		count++
		mark := len(f.out)
		if kept > 0 {
			f.out = append(f.out, ',')
		}
		f.line(p.depth + 1)
		if f.member(p, open) {
			kept++
		} else {
			f.out = f.out[:mark]
		}
	}
	if f.over {
		return false
	}
	f.at++
	if kept == 0 && !p.whole() && !p.root && !(f.keepsEmpty && count == 0) {
		f.out = f.out[:before-1]
		return false
	}
	switch {
	case kept > 0:
		f.line(p.depth)
	case f.pretty:
		f.out = append(f.out, ' ')
	}
	f.out = append(f.out, open+2)
	return true
}

// member goes over what stands in a container: an element, or a key and its value. It returns false if nothing is kept of it.
func (f *filtering) member(p place, open byte) bool {
	inner := place{next: p.next, depth: p.depth + 1, source: p.source}
	if open == '[' {
		return f.value(inner)
	}
	raw := f.str()
	f.look(len(raw))
	key, _ := adapters.Text(raw)
	f.out = append(f.out, raw...)
	if f.out = append(f.out, ':'); f.pretty {
		f.out = append(f.out[:len(f.out)-1], " : "...)
	}
	f.space()
	f.at++
	f.space()
	inner.source = inner.source || key == "_source" && !f.pretty
	if p.whole() {
		return f.value(inner)
	}
	next, ends := f.paths.step(p.next, key)
	inner.next = next
	if ends == f.drops && (ends || next == places{}) { // it is taken out, or no path leads to it
		f.skip()
		return false
	}
	return f.value(inner)
}

// lookAfter is behind how many bytes of keys filtering looks at the time. A key counts for 16 more: each is compared with up to 256 steps.
// These are some 4,000 members, so that a page of ten hits is done without, late as it may be.
const lookAfter = 64 << 10

// look looks at the time, if it is due behind a key.
func (f *filtering) look(key int) {
	if f.ahead -= 16 + key; f.ahead < 0 {
		f.ahead = lookAfter
		f.over = f.late != nil && f.late()
	}
}

// skip goes over a value and writes nothing of it.
func (f *filtering) skip() {
	mark, unsure := len(f.out), f.unsure
	f.value(place{})
	f.out, f.unsure = f.out[:mark], unsure
}

// line begins a line of a pretty-printed reply.
func (f *filtering) line(depth int) {
	if !f.pretty {
		return
	}
	f.out = append(f.out, '\n')
	for range depth {
		f.out = append(f.out, "  "...)
	}
}

// space goes over white space, and over comments, which a source may hold.
func (f *filtering) space() {
	for f.at < len(f.data) {
		switch f.data[f.at] {
		case ' ', '\t', '\n', '\r':
			f.at++
		case '/':
			end := "*/"
			if f.data[f.at+1] == '/' {
				end = "\n"
			}
			f.at += 2
			f.at += bytes.Index(f.data[f.at:], []byte(end)) + len(end)
		default:
			return
		}
	}
}

// str returns the string that comes next as the engine writes it.
func (f *filtering) str() []byte {
	start := f.at
	for f.at++; f.data[f.at] != '"'; f.at++ {
		if f.data[f.at] == '\\' {
			f.at++
		}
	}
	f.at++
	s := f.data[start:f.at]
	if bytes.IndexByte(s, '\\') < 0 && bytes.IndexFunc(s, func(r rune) bool { return r > 0xffff }) < 0 {
		return s
	}
	text, _ := adapters.Text(s)
	f.unsure = f.unsure || strings.ContainsRune(text, utf8.RuneError) // which may stand for half a surrogate
	return appendJava(nil, text)
}

// token returns the number or word that comes next.
func (f *filtering) token() []byte {
	start := f.at
	for f.at < len(f.data) && bytes.IndexByte([]byte(" \t\r\n,]}/"), f.data[f.at]) < 0 {
		f.at++
	}
	return f.data[start:f.at]
}

// scalar writes a number or word.
func (f *filtering) scalar(token []byte, source bool) {
	if !source || token[0] > '9' {
		f.out = append(f.out, token...)
		return
	}
	number, ok := appendNumber(f.out, token)
	f.out, f.unsure = number, f.unsure || !ok
}

// appendJava appends a string as JSON as the engine writes it: what lies beyond the Basic Multilingual Plane in two escapes,
// other characters as they are.
func appendJava(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	escape := func(r rune) {
		dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
	}
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20 && bytes.IndexByte([]byte("\b\f\n\r\t"), byte(r)) >= 0:
			dst = append(dst, '\\', "btn_fr"[r-'\b'])
		case r < 0x20:
			escape(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escape(high)
			escape(low)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// Between these sizes every release of Java writes a double with the fewest digits that tell it from others. Below and above,
// Java 18 and older use more for some.
const smallest, largest = 1e-30, 1e16

// appendNumber appends a number as the engine writes it: a whole one as it is, another as Java writes the double next to it. It
// returns false where releases of Java differ.
func appendNumber(dst, token []byte) ([]byte, bool) {
	if !bytes.ContainsAny(token, ".eE") {
		if string(token) == "-0" {
			token = token[1:]
		}
		return append(dst, token...), true
	}
	value, err := strconv.ParseFloat(string(token), 64)
	size := math.Abs(value)
	switch {
	case err != nil || size != 0 && size < smallest || size >= largest:
		return append(dst, token...), false
	case size == 0 || size >= 1e-3 && size < 1e7:
		start := len(dst)
		if dst = strconv.AppendFloat(dst, value, 'f', -1, 64); bytes.IndexByte(dst[start:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst, true
	}
	digits, exponent, _ := bytes.Cut(strconv.AppendFloat(nil, value, 'e', -1, 64), []byte("e"))
	dst = append(dst, digits...)
	if bytes.IndexByte(digits, '.') < 0 {
		dst = append(dst, ".0"...)
	}
	power, _ := strconv.Atoi(string(exponent)) // two digits with a sign
	return strconv.AppendInt(append(dst, 'E'), int64(power), 10), true
}

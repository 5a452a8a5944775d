// Package jsonedit reads and edits JSON as bytes: whatever is not changed stays as it came, white space and comments too.
//
// There are three things to know:
//
//   - A [Reader] goes over one document, once, and shows where each member and value is. [Members], [Elements] and [Get] take an object
//     or array apart in one call. Values are the document's bytes; [Text] decodes a string, [AppendString] writes one.
//   - [Edits] are parts of a document with what takes their place. [Set], [Cut] and [AppendMembers] are the usual ones.
//   - [Cuts] say what [Clean] leaves out while it copies documents of any length; [Cleaned] does the same in memory.
//
// [EditLines] and [EditWhole] bring a body that streams to functions which want a line or a document whole. They hold no more of it than there
// is room for ([Holder]).
package jsonedit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// ErrMalformed: the bytes are not JSON of the form asked for.
var ErrMalformed = errors.New("malformed JSON")

// maxDepth bounds how deep values may nest, and so the stack. Elasticsearch's own parser stops at 1,000; Typesense 0.24.1 stores
// documents 74,000 deep and dies of those 75,000 deep. What it stores has to be read: else it could bring a sketch that is not ours, and stop jobs.
const maxDepth = 80_000

// Reader reads a JSON document by the grammar of RFC 8259, in one pass. Between its tokens it reads comments too, as engines do.
// The zero Reader is of no use; it is for one goroutine.
//
//	r := NewReader(reply)
//	for r.Enter('{'); r.Next(); {
//		switch string(r.Key()) {
//		case "hits":
//			for r.Enter('['); r.Next(); {
//				hits = append(hits, r.Value())
//			}
//		}
//	}
//	if !r.Done() {
//		return ErrMalformed
//	}
type Reader struct {
	data    []byte
	at      int
	deepest int
	grammar grammar
	frame

	open  [128]byte // the brackets of what was entered, the outermost first
	deep  []byte    // those beyond
	depth int
	current
	begun bool // the first member or element of what was entered last is read
	due   bool // the value of the current one is not
	bad   bool

	prefix string // keys that may begin so are counted
	named  int
}

// grammar is what a reader takes.
type grammar uint8

const (
	commented grammar = iota // JSON and, between its tokens, comments
	strict                   // JSON alone
	lenient                  // a string ends at its quote and any other word at what can follow it, whatever is in them
)

// frame is the part of a document that data has while it streams in: from byte base on. fill discards what was passed, but nothing from keep on;
// −1 is no limit. Enter and Skip end the limit, and Next sets it before the member's key.
type frame struct {
	stream     *editor
	base, keep int
}

// current is where the key of the current member begins and ends, and where the comma in front of it ends.
type current struct{ comma, key, colon int }

// NewReader returns a Reader before the value in data.
func NewReader(data []byte) Reader { return newReader(data, commented) }

// NewStrictReader returns a Reader for which comments are malformed.
func NewStrictReader(data []byte) Reader { return newReader(data, strict) }

func newReader(data []byte, grammar grammar) Reader {
	r := Reader{data: data, deepest: maxDepth, grammar: grammar, frame: frame{keep: -1}}
	if bytes.HasPrefix(data, byteOrderMark) {
		r.at = len(byteOrderMark)
	}
	r.space()
	return r
}

// byteOrderMark may precede a document, though RFC 8259 tells writers not to.
var byteOrderMark = []byte("\uFEFF")

// Enter goes into the value that comes next if it is an object and open is '{', or an array and open is '['. It returns false, and stays
// before the value, if it is neither.
func (r *Reader) Enter(open byte) bool {
	if r.bad || r.depth > r.deepest || !r.take(open) {
		return false
	}
	if r.depth < len(r.open) {
		r.open[r.depth] = open
	} else {
		r.deep = append(r.deep[:r.depth-len(r.open)], open)
	}
	r.depth++
	r.begun, r.due, r.keep = false, false, -1
	return true
}

// Next goes to the next member or element of what was entered last, over the value of the current one if that was not read. At the end it
// leaves it and returns false. It also returns false if nothing is entered, and from the first byte on that is not well-formed.
func (r *Reader) Next() bool {
	if r.bad || r.depth == 0 || r.due && !r.Skip() {
		return false
	}
	open := r.opened()
	r.space()
	if r.take(open + 2) { // both brackets close two behind where they open
		r.depth--
		r.begun = true
		return false
	}
	if r.begun && !r.take(',') {
		return r.fail()
	}
	r.keep, r.comma = r.at, r.base+r.at
	r.space()
	r.begun, r.due = true, true
	r.key = r.base + r.at
	r.colon = r.key
	if open == '[' {
		return true
	}
	var ok bool
	if r.colon, ok = r.name(); !ok {
		return r.fail()
	}
	return true
}

// name goes over a key and the colon after it, and returns where the key ends.
func (r *Reader) name() (end int, ok bool) {
	start := r.base + r.at
	if !r.str() {
		return 0, false
	}
	end = r.base + r.at
	if r.prefix != "" && begins(r.data[start-r.base:end-r.base], r.prefix) {
		r.named++
	}
	if r.space(); !r.take(':') {
		return 0, false
	}
	r.space()
	return end, true
}

func (r *Reader) opened() byte {
	if r.depth <= len(r.open) {
		return r.open[r.depth-1]
	}
	return r.deep[r.depth-len(r.open)-1]
}

// quoted returns the key of the current member with its quotes.
func (r *Reader) quoted() []byte { return r.data[r.key-r.base : r.colon-r.base] }

// Key returns the key of the current member, decoded. It shares the document's memory where that is possible.
func (r *Reader) Key() []byte {
	key, _ := TextBytes(r.quoted())
	return key
}

// Value reads the value that comes next and returns its bytes; nil if it is not well-formed.
func (r *Reader) Value() []byte {
	start := r.at
	if !r.Skip() {
		return nil
	}
	return r.data[start:r.at]
}

// Skip goes over the value that comes next. It returns false if that is not well-formed.
func (r *Reader) Skip() bool {
	r.due, r.keep = false, -1
	if r.bad || !r.value(r.depth) {
		return r.fail()
	}
	return true
}

// CountNames has the keys counted from there on that may begin with the prefix, however deep they are.
func (r *Reader) CountNames(prefix string) { r.prefix = prefix }

// Names returns how many there were.
func (r *Reader) Names() int { return r.named }

// begins reports whether a key may begin with the prefix once it is decoded.
func begins(quoted []byte, prefix string) bool {
	return len(quoted) > len(prefix) && string(quoted[1:1+len(prefix)]) == prefix || !simple(quoted)
}

// At returns where in the document the reader is.
func (r *Reader) At() int { return r.at }

// Span returns where in the document the current member begins, and where the value that was read last ends.
func (r *Reader) Span() (from, to int) { return r.key, r.at }

// Done reports whether one well-formed document was read whole, and nothing but white space and comments follows it.
func (r *Reader) Done() bool {
	r.space()
	return !r.bad && r.depth == 0 && r.at == len(r.data)
}

func (r *Reader) fail() bool {
	r.bad, r.due = true, false
	return false
}

// fill gets more of a document that streams in, and reports false where there is no more.
func (r *Reader) fill() bool { return r.stream != nil && r.stream.fill() }

// has reports whether n more bytes are in data, and fills it if not.
func (r *Reader) has(n int) bool {
	for len(r.data)-r.at < n {
		if !r.fill() {
			return false
		}
	}
	return true
}

// space goes over white space and comments. After it data has at least one more byte, if there is one.
func (r *Reader) space() {
	if r.at < len(r.data) && r.data[r.at] > ' ' && r.data[r.at] != '/' && r.data[r.at] < 0x80 { // as most tokens
		return
	}
	r.spaces()
}

func (r *Reader) spaces() {
	for r.has(1) {
		switch c := r.data[r.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			r.at++
		case c == '/' && r.grammar != strict && r.comment():
		case c >= 0x80 && r.grammar == lenient && r.has(len(byteOrderMark)) && bytes.HasPrefix(r.data[r.at:], byteOrderMark):
			r.at += len(byteOrderMark) // in front of a document that was stored with it
		default:
			return
		}
	}
}

// comment goes over a comment.
func (r *Reader) comment() bool {
	if !r.has(2) {
		return false
	}
	start, end := r.at, "*/"
	switch r.data[r.at+1] {
	case '*':
	case '/':
		end = "\n"
	default:
		return false
	}
	for r.at += 2; ; {
		if i := bytes.Index(r.data[r.at:], []byte(end)); i >= 0 {
			r.at += i + len(end)
			return true
		}
		r.at = max(r.at, len(r.data)-len(end)+1)
		if !r.fill() {
			if r.stream == nil {
				r.at = start
			}
			return false
		}
	}
}

func (r *Reader) take(c byte) bool {
	if r.at < len(r.data) && r.data[r.at] == c {
		r.at++
		return true
	}
	return false
}

// value goes over one value whose container is at the depth. Like those below it returns false if that is not well-formed.
func (r *Reader) value(depth int) bool {
	if r.at >= len(r.data) || depth > r.deepest {
		return false
	}
	switch c := r.data[r.at]; {
	case c == '"':
		return r.str()
	case c == '{' || c == '[':
		return r.container(c+2, depth)
	}
	start := r.at
	return r.word() && (r.grammar == lenient || scalar(r.data[start:r.at]))
}

// container goes over an object or array at the depth.
func (r *Reader) container(end byte, depth int) bool {
	r.at++
	if r.space(); r.take(end) {
		return true
	}
	for {
		if end == '}' {
			if _, ok := r.name(); !ok {
				return false
			}
		}
		if !r.value(depth + 1) {
			return false
		}
		if r.space(); r.take(end) {
			return true
		}
		if !r.take(',') {
			return false
		}
		r.space()
	}
}

// word goes over what is no string, object or array.
func (r *Reader) word() bool {
	for n := 0; r.at < len(r.data) || r.has(1); n++ {
		switch r.data[r.at] {
		case ' ', '\t', '\r', '\n', ',', ':', ']', '}', '[', '{', '"', '/':
			return n > 0
		}
		r.at++
	}
	return true
}

// str goes over a string.
func (r *Reader) str() bool {
	if !r.take('"') {
		return false
	}
	if r.grammar == lenient {
		return r.skip()
	}
	for {
		r.at += plain(r.data[r.at:])
		if r.take('"') {
			return true
		}
		n := escape(r.data[r.at:])
		if n == 0 { // it ends here, or there is a control character
			return false
		}
		r.at += n
	}
}

// skip goes to the end of a string: to the first quote with an even number of backslashes in front.
func (r *Reader) skip() bool {
	for {
		rest := r.data[r.at:]
		n, more := bytes.IndexByte(rest, '"'), false
		if n < 0 {
			n, more = len(rest), true
		}
		escapes := 0
		for escapes < n && rest[n-1-escapes] == '\\' {
			escapes++
		}
		switch {
		case more:
			if r.at += n - escapes%2; !r.fill() {
				return false
			}
		case escapes%2 == 0:
			r.at += n + 1
			return true
		default:
			r.at += n + 1
		}
	}
}

// plain returns how many bytes at the beginning of data are none of a quote, a backslash and a control character, looking at eight at a
// time. Most of a reply is inside strings, and this makes going over one several times as fast.
func plain(data []byte) int {
	n := 0
	for ; len(data)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(data[n:])
		// The high bit of a byte is set where it is below 0x20, or 0 after an exclusive or, and was not set before; and of some after such
		// a byte.
		const each, high = 0x0101010101010101, 0x8080808080808080
		if found := ((x - each*0x20) | (x ^ each*'"' - each) | (x ^ each*'\\' - each)) &^ x & high; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for ; n < len(data); n++ {
		if c := data[n]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return n
}

// escape returns how long the escape is that a text begins with; 0 if it begins with none.
func escape(text []byte) int {
	switch {
	case len(text) < 2 || text[0] != '\\':
		return 0
	case standsFor[text[1]] != 0:
		return 2
	case text[1] == 'u' && len(text) >= 6 && len(bytes.Trim(text[2:6], "0123456789abcdefABCDEF")) == 0:
		return 6
	}
	return 0
}

// scalar reports whether a word is a number, true, false or null.
func scalar(word []byte) bool {
	switch string(word) {
	case "true", "false", "null":
		return true
	}
	whole := bytes.TrimPrefix(word, []byte{'-'})
	rest := digits(whole)
	good := len(rest) < len(whole) && (whole[0] != '0' || len(whole)-len(rest) == 1)
	if fraction, ok := bytes.CutPrefix(rest, []byte{'.'}); ok {
		rest = digits(fraction)
		good = good && len(rest) < len(fraction)
	}
	if len(rest) > 0 && rest[0]|0x20 == 'e' {
		power := rest[1:]
		if len(power) > 0 && (power[0] == '+' || power[0] == '-') {
			power = power[1:]
		}
		rest = digits(power)
		good = good && len(rest) < len(power)
	}
	return good && len(rest) == 0
}

// digits returns what follows the digits that a text begins with.
func digits(text []byte) []byte {
	n := 0
	for n < len(text) && text[n]-'0' <= 9 {
		n++
	}
	return text[n:]
}

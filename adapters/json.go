package adapters

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrMalformed: the bytes are not JSON of the form asked for.
var ErrMalformed = errors.New("malformed JSON")

// maxDepth bounds how deep values may nest, and so the stack. Elasticsearch's own parser stops at 1,000; Typesense 0.24.1 stores
// documents 60,000 deep and dies of those 80,000 deep.
const maxDepth = 1 << 16

// Member is one member of a JSON object as it stands: Key is decoded, Value are the bytes of the value.
type Member struct {
	Key   string
	Value []byte
	// start and end are the member's extent in the object, from the quote of the key to the end of the value.
	start, end int
}

// Members returns the members of a JSON object in their order, or ErrMalformed if data is anything but one well-formed object.
// The values share data's memory.
func Members(data []byte) ([]Member, error) {
	var list []Member
	err := parse(data, '{', func(start, colon, value, end int) bool {
		key, ok := Text(data[start:colon])
		list = append(list, Member{Key: key, Value: data[value:end], start: start, end: end})
		return ok
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Elements returns the elements of a JSON array as they stand, or ErrMalformed if data is anything but one well-formed array.
func Elements(data []byte) ([][]byte, error) {
	var list [][]byte
	err := parse(data, '[', func(_, _, value, end int) bool {
		list = append(list, data[value:end])
		return true
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Strict reports whether data is one JSON value and nothing else, as [Members] reads it but without comments.
func Strict(data []byte) bool {
	s := scanner{data: bytes.TrimPrefix(data, byteOrderMark), deepest: maxDepth, strict: true}
	s.space()
	err := s.value(0)
	s.space()
	return err == nil && s.at == len(s.data)
}

// Shallow reports whether data begins with a well-formed value in which none nests deeper than depth.
func Shallow(data []byte, depth int) bool {
	s := begin(data)
	s.deepest = depth
	return s.value(0) == nil
}

// leaves calls visit with all that stands in a well-formed value and is no array, in order: the elements of arrays in place of these,
// however deep. It goes over the value once, where [Elements] would for each array in it.
func leaves(value []byte, visit func(value []byte)) {
	for s := begin(value); s.at < len(value); s.space() {
		switch start := s.at; value[start] {
		case '[', ']', ',':
			s.at++
		default:
			if s.value(0) != nil {
				return
			}
			visit(value[start:s.at])
		}
	}
}

// parse visits what stands in data if it is one object or array and nothing else.
func parse(data []byte, open byte, visit visitor) error {
	s := begin(data)
	if s.at == len(data) || data[s.at] != open {
		return ErrMalformed
	}
	err := s.container(open, 0, visit)
	if s.space(); err == nil && s.at != len(data) {
		return ErrMalformed
	}
	return err
}

// Get returns the value of the last member with the key, or nil.
func Get(members []Member, key string) []byte {
	for i := len(members) - 1; i >= 0; i-- {
		if members[i].Key == key {
			return members[i].Value
		}
	}
	return nil
}

// Set returns the object with the member's value replaced where the key stands, and otherwise appended as the last member. All
// other bytes stay.
func Set(object []byte, key string, value []byte) ([]byte, error) {
	members, err := Members(object)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Key == key {
			out := append(make([]byte, 0, len(object)-len(m.Value)+len(value)), object[:m.end-len(m.Value)]...)
			return append(append(out, value...), object[m.end:]...), nil
		}
	}
	last := 0
	if len(members) > 0 {
		last = members[len(members)-1].end
	}
	return appendMembers(make([]byte, 0, len(object)+len(key)+len(value)+4), object, last, key, value), nil
}

// appendMembers appends the object to dst with more members, in JSON without braces, right behind the last one, which ends at last, 0
// if there is none. With a key they are the value of one member of that name.
func appendMembers(dst, object []byte, last int, key string, members []byte) []byte {
	at := last
	if last == 0 { // right behind the brace, before which comments may stand
		s := begin(object)
		at = s.at + 1
	}
	dst = append(dst, object[:at]...)
	if last > 0 {
		dst = append(dst, ',')
	}
	if key != "" {
		dst = append(append(append(dst, '"'), key...), '"', ':')
	}
	return append(append(dst, members...), object[at:]...)
}

// Cut returns the object less the members that drop names. All other bytes stay. The object itself is returned if there is none.
func Cut(object []byte, drop func(key string) bool) ([]byte, error) {
	var out []byte
	from := 0                    // object[:from] is copied
	at, last := 0, -1            // the member at hand, and the last one kept
	first, kept, done := 0, 0, 0 // where the first member starts, and where the last one kept and the last one end
	err := parse(object, '{', func(start, colon, _, end int) bool {
		key, ok := Text(object[start:colon])
		if at == 0 {
			first = start
		}
		if !drop(key) {
			switch {
			case at == last+1: // nothing was dropped in between
			case last < 0: // all before it were dropped
				out = append(out, object[from:first]...)
				from = start
			default: // what stands in front of a dropped one's comma belongs to the one before it
				out = append(out, object[from:comma(object, kept)]...)
				from = done
			}
			last, kept = at, end
		}
		at, done = at+1, end
		return ok
	})
	switch {
	case err != nil:
		return nil, err
	case last == at-1:
	case last < 0:
		out = append(out, object[from:first]...)
		from = done
	default:
		out = append(out, object[from:comma(object, kept)]...)
		from = done
	}
	if from == 0 {
		return object, nil
	}
	return append(out, object[from:]...), nil
}

// comma returns where the comma behind a member stands that ends at end.
func comma(object []byte, end int) int {
	s := scanner{data: object, at: end}
	s.space()
	return s.at
}

// scanner walks over JSON by the grammar of RFC 8259, and over comments between its tokens.
type scanner struct {
	data    []byte
	at      int
	deepest int
	strict  bool // comments are none
}

// A visitor is told where a member or element starts, where its key and its value stand, and where it ends. It returns false to refuse it.
type visitor func(start, colon, value, end int) bool

// begin returns a scanner that stands at the first value in data.
func begin(data []byte) scanner {
	s := scanner{data: data, deepest: maxDepth}
	if bytes.HasPrefix(data, byteOrderMark) {
		s.at = len(byteOrderMark)
	}
	s.space()
	return s
}

// byteOrderMark may stand in front of a document, though RFC 8259 tells writers not to.
var byteOrderMark = []byte("\uFEFF")

// space goes over white space, and over comments: engines read them, so a document may hold some.
func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		case '/':
			n := comment(s.data[s.at:])
			if n == 0 || s.strict {
				return
			}
			s.at += n
		default:
			return
		}
	}
}

// comment returns the length of the comment that data begins with, or 0.
func comment(data []byte) int {
	for open, end := range map[string]string{"/*": "*/", "//": "\n"} {
		if !bytes.HasPrefix(data, []byte(open)) {
			continue
		}
		if i := bytes.Index(data[2:], []byte(end)); i >= 0 {
			return 2 + i + len(end)
		}
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

// value reads one value whose container stands at the depth.
func (s *scanner) value(depth int) error {
	if s.at >= len(s.data) || depth > s.deepest {
		return ErrMalformed
	}
	switch c := s.data[s.at]; c {
	case '"':
		return s.str()
	case '{', '[':
		return s.container(c, depth, nil)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

// container reads an object or array that stands at the depth. visit, if not nil, is called with all that stands in it.
func (s *scanner) container(open byte, depth int, visit visitor) error {
	s.at++
	end := open + 2 // ']' and '}' both stand two behind their opening
	s.space()
	if s.take(end) {
		return nil
	}
	for {
		s.space()
		start, colon := s.at, s.at
		if open == '{' {
			if err := s.str(); err != nil {
				return err
			}
			colon = s.at
			if s.space(); !s.take(':') {
				return ErrMalformed
			}
			s.space()
		}
		value := s.at
		if err := s.value(depth + 1); err != nil {
			return err
		}
		if visit != nil && !visit(start, colon, value, s.at) {
			return ErrMalformed
		}
		s.space()
		if s.take(end) {
			return nil
		}
		if !s.take(',') {
			return ErrMalformed
		}
	}
}

func (s *scanner) literal(word string) error {
	if !bytes.HasPrefix(s.data[s.at:], []byte(word)) {
		return ErrMalformed
	}
	s.at += len(word)
	return nil
}

func (s *scanner) str() error {
	if !s.take('"') {
		return ErrMalformed
	}
	for s.at < len(s.data) {
		s.at += plain(s.data[s.at:])
		if s.at == len(s.data) {
			break
		}
		c := s.data[s.at]
		s.at++
		switch {
		case c == '"':
			return nil
		case c < 0x20:
			return ErrMalformed
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return ErrMalformed
}

// plain returns how many bytes of data, eight at a time, are none of a quote, a backslash and a control character. Most of a reply is
// inside strings, and this makes going over one several times as fast.
func plain(data []byte) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(data)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(data[n:])
		quote, backslash := x^each*'"', x^each*'\\'
		// The high bit of a byte is set where it is below 0x20, or 0 after the exclusive or.
		if ((x-each*0x20)&^x|(quote-each)&^quote|(backslash-each)&^backslash)&high != 0 {
			break
		}
	}
	return n
}

func (s *scanner) escape() error {
	if s.at >= len(s.data) {
		return ErrMalformed
	}
	c := s.data[s.at]
	s.at++
	if c != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), c) < 0 {
			return ErrMalformed
		}
		return nil
	}
	if s.at+4 > len(s.data) {
		return ErrMalformed
	}
	for _, h := range s.data[s.at : s.at+4] {
		if !(h >= '0' && h <= '9' || h >= 'a' && h <= 'f' || h >= 'A' && h <= 'F') {
			return ErrMalformed
		}
	}
	s.at += 4
	return nil
}

func (s *scanner) number() error {
	s.take('-')
	if !s.take('0') && s.digits() == 0 {
		return ErrMalformed
	}
	if s.take('.') && s.digits() == 0 {
		return ErrMalformed
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if s.digits() == 0 {
			return ErrMalformed
		}
	}
	return nil
}

func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}

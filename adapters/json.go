package adapters

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// ErrMalformed: the bytes are not JSON of the form asked for.
var ErrMalformed = errors.New("malformed JSON")

// maxDepth bounds how deep values may nest, and so the stack. Elasticsearch's own parser stops at 1,000; Typesense 0.24.1 stores
// documents 74,000 deep and dies of those 75,000 deep. What it stores has to be read: else it could bring a sketch that is not ours, and stop jobs.
const maxDepth = 80_000

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
	r := NewReader(data)
	if !r.Enter('{') {
		return nil, ErrMalformed
	}
	var room [16]Member // most objects have no more, and so take what they have
	list := room[:0]
	for r.Next() {
		key, ok := keyText(r.quoted())
		if !ok {
			return nil, ErrMalformed
		}
		value := r.Value()
		list = append(list, Member{Key: key, Value: value, start: r.key, end: r.s.at})
	}
	if !r.Done() {
		return nil, ErrMalformed
	}
	if len(list) == 0 {
		return nil, nil
	}
	return slices.Clone(list), nil
}

// ManyMembers reports whether data begins with an object of more than a thousand members, of which [Members] takes many times its memory. No
// engine knows as many of a search or an update.
func ManyMembers(data []byte) bool {
	n := 0
	r := NewReader(data)
	for r.Enter('{'); n <= 1000 && r.Next(); n++ {
	}
	return n > 1000
}

// mostElements is how many elements [Elements] takes apart. Eight megabytes can hold four million of them, whose places alone would take 200 MB.
const mostElements = 1 << 18

// ErrTooMany is the error of a list that is too long to be taken apart.
var ErrTooMany = fmt.Errorf("a list of more than %d elements", mostElements)

// Elements returns the elements of a JSON array as they stand, or ErrMalformed if data is anything but one well-formed array. Of a list that is
// too long it returns ErrTooMany.
func Elements(data []byte) ([][]byte, error) {
	r := NewReader(data)
	if !r.Enter('[') {
		return nil, ErrMalformed
	}
	var list [][]byte
	for r.Next() {
		if len(list) == mostElements {
			return nil, ErrTooMany
		}
		list = append(list, r.Value())
	}
	if !r.Done() {
		return nil, ErrMalformed
	}
	return list, nil
}

// Strict reports whether data is one JSON value and nothing else, as [Members] reads it but without comments.
func Strict(data []byte) bool {
	s := scanner{data: bytes.TrimPrefix(data, byteOrderMark), deepest: maxDepth, strict: true}
	s.space()
	whole := s.value(0)
	s.space()
	return whole && s.at == len(s.data)
}

// Shallow reports whether data begins with a well-formed value in which none nests deeper than depth.
func Shallow(data []byte, depth int) bool {
	s := begin(data)
	s.deepest = depth
	return s.value(0)
}

// leaves calls visit with all that stands in a well-formed value and is no array, in order: the elements of arrays in place of these,
// however deep. It goes over the value once, where [Elements] would for each array in it.
func leaves(value []byte, visit func(value []byte)) {
	for s := begin(value); s.at < len(value); s.space() {
		switch start := s.at; value[start] {
		case '[', ']', ',':
			s.at++
		default:
			if !s.value(0) {
				return
			}
			visit(value[start:s.at])
		}
	}
}

// A visitor is told where a member or element starts, where its key and its value stand, and where it ends. It returns false to refuse it.
type visitor func(start, colon, value, end int) bool

// parse visits what stands in data if it is one object and nothing else.
func parse(data []byte, open byte, visit visitor) error {
	r := NewReader(data)
	if !r.Enter(open) {
		return ErrMalformed
	}
	for r.Next() {
		value := r.s.at
		if r.Value(); r.bad || !visit(r.key, r.colon, value, r.s.at) {
			return ErrMalformed
		}
	}
	if !r.Done() {
		return ErrMalformed
	}
	return nil
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

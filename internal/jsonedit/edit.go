package jsonedit

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// Member is one member of a JSON object: Key is decoded, Value are the bytes of the value.
type Member struct {
	Key   string
	Value []byte
	// Start and End are where the member is in the object, from the quote of the key to the end of the value.
	Start, End int
}

// Members returns the members of a JSON object in their order, or ErrMalformed if data is anything but one well-formed object.
// The values share data's memory.
func Members(data []byte) ([]Member, error) { return membersUpTo(data, len(data)) }

// FewMembers is [Members] of an object that may have no more than a thousand: more is an error. A list of members takes many
// times their memory, and no engine knows as many of a search or an update.
func FewMembers(data []byte) ([]Member, error) { return membersUpTo(data, 1000) }

// errTooMany is the error of an object or array that is too long to be taken apart.
var errTooMany = fmt.Errorf("more than %d elements or members", mostElements)

func membersUpTo(data []byte, most int) ([]Member, error) {
	r := NewReader(data)
	if !r.Enter('{') {
		return nil, ErrMalformed
	}
	var room [16]Member // most objects have no more, and so take what they have
	list, keys := room[:0], Strings{}
	for r.Next() {
		if len(list) == most {
			return nil, errTooMany
		}
		key := keys.Of(r.Key())
		value := r.Value()
		list = append(list, Member{Key: key, Value: value, Start: r.key, End: r.at})
	}
	if !r.Done() {
		return nil, ErrMalformed
	}
	if len(list) == 0 {
		return nil, nil
	}
	return slices.Clone(list), nil
}

// mostElements is how many elements [Elements] takes apart. Eight megabytes can hold four million of them, whose places alone would take 200 MB.
const mostElements = 1 << 18

// Elements returns the bytes of the elements of a JSON array, or ErrMalformed if data is anything but one well-formed array. Of a list that is
// too long it returns an error.
func Elements(data []byte) ([][]byte, error) {
	r := NewReader(data)
	if !r.Enter('[') {
		return nil, ErrMalformed
	}
	var list [][]byte
	for r.Next() {
		if len(list) == mostElements {
			return nil, errTooMany
		}
		list = append(list, r.Value())
	}
	if !r.Done() {
		return nil, ErrMalformed
	}
	return list, nil
}

// Array returns a JSON array of the elements, without white space.
func Array(elements [][]byte) []byte {
	return slices.Concat([]byte{'['}, bytes.Join(elements, []byte{','}), []byte{']'})
}

// Strict reports whether data is one JSON value and nothing else, as [Members] reads it but without comments.
func Strict(data []byte) bool {
	r := NewStrictReader(data)
	return r.Skip() && r.Done()
}

// Shallow reports whether data begins with a well-formed value in which none nests deeper than depth.
func Shallow(data []byte, depth int) bool {
	r := NewReader(data)
	r.deepest = depth
	return r.Skip()
}

// Head returns data up to the end of the value that it begins with, or nil if that is not well-formed. Some readers never look at
// what follows.
func Head(data []byte) []byte {
	r := NewReader(data)
	if !r.Skip() {
		return nil
	}
	return data[:r.at]
}

// Blank reports whether data holds no value: nothing but white space and comments.
func Blank(data []byte) bool {
	r := NewReader(data)
	return r.at == len(data)
}

// Leaves calls visit with each value that is no array, in order: with a well-formed value itself, or with the elements of arrays in it,
// however deep. It goes over the value once, where [Elements] would for each array in it.
func Leaves(value []byte, visit func(value []byte)) {
	for r := NewReader(value); r.at < len(value); r.space() {
		switch value[r.at] {
		case '[', ']', ',':
			r.at++
		default:
			leaf := r.Value()
			if leaf == nil {
				return
			}
			visit(leaf)
		}
	}
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

// Lookup returns the value of the last member with the key in an object, or nil.
func Lookup(object []byte, key string) (value []byte) {
	r := NewReader(object)
	for r.Enter('{'); r.Next(); {
		if string(r.Key()) == key {
			value = r.Value()
		}
	}
	if !r.Done() {
		return nil
	}
	return value
}

// Repeated reports whether two members have the same key.
func Repeated(members []Member) bool {
	seen := make(map[string]struct{}, len(members))
	for _, m := range members {
		seen[m.Key] = struct{}{}
	}
	return len(seen) < len(members)
}

// Edit puts With in the place of a part of a text.
type Edit struct {
	From, To int
	With     []byte
}

// Edits are changes of one text, no two of the same part.
type Edits []Edit

// Apply returns the text with the changes: the text itself if there are none.
func (e Edits) Apply(text []byte) []byte {
	if len(e) == 0 {
		return text
	}
	return bytes.Join(e.Pieces(text), nil)
}

// Pieces returns the same in pieces.
func (e Edits) Pieces(text []byte) [][]byte {
	slices.SortStableFunc(e, func(a, b Edit) int { return cmp.Compare(a.From, b.From) })
	pieces, at := make([][]byte, 0, 2*len(e)+1), 0
	for _, edit := range e {
		pieces, at = append(pieces, text[at:edit.From], edit.With), edit.To
	}
	return append(pieces, text[at:])
}

// Set returns the object with the value of the first member of that key replaced, or with a new last member if there is none. All
// other bytes stay.
func Set(object []byte, key string, value []byte) ([]byte, error) {
	r := NewReader(object)
	if !r.Enter('{') {
		return nil, ErrMalformed
	}
	from, to, last := 0, 0, 0
	for r.Next() {
		found, start := to == 0 && string(r.Key()) == key, r.At()
		r.Skip()
		if last = r.At(); found {
			from, to = start, last
		}
	}
	if !r.Done() {
		return nil, ErrMalformed
	}
	out := make([]byte, 0, len(object)+len(key)+len(value)+len(`,"":`))
	if to > 0 {
		return append(append(append(out, object[:from]...), value...), object[to:]...), nil
	}
	member := append(append(append(append(make([]byte, 0, 64), '"'), key...), `":`...), value...)
	return AppendMembers(out, object, last, member), nil
}

// Append returns the object with more members, in JSON without braces, behind its own. All other bytes stay.
func Append(object, members []byte) ([]byte, error) {
	r := NewReader(object)
	if !r.Enter('{') {
		return nil, ErrMalformed
	}
	last := 0
	for r.Next() {
		r.Skip()
		last = r.At()
	}
	switch {
	case !r.Done():
		return nil, ErrMalformed
	case len(members) == 0:
		return object, nil
	}
	return AppendMembers(make([]byte, 0, len(object)+len(members)+1), object, last, members), nil
}

// AppendMembers appends the object to dst with more members, in JSON without braces, right after the last one, which ends at last, 0
// if there is none.
func AppendMembers(dst, object []byte, last int, members []byte) []byte {
	at := last
	if last == 0 { // right after the brace, before which there may be comments
		r := NewReader(object)
		at = r.at + 1
	}
	dst = append(dst, object[:at]...)
	if last > 0 {
		dst = append(dst, ',')
	}
	return append(append(dst, members...), object[at:]...)
}

// Cut returns the object less the members that drop names. All other bytes stay. The object itself is returned if there is none.
func Cut(object []byte, drop func(key string) bool) ([]byte, error) {
	if lacks(object, drop) { // the quick way, which copies nothing
		return object, nil
	}
	return cleanedStrictly(object, Cuts{Depth: 1, Drop: func(path []string) bool { return drop(path[0]) }})
}

// lacks reports whether a well-formed object has no member that names accepts.
func lacks(object []byte, names func(key string) bool) bool {
	r, keys := NewReader(object), Strings{}
	if !r.Enter('{') {
		return false
	}
	for r.Next() {
		if names(keys.Of(r.Key())) {
			return false
		}
	}
	return r.Done()
}

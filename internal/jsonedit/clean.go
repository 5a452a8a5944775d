package jsonedit

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
)

// Cuts say what [Clean] leaves out. A path is the keys that lead to a value from the top, through arrays, whose elements have
// none; it is valid during the call alone.
type Cuts struct {
	// Drop reports whether the member that the path leads to goes.
	Drop func(path []string) bool
	// Prefix, if not empty, has Drop asked only about names with this prefix.
	Prefix string
	// DropElement, if set, reports whether an element of the array that the path leads to goes. at are the places in all arrays around it,
	// from the outermost on, and its own.
	DropElement func(path []string, at []int) bool
	// Depth, if not 0, says that members of longer paths stay as they are.
	Depth int
	// Prune, if set, reports whether the object or array that the path leads to goes too, with its key, if everything in it was
	// dropped. element says that it is an element of the array that the path leads to. Containers that were empty
	// before stay, and so does the outermost value.
	Prune func(path []string, element bool) bool
	// Edit, if set, returns what takes the place of a string, which it gets with its quotes. Keys are not offered, nor
	// are strings beyond 256 kB that stream in.
	Edit func(path []string, quoted []byte) []byte
	// Add, if set, returns members for the end of the object that the path leads to, in JSON without braces, once all of its own were
	// offered to Drop.
	Add func(path []string) []byte
}

// Clean copies JSON values from src to dst less what is cut. All other bytes stay: white space, comments and a byte order mark
// too. Only one member's key is in memory at a time, and what may be pruned until its first member that stays. Several values may
// follow one another, as in NDJSON. From the first byte that is not well-formed on, the rest is copied unchanged. It returns
// only errors of src and dst.
func Clean(dst io.Writer, src io.Reader, cuts Cuts) error {
	e := streaming(dst, src, cuts)
	defer e.free()
	err := e.values()
	if errors.Is(err, ErrMalformed) {
		e.rest()
		if err = e.write(len(e.out)); err == nil {
			_, err = io.Copy(dst, src)
		}
	}
	return err
}

// CleanStrictly is [Clean] that ends with [ErrMalformed] where something is not well-formed, or is too long to be checked.
func CleanStrictly(dst io.Writer, src io.Reader, cuts Cuts) error {
	e := streaming(dst, src, cuts)
	defer e.free()
	return e.values()
}

// Cleaned returns data as [Clean] copies it: data itself if nothing is cut.
func Cleaned(data []byte, cuts Cuts) []byte {
	e := newEditor(data, cuts)
	_ = e.values() // what is malformed stays as it is
	return e.result()
}

// cleanedStrictly is [Cleaned] for one object. It returns [ErrMalformed] if the data is no object, or not well-formed.
func cleanedStrictly(object []byte, cuts Cuts) ([]byte, error) {
	e := newEditor(object, cuts)
	e.grammar = commented
	if !e.has(1) || e.data[e.at] != '{' {
		return nil, ErrMalformed
	}
	if e.value(false); !e.Done() {
		return nil, ErrMalformed
	}
	return e.result(), nil
}

// CleanedInPlace is [Cleaned] of data that no one else has: what is left takes the place of it. Edit and Add may not be set.
func CleanedInPlace(data []byte, cuts Cuts) []byte {
	e := newEditor(data, cuts)
	e.out = data[:0]
	_ = e.values()
	return e.result()
}

// editor copies a document less what goes. Places in the copy are counted from its beginning.
type editor struct {
	Reader
	Cuts
	src io.Reader
	dst io.Writer
	err error // of either

	out     []byte // the copy, as far as it is made and not written
	copied  int    // data up to there is in it, or went
	written int    // how much of the copy is written to dst
	hold    int    // from here on the copy is not written yet: it may still be cut; -1 for none
	changed bool
	mute    bool  // a member is passed that goes
	edits   bool  // a string is passed that is to be edited
	places  []int // in the arrays around, for DropElement

	path
}

// path is the keys that lead to where an editor is. They are decoded only when they are asked for.
type path struct {
	keys  []byte // with their quotes
	ends  []int
	parts []string // the first of them, decoded
	known int      // how many of parts are those of keys
	names []string // names that were decoded before: a reply has the same again and again

	keyRoom            [128]byte
	endRoom            [8]int
	partRoom, nameRoom [8]string
}

func newEditor(data []byte, cuts Cuts) *editor {
	e := &editor{Reader: NewReader(data), Cuts: cuts, hold: -1}
	e.grammar, e.keys, e.ends, e.parts, e.names = lenient, e.keyRoom[:0], e.endRoom[:0], e.partRoom[:0], e.nameRoom[:0]
	return e
}

func streaming(dst io.Writer, src io.Reader, cuts Cuts) *editor {
	buffers, _ := streams.Get().(*[2][]byte)
	e := newEditor(buffers[0], cuts)
	e.dst, e.src, e.stream, e.out = dst, src, e, buffers[1]
	return e
}

// free gives the buffers of one that streamed back, unless they have grown much.
func (e *editor) free() {
	if cap(e.data) <= 4*window && cap(e.out) <= 4*window {
		streams.Put(&[2][]byte{e.data[:0], e.out[:0]})
	}
}

// streams are buffers for what is read and what is written.
var streams = sync.Pool{New: func() any { return &[2][]byte{make([]byte, 0, window), make([]byte, 0, 2*window)} }}

// window is how much of a document that streams in is read at once.
const window = 32 << 10

// tooShort is how many bytes wait for more: who looked at the head of a reply has read that alone.
const tooShort = 64

// maxHeld bounds what is kept in memory: a longer key, or a longer value that may be pruned, is copied unchanged with all that follows.
const maxHeld = 1 << 20

// maxEdited is how long a string may be for it to be edited where it streams in.
const maxEdited = 256 << 10

// fill moves the window on over what was passed.
func (e *editor) fill() bool {
	if e.err != nil {
		return false
	}
	if e.edits && e.at-e.keep > maxEdited {
		e.edits, e.keep, e.hold = false, -1, -1
	}
	passed := e.at
	if e.keep >= 0 {
		passed = min(passed, e.keep)
	}
	if !e.mute {
		e.out = append(e.out, e.data[e.copied:passed]...)
	}
	e.copied = 0
	e.data = e.data[:copy(e.data, e.data[passed:])]
	e.base, e.at, e.keep = e.base+passed, e.at-passed, max(e.keep-passed, -1)
	if len(e.out) > tooShort {
		e.err = e.flush()
	}
	if e.err != nil || len(e.data)+len(e.out) > maxHeld {
		return false
	}
	if len(e.data) > cap(e.data)/2 {
		e.data = slices.Grow(e.data, cap(e.data))
	}
	for {
		n, err := e.src.Read(e.data[len(e.data):cap(e.data)])
		e.data, e.err = e.data[:len(e.data)+n], err
		if n > 0 || err != nil {
			return n > 0
		}
	}
}

// write writes the first n bytes that are ready.
func (e *editor) write(n int) error {
	if n <= 0 {
		return nil
	}
	_, err := e.dst.Write(e.out[:n])
	e.out, e.written = e.out[:copy(e.out, e.out[n:])], e.written+n
	return err
}

// flush writes what is decided.
func (e *editor) flush() error {
	ready := len(e.out)
	if e.hold >= 0 {
		ready = min(ready, e.hold-e.written)
	}
	return e.write(ready)
}

// pos returns the place in the copy of what comes next.
func (e *editor) pos() int { return e.written + len(e.out) + e.at - e.copied }

// sync has all up to there in the copy.
func (e *editor) sync(at int) {
	e.out, e.copied = append(e.out, e.data[e.copied:at]...), at
}

// cut removes from the copy what follows a place, and goes on there in data.
func (e *editor) cut(place, to int) {
	if e.dst == nil && e.out == nil {
		e.out = make([]byte, 0, len(e.data))
	}
	if n := place - e.written - len(e.out); n >= 0 {
		e.sync(e.copied + n)
	} else {
		e.out = e.out[:len(e.out)+n]
	}
	e.copied, e.changed = to, true
}

// rest puts the rest of data into the copy.
func (e *editor) rest() {
	if e.mute {
		e.copied = e.at
	}
	e.sync(len(e.data))
}

// result returns the copy of data that did not stream in.
func (e *editor) result() []byte {
	if !e.changed {
		return e.data
	}
	e.rest()
	return e.out
}

// values copies what is there, up to the first byte that is not well-formed.
func (e *editor) values() error {
	for e.space(); e.has(1) && !e.bad; e.space() {
		e.value(false)
	}
	switch {
	case e.dst == nil:
	case e.err != nil && !errors.Is(e.err, io.EOF):
		e.rest()
		return errors.Join(e.err, e.write(len(e.out)))
	case e.bad || e.at < len(e.data):
		if e.mute {
			e.copied = e.at
		}
		e.sync(e.at)
		return errors.Join(ErrMalformed, e.flush())
	default:
		e.sync(e.at)
		return e.write(len(e.out))
	}
	return nil
}

// value copies one value. It returns true if nothing is left of it and it is to be pruned.
func (e *editor) value(element bool) (emptied bool) {
	if !e.has(1) {
		e.fail()
		return false
	}
	switch c := e.data[e.at]; {
	case c == '"' && e.Edit != nil:
		e.text()
	case c != '{' && c != '[', e.Depth > 0 && len(e.ends) >= e.Depth:
		e.hold = -1
		e.Skip()
	default:
		return e.container(c, element)
	}
	return false
}

// text copies a string.
func (e *editor) text() {
	place := e.pos()
	if e.hold < 0 {
		e.hold = place
	}
	e.keep, e.due, e.edits = e.at, false, true
	switch {
	case !e.str():
		e.fail()
		return
	case e.edits:
		quoted := e.data[e.keep:e.at]
		if edited := e.Edit(e.decoded(), quoted); !bytes.Equal(edited, quoted) {
			e.cut(place, e.at)
			e.out = append(e.out, edited...)
		}
	}
	e.hold, e.keep, e.edits = -1, -1, false
}

// container copies an object or array. Where it may be pruned, nothing of it is written until something in it stays: Prune is asked at its
// end, and only for what was emptied, as it may have to look at the whole path.
func (e *editor) container(open byte, element bool) (emptied bool) {
	if !e.Enter(open) {
		e.fail()
		return false
	}
	prunes := e.Prune != nil && len(e.ends) > 0 && e.pos()-e.hold < maxHeld/2
	if !prunes {
		e.hold = -1
	}
	counts := open == '[' && e.DropElement != nil
	if counts {
		e.places = append(e.places, -1)
	}
	for kept, dropped, gone := false, false, false; ; {
		place := e.pos()
		if e.hold < 0 {
			e.hold = place
		}
		more := e.Next()
		if !more && counts {
			e.places = e.places[:len(e.places)-1]
		}
		switch {
		case more:
		case e.bad:
			return false
		case prunes && dropped && !kept && e.Prune(e.decoded(), element):
			return true
		default:
			e.finish(open, place, kept, dropped)
			return false
		}
		if kept && !gone { // white space before the comma belongs to the member before it, which stays
			place = e.pos() - (e.base + e.at - e.comma) - 1
		}
		if counts {
			e.places[len(e.places)-1]++
		}
		if gone = e.member(open, place, !kept && dropped); e.bad {
			return false
		}
		kept, dropped = kept || !gone, dropped || gone
	}
}

// finish ends a container, whose last member ends at the place.
func (e *editor) finish(open byte, place int, kept, dropped bool) {
	end := e.at - 1
	if dropped && !kept { // one printed over several lines goes on one, as engines print it
		e.sync(end)
		if start := place - e.written; bytes.IndexByte(e.out[start:], '\n') >= 0 {
			e.out = append(e.out[:start], ' ')
		}
	}
	if open == '{' && e.Add != nil {
		if added := e.Add(e.decoded()); len(added) > 0 {
			e.sync(end)
			if kept {
				added = append([]byte{','}, added...)
			}
			e.out, e.changed = slices.Insert(e.out, place-e.written, added...), true
		}
	}
	e.hold = -1
}

// member copies the current member or element, or returns true if it goes, with what is between the place and it. first says that all before
// it were dropped, so that the comma goes with them.
func (e *editor) member(open byte, place int, first bool) (gone bool) {
	if open == '{' {
		quoted := e.quoted()
		asked := e.Drop != nil && (e.Prefix == "" || begins(quoted, e.Prefix))
		opens := e.at < len(e.data) && (e.data[e.at] == '{' || e.data[e.at] == '[')
		if asked || opens || e.Edit != nil { // the path is wanted
			e.push(quoted)
			defer e.pop()
		}
		if asked && e.Drop(e.decoded()) {
			e.drop(place)
			return true
		}
	} else if e.DropElement != nil && e.DropElement(e.decoded(), e.places) {
		e.drop(place)
		return true
	}
	if first {
		e.cut(place, e.comma-e.base)
	}
	if gone = e.value(open == '['); gone {
		e.cut(place, e.at)
	}
	return gone
}

// drop passes the value that comes next, and removes all from a place in the copy to its end.
func (e *editor) drop(place int) {
	e.cut(place, e.at)
	e.mute = true
	if e.Skip() {
		e.copied, e.mute = e.at, false
	}
}

func (p *path) push(quoted []byte) {
	p.known = min(p.known, len(p.ends))
	p.keys = append(p.keys, quoted...)
	p.ends = append(p.ends, len(p.keys))
}

func (p *path) pop() {
	p.ends = p.ends[:len(p.ends)-1]
	p.keys = p.keys[:p.start(len(p.ends))]
}

func (p *path) start(key int) int {
	if key == 0 {
		return 0
	}
	return p.ends[key-1]
}

func (p *path) decoded() []string {
	for ; p.known < len(p.ends); p.known++ {
		quoted := p.keys[p.start(p.known):p.ends[p.known]]
		if p.known == len(p.parts) {
			p.parts = append(p.parts, "")
		}
		if name := &p.parts[p.known]; *name != string(quoted[1:len(quoted)-1]) || !simple(quoted) {
			*name = p.name(quoted)
		}
	}
	return p.parts[:len(p.ends)]
}

// name returns a key, decoded.
func (p *path) name(quoted []byte) string {
	key, _ := TextBytes(quoted)
	for _, name := range p.names {
		if name == string(key) {
			return name
		}
	}
	if len(p.names) < cap(p.names) {
		p.names = append(p.names, string(key))
		return p.names[len(p.names)-1]
	}
	return string(key)
}

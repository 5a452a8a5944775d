package adapters

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
)

// MaxDocument bounds how much of a body is held in memory at a time. A document, or a line, that is longer passes as it stands.
const MaxDocument = 32 << 20

// Long is a body of which more than a piece may have to be held at a time.
type Long struct {
	io.Reader
	// Room is asked for room for so many bytes more, and told with a negative number of those that are free again. Where there is none, a
	// line or document that is longer passes as it stands.
	Room func(n int) bool
}

// piece is how much of a line, or a document, is held without asking for room.
const piece = 64 << 10

// longest is a line or document that is being held.
type longest struct {
	room func(n int) bool // nil: there is room
	held []byte
	had  int
}

func newLongest(src io.Reader) *longest {
	l := new(longest)
	if long, ok := src.(*Long); ok {
		l.room = long.Room
	}
	return l
}

// fits makes room for n more bytes, and for what they are edited into. It reports false where there is none.
func (l *longest) fits(n int) bool {
	if n += len(l.held); n <= cap(l.held) {
		return true
	}
	more := max(n, 2*cap(l.held))
	if l.room != nil && more > piece {
		if !l.room(2*more - l.had) {
			return false
		}
		l.had = 2 * more
	}
	l.held = append(make([]byte, 0, more), l.held...)
	return true
}

// clear ends the line. A long one's memory is given back.
func (l *longest) clear() {
	if l.held = l.held[:0]; l.had > 0 {
		l.room(-l.had)
		l.held, l.had = nil, 0
	}
}

// EditWhole copies src to dst with its content edited. Where src fails nothing is written.
func EditWhole(dst io.Writer, src io.Reader, edit func(body []byte) []byte) error {
	l := newLongest(src)
	defer l.clear()
	for len(l.held) <= MaxDocument && l.fits(bytes.MinRead) {
		n, err := src.Read(l.held[len(l.held):cap(l.held)])
		l.held = l.held[:len(l.held)+n]
		switch {
		case errors.Is(err, io.EOF) && len(l.held) <= MaxDocument:
			_, err := dst.Write(edit(l.held))
			return err
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
	}
	_, err := io.Copy(dst, io.MultiReader(bytes.NewReader(l.held), src))
	return err
}

// EditLines copies src to dst with each line edited, its line end included. For a line that is copied as it stands because it is
// too long, edit is called with nil and what it returns is left out. Lines are good until edit returns, and what it returns until
// it is called again. Where src fails nothing of the line at hand is edited.
func EditLines(dst io.Writer, src io.Reader, edit func(line []byte) []byte) error {
	line := newLongest(src)
	defer line.clear()
	r, w := lineReaders.Get().(*bufio.Reader), lineWriters.Get().(*bufio.Writer)
	r.Reset(src)
	w.Reset(dst)
	defer func() { // nothing of this write is kept
		r.Reset(nil)
		w.Reset(nil)
		lineReaders.Put(r)
		lineWriters.Put(w)
	}()
	return errors.Join(line.edit(w, r, edit), w.Flush())
}

// lineReaders and lineWriters are kept for the next write: many a body is shorter than these two.
var (
	lineReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, piece) }}
	lineWriters = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, piece) }}
)

func (l *longest) edit(w *bufio.Writer, r *bufio.Reader, edit func(line []byte) []byte) error {
	long := false // the line at hand is being copied as it stands
	for {
		part, err := r.ReadSlice('\n')
		ended := err == nil || errors.Is(err, io.EOF)
		if !ended && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		var out []byte
		switch {
		case !long && ended && len(l.held) == 0: // it stands in the reader's buffer whole, as most do
			if len(part) > 0 {
				out = edit(slices.Clip(part))
			}
		case !long && len(l.held)+len(part) <= MaxDocument && l.fits(len(part)):
			if l.held = append(l.held, part...); !ended {
				continue
			}
			out = edit(l.held)
		default:
			if !long {
				if _, err := w.Write(l.held); err != nil {
					return err
				}
			}
			if long, out = true, part; ended {
				edit(nil)
			}
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		l.clear()
		if long = long && !ended; errors.Is(err, io.EOF) {
			return nil
		}
	}
}

// Head returns data up to the end of the value that it begins with, or nil if that is not well-formed. Some readers never look at
// what follows.
func Head(data []byte) []byte {
	s := begin(data)
	if !s.value(0) {
		return nil
	}
	return data[:s.at]
}

// First returns the first member of the object that data begins with, whatever follows it.
func First(data []byte) (m Member, ok bool) {
	_ = parse(data, '{', func(start, colon, value, end int) bool { // what follows may be malformed
		var key string
		key, ok = Text(data[start:colon])
		m = Member{Key: key, Value: data[value:end], start: start, end: end}
		return false
	})
	return m, ok
}

// Blank reports whether data holds no value: nothing but white space and comments.
func Blank(data []byte) bool {
	s := begin(data)
	return s.at == len(data)
}

package jsonedit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
)

// MaxDocument bounds how much of a body is in memory at a time. A document, or a line, that is longer is copied piece by piece.
const MaxDocument = 32 << 20

// Holder is a body that is asked before more than a piece of it is held in memory.
type Holder interface {
	io.Reader
	// Hold reserves n bytes of memory, or releases them where n is negative. Where it reports false, a line or document that is longer than a
	// piece is copied piece by piece.
	Hold(n int) bool
}

// piece is how much of a line, or a document, is held without asking for room.
const piece = 64 << 10

// longest is a line or document that is being collected.
type longest struct {
	holder Holder // nil: there is always room
	held   []byte
	had    int
}

func newLongest(src io.Reader) *longest {
	holder, _ := src.(Holder)
	return &longest{holder: holder}
}

// grow holds memory for n more bytes, and for what they are edited into. It reports false where there is too little.
func (l *longest) grow(n int) bool {
	if n += len(l.held); n <= cap(l.held) {
		return true
	}
	more := max(n, 2*cap(l.held))
	if l.holder != nil && more > piece {
		if !l.holder.Hold(2*more - l.had) {
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
		l.holder.Hold(-l.had)
		l.held, l.had = nil, 0
	}
}

// A LongCopy copies from src to dst a line, or a document, that is too long for memory. What it leaves unread of src is left out.
type LongCopy func(dst io.Writer, src io.Reader) error

func (long LongCopy) copy(dst io.Writer, src io.Reader) (err error) {
	if long == nil {
		_, err = io.Copy(dst, src)
		return err
	}
	return long(dst, src)
}

// EditWhole copies src to dst with its content edited. Where src fails nothing is written. Content that is too long goes through long,
// unchanged if that is nil.
func EditWhole(dst io.Writer, src io.Reader, edit func(body []byte) []byte, long LongCopy) error {
	l := newLongest(src)
	defer l.clear()
	for len(l.held) <= MaxDocument && l.grow(bytes.MinRead) {
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
	return long.copy(dst, io.MultiReader(bytes.NewReader(l.held), src))
}

// EditLines copies src to dst with each line edited, the byte included that ends it. A line that is too long goes through long, unchanged
// if that is nil. Lines are good until edit returns, and what it returns until it is called again. Where src fails nothing of the line at
// hand is edited.
func EditLines(dst io.Writer, src io.Reader, end byte, edit func(line []byte) []byte, long LongCopy) error {
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
	return errors.Join(line.edit(w, r, end, edit, long), w.Flush())
}

// lineReaders and lineWriters are kept for the next write: many a body is shorter than these two.
var (
	lineReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, piece) }}
	lineWriters = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, piece) }}
)

func (l *longest) edit(w *bufio.Writer, r *bufio.Reader, end byte, edit func(line []byte) []byte, long LongCopy) error {
	for {
		part, err := r.ReadSlice(end)
		ended := err == nil || errors.Is(err, io.EOF)
		if !ended && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		var out []byte
		switch {
		case ended && len(l.held) == 0: // the reader's buffer has all of it, as of most
			if len(part) > 0 {
				out = edit(slices.Clip(part))
			}
		case len(l.held)+len(part) <= MaxDocument && l.grow(len(part)):
			if l.held = append(l.held, part...); !ended {
				continue
			}
			out = edit(l.held)
		default:
			rest := &restOfLine{r: r, end: end, ended: ended, err: err}
			line := io.MultiReader(bytes.NewReader(l.held), bytes.NewReader(part), rest)
			if err := long.copy(w, line); err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, line); err != nil {
				return err
			}
			err = rest.err
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		if l.clear(); errors.Is(err, io.EOF) {
			return nil
		}
	}
}

// restOfLine reads up to the end of a line, that included.
type restOfLine struct {
	r     *bufio.Reader
	end   byte
	left  []byte // of what was read last
	ended bool
	err   error // io.EOF where the source has ended too
}

func (l *restOfLine) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		if l.ended {
			return 0, io.EOF
		}
		part, err := l.r.ReadSlice(l.end)
		switch l.left = part; {
		case err == nil, errors.Is(err, io.EOF):
			l.ended, l.err = true, err
		case !errors.Is(err, bufio.ErrBufferFull):
			return 0, err
		}
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

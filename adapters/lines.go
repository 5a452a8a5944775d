package adapters

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxDocument bounds how much of a body is held in memory at a time. A document, or a line, that is longer passes as it stands.
const MaxDocument = 32 << 20

// EditWhole copies src to dst with its content edited. Where src fails nothing is written.
func EditWhole(dst io.Writer, src io.Reader, edit func(body []byte) []byte) error {
	body, err := io.ReadAll(io.LimitReader(src, MaxDocument+1))
	if err != nil {
		return err
	}
	if len(body) > MaxDocument {
		_, err := io.Copy(dst, io.MultiReader(bytes.NewReader(body), src))
		return err
	}
	_, err = dst.Write(edit(body))
	return err
}

// EditLines copies src to dst with each line edited, its line end included. For a line that is copied as it stands because it is
// too long, edit is called with nil and what it returns is left out. Lines are good until edit returns, and what it returns until
// it is called again. Where src fails nothing of the line at hand is edited.
func EditLines(dst io.Writer, src io.Reader, edit func(line []byte) []byte) error {
	w := bufio.NewWriterSize(dst, 64<<10)
	return errors.Join(editLines(w, bufio.NewReaderSize(src, 64<<10), edit), w.Flush())
}

func editLines(w *bufio.Writer, r *bufio.Reader, edit func(line []byte) []byte) error {
	var line []byte
	long := false // the line at hand is being copied as it stands
	for {
		piece, err := r.ReadSlice('\n')
		ended := err == nil || errors.Is(err, io.EOF)
		if !ended && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		line = append(line, piece...)
		if long = long || len(line) > MaxDocument; !long && !ended {
			continue
		}
		out := line
		if ended && long {
			edit(nil)
		} else if ended && len(line) > 0 {
			out = edit(line)
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		line, long = line[:0], long && !ended
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}

// Head returns data up to the end of the value that it begins with, or nil if that is not well-formed. Some readers never look at
// what follows.
func Head(data []byte) []byte {
	s := begin(data)
	if s.value(0) != nil {
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

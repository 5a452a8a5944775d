package elastic

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Formats of a table in text.
const (
	textCSV     = "csv"
	textTSV     = "tsv"
	textRaw     = "raw" // OpenSearch's: divided by bars
	textAligned = "txt"
)

// textFormat returns the format of a table in text, and nothing for any other reply.
func textFormat(c adapters.Class) string {
	kind := contentType(c)
	format, _ := adapters.Last(c.Params, "format")
	switch {
	case strings.HasPrefix(kind, "text/csv"):
		return textCSV
	case strings.HasPrefix(kind, "text/tab-separated-values"):
		return textTSV
	case !strings.HasPrefix(kind, "text/plain") && !strings.HasPrefix(kind, "plain/text"):
		return ""
	case format == textCSV, format == textRaw:
		return format
	}
	return textAligned
}

// contentType returns the content type of a reply.
func contentType(c adapters.Class) string { return strings.Join(c.ReplyHeader["Content-Type"], "") }

// cleanText copies a table in text less our columns. A page of several stays as it is, since none but the first names the columns. So does a table
// without a header.
func cleanText(c adapters.Class, format string, dst io.Writer, src io.Reader) error {
	in, out := bufio.NewReaderSize(src, 64<<10), bufio.NewWriterSize(dst, 64<<10)
	kind := contentType(c)
	l := lines{in: in, separator: []byte(",")}
	cut := l.clean
	switch {
	case format == textTSV:
		l.separator, l.plain = []byte("\t"), true
	case format == textAligned:
		cut = func(out *bufio.Writer) error { return cleanAligned(in, out) }
	case strings.HasPrefix(kind, "text/csv"):
		if given, ok := adapters.Last(c.Params, "delimiter"); ok && utf8.RuneCountInString(given) == 1 {
			l.separator = []byte(given)
		}
	default:
		in = bufio.NewReaderSize(src, maxTable)
		f := flat{in: in, separator: map[string]byte{textCSV: ',', textRaw: '|'}[format]}
		cut = f.clean
	}
	var err error
	if len(c.ReplyHeader["Cursor"]) == 0 && !strings.Contains(c.Form, cursorMark) && !strings.Contains(kind, "header=absent") {
		err = cut(out)
	}
	if err == nil || errors.Is(err, errUnread) {
		_, err = io.Copy(out, in)
	} else if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, out.Flush())
}

// errUnread: what follows can't be read.
var errUnread = errors.New("the table can't be read")

// lines reads rows whose cells are divided by a character. A cell can be in quotes, unless plain says that none is.
type lines struct {
	in        *bufio.Reader
	separator []byte
	plain     bool

	row   []byte
	cells [][]byte
	end   int // where the row's end of line begins
}

// clean copies the table less our columns. A row that has not as many cells as there are columns is copied as it is.
func (l *lines) clean(out *bufio.Writer) error {
	err := l.next()
	if err != nil {
		return l.broken(out, err)
	}
	if width, ours := len(l.cells), oursAmong(l.cells); len(ours) > 0 {
		for ; err == nil; err = l.next() {
			if len(l.cells) != width {
				_, _ = out.Write(l.row)
				continue
			}
			writeCells(out, l.cells, ours, string(l.separator))
			_, _ = out.Write(l.row[l.end:])
		}
		return l.broken(out, err)
	}
	_, err = out.Write(l.row)
	return err
}

// broken copies what was read of a row that does not end.
func (l *lines) broken(out *bufio.Writer, err error) error {
	_, _ = out.Write(l.row)
	return err
}

// oursAmong returns which of the cells in a header name columns of ours.
func oursAmong(header [][]byte) (ours []int) {
	for i, name := range header {
		if rule.Our(string(bytes.Trim(name, `" `))) {
			ours = append(ours, i)
		}
	}
	return ours
}

// writeCells writes a row less some cells.
func writeCells(out *bufio.Writer, cells [][]byte, less []int, separator string) {
	first := true
	for i, cell := range cells {
		if slices.Contains(less, i) {
			continue
		}
		if !first {
			_, _ = out.WriteString(separator)
		}
		first = false
		_, _ = out.Write(cell)
	}
}

// next reads a row. With an error the row holds what was read of it. The last row may have no end of line.
func (l *lines) next() error {
	l.row, l.cells = l.row[:0], l.cells[:0]
	var starts []int
	begins, quoted, inside := true, false, false
	for {
		piece, err := l.in.ReadSlice('\n')
		at := len(l.row)
		l.row = append(l.row, piece...)
		for i, b := range piece {
			if begins {
				starts, quoted, begins = append(starts, at+i), b == '"' && !l.plain, false
				inside = quoted
				if quoted {
					continue
				}
			}
			switch {
			case b == '"' && quoted:
				inside = !inside
			case !inside && bytes.HasSuffix(l.row[:at+i+1], l.separator):
				begins = true
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(l.row) <= maxTable, err == nil && inside && len(l.row) <= maxTable:
			continue
		case err == nil && !inside, errors.Is(err, io.EOF) && len(l.row) > 0 && !inside:
			l.split(starts, begins)
			return nil
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
			return errUnread
		}
		return err
	}
}

// split cuts the row where its cells begin. begins says that another one begins at its end.
func (l *lines) split(starts []int, begins bool) {
	l.end = len(bytes.TrimSuffix(bytes.TrimSuffix(l.row, []byte("\n")), []byte("\r")))
	if begins {
		starts = append(starts, l.end)
	}
	for i, start := range starts {
		to := l.end
		if i+1 < len(starts) {
			to = starts[i+1] - len(l.separator)
		}
		l.cells = append(l.cells, l.row[min(start, to):to])
	}
}

// cleanAligned copies a table whose columns are as wide as their longest cell, less our columns. Widths are in characters of Java, which are
// those of UTF-16. A cell can have ends of lines in it, so a row ends where all columns do.
func cleanAligned(in *bufio.Reader, out *bufio.Writer) error {
	header, _ := in.ReadBytes('\n')
	dashes, _ := in.ReadBytes('\n')
	a := aligned{length: -1}
	for part := range bytes.SplitSeq(bytes.TrimSuffix(dashes, []byte("\n")), []byte("+")) {
		a.widths, a.length = append(a.widths, len(part)), a.length+len(part)+1
	}
	names := a.split(header)
	for i, name := range names {
		if len(bytes.Trim(dashes, "-+\n")) == 0 && rule.Our(string(bytes.TrimSpace(name))) {
			a.ours = append(a.ours, i)
		}
	}
	if len(a.ours) == 0 {
		_, _ = out.Write(header)
		_, err := out.Write(dashes)
		return err
	}
	a.write(out, names, "|")
	a.write(out, a.split(dashes), "+")
	for {
		row, err := a.read(in)
		cells := a.split(row)
		if cells == nil {
			_, _ = out.Write(row)
			return cmp.Or(err, errUnread)
		}
		a.write(out, cells, "|")
	}
}

// aligned is a table whose rows all have one length.
type aligned struct {
	widths []int
	length int
	ours   []int
}

// read reads a row with its end of line, or as much as there is of it.
func (a *aligned) read(in *bufio.Reader) (row []byte, err error) {
	for n := 0; n <= a.length; {
		r, size, err := in.ReadRune()
		if err != nil {
			return row, err
		}
		_ = in.UnreadRune()
		for range size {
			b, _ := in.ReadByte()
			row = append(row, b)
		}
		n += utf16.RuneLen(r)
	}
	return row, nil
}

// split cuts a row into its cells. It returns nil if the row is not of that length.
func (a *aligned) split(row []byte) (cells [][]byte) {
	rest := row
	for i, width := range a.widths {
		at := 0
		for n := 0; n < width; {
			r, size := utf8.DecodeRune(rest[at:])
			if size == 0 {
				return nil
			}
			at, n = at+size, n+utf16.RuneLen(r)
		}
		cells, rest = append(cells, rest[:at]), rest[at:]
		if last := i == len(a.widths)-1; len(rest) == 0 || last != (string(rest) == "\n") {
			return nil
		}
		rest = rest[1:]
	}
	return cells
}

// write writes a row less the cells of our columns.
func (a *aligned) write(out *bufio.Writer, cells [][]byte, between string) {
	writeCells(out, cells, a.ours, between)
	_ = out.WriteByte('\n')
}

package elastic

import (
	"bufio"
	"errors"
	"io"
)

// OpenSearch's CSV and raw format put a cell in quotes only if it has the separator in it, and double the quotes in such a cell
// (FlatResponseBase of its plugin sql). Any other cell is written as it is: it can begin with a quote, or have ends of lines in it. So one row can
// look like two.

// flat reads such rows.
type flat struct {
	in        *bufio.Reader // its size is how far is looked ahead
	separator byte

	ahead     []byte   // what in holds
	err       error    // of the last look behind that
	cells     [][2]int // where the cells of the row begin and end
	end, next int      // where its end of line begins and ends
	quoted    bool     // it has a cell in quotes
	within    bool     // it may begin within a cell
	slack     int      // how many more cells it has if those in quotes are not
	doubtful  bool     // it can be read in another way, with a cell for each column
}

// clean copies the table less our columns, up to the first row that can be read in two ways. A line that is a part of a row is copied as it is.
func (f *flat) clean(out *bufio.Writer) error {
	err := f.read(0)
	width, ours := len(f.cells), oursAmong(f.texts())
	for ; err == nil; err = f.read(width) {
		right := len(f.cells) == width
		switch {
		case len(ours) == 0, f.doubtful, f.quoted && !right:
			return errUnread
		case right:
			writeCells(out, f.texts(), ours, string(f.separator))
			_, _ = out.Write(f.ahead[f.end:f.next])
		default:
			_, _ = out.Write(f.ahead[:f.next])
		}
		_, _ = f.in.Discard(f.next)
		f.within = !right
	}
	if !errors.Is(err, errUnread) {
		_, _ = out.Write(f.ahead)
	}
	return err
}

// texts returns the cells of the row.
func (f *flat) texts() (texts [][]byte) {
	for _, cell := range f.cells {
		texts = append(texts, f.ahead[cell[0]:cell[1]])
	}
	return texts
}

// read finds the cells of the next row, and takes nothing of it.
func (f *flat) read(width int) error {
	f.cells, f.quoted, f.doubtful, f.slack, f.err = f.cells[:0], false, false, 0, nil
	f.ahead, _ = f.in.Peek(f.in.Buffered())
	if f.at(0) < 0 {
		return f.err
	}
	for from, to := 0, 0; ; from = to + 1 {
		end, ok := f.quotes(from, width)
		if !ok {
			for end = from; !f.ends(end); {
				end++
			}
		}
		to, f.quoted = end, f.quoted || ok
		if f.cells = append(f.cells, [2]int{from, to}); f.at(to) == int(f.separator) {
			continue
		}
		f.end, f.next = to, to
		for _, b := range "\r\n" {
			if f.at(f.next) == int(b) {
				f.next++
			}
		}
		if f.err != nil && !errors.Is(f.err, io.EOF) {
			return f.err
		}
		return nil
	}
}

// quotes returns where the cell in quotes that begins there ends, with spaces behind it. It returns false if no such cell begins there.
func (f *flat) quotes(from, width int) (end int, ok bool) {
	if f.at(from) != '"' {
		return 0, false
	}
	doubtful, inside, run := false, 0, from+1 // the separators in it, and where the last quotes in it begin
	for i := from + 1; ; i++ {
		switch b := f.at(i); {
		case b < 0:
			return 0, false
		case b == int(f.separator):
			inside++
		case b == '\n': // the end of the row, if this is no cell in quotes
			least := len(f.cells) + 1 + inside
			doubtful = doubtful || f.within || least <= width && width <= least+f.slack
		case b == '"':
			if f.at(i-1) != '"' {
				run = i
			}
			if f.at(i+1) == '"' {
				i++
				continue
			}
			before := f.at(run - 1) // here another cell in quotes may begin
			for i++; f.at(i) == ' '; {
				i++
			}
			if inside == 0 || !f.ends(i) {
				return 0, false
			}
			f.slack, f.doubtful = f.slack+inside, f.doubtful || doubtful || before == '\n' || before == int(f.separator)
			return i, true
		}
	}
}

// ends reports whether a cell may end there.
func (f *flat) ends(i int) bool {
	b := f.at(i)
	return b < 0 || b == '\n' || b == int(f.separator) || b == '\r' && f.at(i+1) == '\n'
}

// at returns a byte of what comes, -1 behind the last one or where that is too far.
func (f *flat) at(i int) int {
	for i >= len(f.ahead) {
		_, f.err = f.in.Peek(len(f.ahead) + 1)
		if f.ahead, _ = f.in.Peek(f.in.Buffered()); i < len(f.ahead) {
			break
		}
		if errors.Is(f.err, bufio.ErrBufferFull) {
			f.err = errUnread
		}
		if f.err != nil {
			return -1
		}
	}
	return int(f.ahead[i])
}

package elastic

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// OpenSearch's CSV and raw format put a cell in quotes only if it has the separator in it, and double the quotes in such a cell
// (FlatResponseBase of its plugin sql). Any other cell is written as it is: it can begin with a quote, or have ends of lines in it. So the same
// bytes can be read in several ways. A reading is dropped when a cell in a column of ours has not the form of our field.

// How many readings are followed at once, and how many cells one cuts before it is the only one. With more, the rest of the table stays as it is.
const maxReadings, maxCuts = 64, 512

// flat reads such rows.
type flat struct {
	in        *bufio.Reader // its size is how far is looked ahead
	separator byte

	ahead []byte   // what in holds
	err   error    // of the last look behind that
	names []string // of the columns
	ours  []int
}

// reading is one way to read what comes.
type reading struct {
	at, column int      // where the next cell begins, with the separator before it, and its column
	cuts       [][2]int // what is cut out before
}

// clean copies the table less our columns. A cell that is ours in one reading alone stays.
func (f *flat) clean(out *bufio.Writer) error {
	readings := []reading{f.header()}
	for len(f.ours) > 0 && len(readings) > 0 && len(readings) <= maxReadings && (f.err == nil || errors.Is(f.err, io.EOF)) {
		if len(readings) == 1 && readings[0].column == 0 {
			if f.write(out, &readings[0]); f.at(0) < 0 {
				break
			}
		}
		first := 0
		for i, r := range readings {
			if r.at < readings[first].at || r.at == readings[first].at && r.column < readings[first].column {
				first = i
			}
		}
		r := readings[first]
		readings = slices.Delete(readings, first, first+1)
		for _, next := range f.next(r) {
			if len(next.cuts) > maxCuts+len(f.ours) {
				return errUnread
			}
			readings = join(readings, next)
		}
	}
	if f.err == nil || errors.Is(f.err, io.EOF) {
		return errUnread
	}
	if !errors.Is(f.err, errUnread) {
		_, _ = out.Write(f.ahead)
	}
	return f.err
}

// join adds a reading. Two that go on alike become one, which cuts what both do.
func join(readings []reading, next reading) []reading {
	for i, r := range readings {
		if r.at == next.at && r.column == next.column {
			readings[i].cuts = slices.DeleteFunc(slices.Clone(r.cuts), func(cut [2]int) bool { return !slices.Contains(next.cuts, cut) })
			return readings
		}
	}
	return append(readings, next)
}

// write copies the rows that were read, less the cuts.
func (f *flat) write(out *bufio.Writer, r *reading) {
	from := 0
	for _, cut := range r.cuts {
		_, _ = out.Write(f.ahead[from:cut[0]])
		from = cut[1]
	}
	_, _ = out.Write(f.ahead[from:r.at])
	_, _ = f.in.Discard(r.at)
	f.ahead, r.at, r.cuts = f.ahead[r.at:], 0, nil
}

// header reads the names of the columns. One that begins with a quote counts as a cell in quotes.
func (f *flat) header() reading {
	var cells [][2]int
	for from := 0; ; {
		to, ok := f.quoted(from)
		if !ok {
			to = f.firstEnd(from)
		}
		cells = append(cells, [2]int{from, to})
		if from = to + 1; f.at(to) != int(f.separator) {
			break
		}
	}
	var texts [][]byte
	for _, cell := range cells {
		texts = append(texts, f.ahead[cell[0]:cell[1]])
		f.names = append(f.names, strings.TrimRight(strings.Trim(string(texts[len(texts)-1]), `" `), "."))
	}
	f.ours = oursAmong(texts)
	r := reading{}
	for _, cell := range cells {
		r = f.past(r, cell[1])
	}
	return r
}

// next returns how a reading can go on by one cell.
func (f *flat) next(r reading) (list []reading) {
	start, own, last := r.at+min(r.column, 1), slices.Contains(f.ours, r.column), r.column == len(f.names)-1
	var ends []int
	if to, ok := f.quoted(start); ok {
		ends = append(ends, to)
	}
	if own {
		ends = append(ends, f.firstEnd(start))
	} else {
		ends = append(ends, f.plain(start, last)...)
	}
	for _, to := range ends {
		divided := f.at(to) == int(f.separator)
		if divided != last && (!own || fitsOurs(f.names[r.column], f.ahead[start:to])) {
			list = append(list, f.past(r, to))
		}
	}
	return list
}

// past returns the reading behind its next cell, which ends there.
func (f *flat) past(r reading, to int) reading {
	if slices.Contains(f.ours, r.column) {
		cut := [2]int{r.at, to}
		if r.column < len(f.ours) && f.ours[r.column] == r.column { // all columns before are ours: the separator behind goes
			cut = [2]int{r.at + min(r.column, 1), to + min(1, len(f.names)-1-r.column)}
		}
		r.cuts = append(slices.Clip(r.cuts), cut)
	}
	r.at, r.column = to, r.column+1
	if r.column < len(f.names) {
		return r
	}
	for _, b := range "\r\n" {
		if f.at(r.at) == int(b) {
			r.at++
		}
	}
	r.column = 0
	return r
}

// firstEnd returns where the next separator or end of line is: the first place where a cell without quotes can end.
func (f *flat) firstEnd(from int) int {
	for !f.ends(from) {
		from++
	}
	return from
}

// plain returns where a cell without quotes can end: before the separator; the last one of a row at an end of line before that. Which of these
// it is matters only if the next row may begin with a cell in quotes.
func (f *flat) plain(from int, last bool) (ends []int) {
	to, line := from, -1
	for ; f.at(to) >= 0 && f.at(to) != int(f.separator); to++ {
		if f.at(to) == '\n' {
			if line = to; f.at(to+1) == '"' {
				ends = append(ends, to)
			}
		}
	}
	switch {
	case !last, f.at(to) < 0:
		return []int{to}
	case line >= 0 && !slices.Contains(ends, line):
		ends = append(ends, line)
	}
	return ends
}

// quoted returns where the cell in quotes that begins there ends, with spaces behind it. It returns false if no such cell begins there.
func (f *flat) quoted(from int) (end int, ok bool) {
	if f.at(from) != '"' {
		return 0, false
	}
	divided := false
	for i := from + 1; ; i++ {
		switch b := f.at(i); {
		case b < 0:
			return 0, false
		case b == int(f.separator):
			divided = true
		case b == '"' && f.at(i+1) == '"':
			i++
		case b == '"':
			for i++; f.at(i) == ' '; {
				i++
			}
			return i, divided && f.ends(i)
		}
	}
}

var bandsForm, clusterForm = regexp.MustCompile(`^'?[-\[\]\d, ]+$`), regexp.MustCompile(`^_[0-9a-v]{16}$`)

// fitsOurs reports whether a cell has the form of our field.
func fitsOurs(name string, cell []byte) bool {
	cell = bytes.Trim(cell, `" `)
	switch {
	case len(cell) == 0, string(cell) == "null":
		return true
	case name == rule.BandsField:
		return bandsForm.Match(cell)
	case name == rule.ClusterField:
		return clusterForm.Match(cell)
	}
	err := new(sketch.Sketch).UnmarshalText(cell)
	return err == nil || errors.Is(err, sketch.ErrVersion) && bytes.HasPrefix(cell, []byte("AQ")) // version 1
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

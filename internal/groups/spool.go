// Package groups shows the near-duplicates of an index on a page. It lists the groups that package cleanup finds, shows what differs in a group, stores
// what a person decides about a pair, and offers the clean-up plan for download.
//
// It scales to a million documents: the groups are in a temporary file, with 16 bytes of memory for each. The texts of a group are read from the
// engine when a person opens it.
package groups

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/jobs/cleanup"
)

// spool keeps the groups in a temporary file, one a line.
type spool struct {
	file *os.File
	out  *bufio.Writer
	at   int64
	list []entry
	// fields are the names of the short fields of documents that stay.
	fields []string
}

// entry is a group in memory.
type entry struct {
	at    int64
	size  uint32  // documents
	least float32 // agreement with the one that stays
}

// mostFields is how many fields the filter offers at most.
const mostFields = 50

func newSpool(dir string) (*spool, error) {
	file, err := os.CreateTemp(dir, "neardup-groups")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // where the system allows it, the file vanishes with the process
	return &spool{file: file, out: bufio.NewWriterSize(file, 1<<20)}, nil
}

// close frees the file.
func (s *spool) close() {
	_ = s.file.Close()
	_ = os.Remove(s.file.Name())
}

// add appends a group.
func (s *spool) add(g cleanup.Group) error {
	line, err := json.Marshal(g)
	if err != nil {
		return err
	}
	e := entry{at: s.at, size: uint32(1 + len(g.Goes)), least: math.MaxFloat32}
	for _, m := range g.Goes {
		e.least = min(e.least, float32(m.Agreement))
	}
	s.list = append(s.list, e)
	s.at += int64(len(line)) + 1
	if len(s.fields) < mostFields {
		for _, f := range g.Stays.Fields {
			if !slices.Contains(s.fields, f.Name) {
				s.fields = append(s.fields, f.Name)
			}
		}
	}
	_, err = s.out.Write(append(line, '\n'))
	return err
}

// read returns a group by its number.
func (s *spool) read(n int) (g cleanup.Group, err error) {
	if err := s.out.Flush(); err != nil {
		return g, err
	}
	line, err := bufio.NewReaderSize(io.NewSectionReader(s.file, s.list[n].at, s.at-s.list[n].at), 4<<10).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &g)
	}
	return g, err
}

// each yields the groups that pass a filter, with their numbers.
func (s *spool) each(f Filter, yield func(n int, g cleanup.Group) error) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, s.at), 1<<20)
	quick := f.quick()
	for n := range s.list {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		if quick != nil && !bytes.Contains(line, quick) {
			continue
		}
		var g cleanup.Group
		if err := json.Unmarshal(line, &g); err != nil {
			return err
		}
		if !f.passes(&g) {
			continue
		}
		if err := yield(n, g); err != nil {
			return err
		}
	}
	return nil
}

// Filter passes a group if one of its documents fits.
type Filter struct {
	// A document fits if its Field is Value. Without a Field, any of its short fields may hold Value. Without either, all documents fit.
	Field string `json:"field"`
	Value string `json:"value"`
	// From and To bound the date: From is included, To is not. Empty means no bound.
	From string `json:"from"`
	To   string `json:"to"`
	// DateField is the field that holds the date.
	DateField string `json:"-"`
}

func (f Filter) empty() bool { return f.Field == "" && f.Value == "" && f.From == "" && f.To == "" }

// quick returns bytes that occur in the line of every group that passes, so that each need not parse lines without them. Nil means that each must
// parse every line.
func (f Filter) quick() []byte {
	if f.Field == "" { // only dates are bounded, or any field may hold the value
		return nil
	}
	name, _ := json.Marshal(f.Field) // a string always can be
	if json.Valid([]byte(f.Value)) { // a number can be written in several ways
		return name
	}
	value, _ := json.Marshal(f.Value)
	field, _ := json.Marshal(cleanup.Field{Name: f.Field, Value: value})
	return field
}

// passes reports whether the filter passes a group.
func (f Filter) passes(g *cleanup.Group) bool {
	if f.empty() || f.fits(&g.Stays) {
		return true
	}
	return slices.ContainsFunc(g.Goes, func(m cleanup.Member) bool { return f.fits(&m) })
}

// fits reports whether a document fits.
func (f Filter) fits(m *cleanup.Member) bool {
	if (f.Field != "" || f.Value != "") && !slices.ContainsFunc(m.Fields, func(v cleanup.Field) bool {
		return (f.Field == "" || v.Name == f.Field) && (v.Text() == f.Value || string(v.Value) == f.Value)
	}) {
		return false
	}
	if f.From == "" && f.To == "" {
		return true
	}
	at, dated := dateOf(m, f.DateField)
	from, bound := number(cleanup.Milliseconds(f.From))
	to, bound2 := number(cleanup.Milliseconds(f.To))
	return dated && (!bound || at >= from) && (!bound2 || at < to)
}

func dateOf(m *cleanup.Member, field string) (at int64, ok bool) {
	for _, v := range m.Fields {
		if v.Name == field {
			return number(cleanup.Milliseconds(v.Text()))
		}
	}
	return 0, false
}

func number(digits string, ok bool) (int64, bool) {
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && err == nil
}

// Order is how groups are listed.
type Order string

// The orders: largest groups first, or lowest agreement first, which is nearest to the threshold.
const (
	Largest Order = "largest"
	Nearest Order = "nearest"
)

// sorted puts groups in an order.
func (s *spool) sorted(list []uint32, order Order) {
	slices.SortFunc(list, func(a, b uint32) int {
		x, y := s.list[a], s.list[b]
		if order == Nearest {
			return cmp.Or(cmp.Compare(x.least, y.least), cmp.Compare(a, b))
		}
		return cmp.Or(cmp.Compare(y.size, x.size), cmp.Compare(a, b))
	})
}

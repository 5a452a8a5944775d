package cluster

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"unsafe"
)

// sorter sorts any number of rows in bounded memory: it sorts as many as fit, writes each such run to a file, and merges the
// runs.
type sorter[R row] struct {
	scratch *scratch
	// most is how many rows are held in memory.
	most int
	// sum adds up the second numbers of rows of one first number, so that each first number comes once.
	sum  bool
	held []R
	file *os.File
	// ends are where in the file the runs end.
	ends []int64
}

// size is how many bytes a row takes.
func (s *sorter[R]) size() int { return int(unsafe.Sizeof(*new(R))) }

// leastHeld is how many rows are held however little memory there is to be.
const leastHeld = 1 << 12

func newSorter[R row](scratch *scratch, memory int64, sum bool) *sorter[R] {
	s := &sorter[R]{scratch: scratch, sum: sum}
	s.most = max(leastHeld, int(memory)/s.size())
	return s
}

func (s *sorter[R]) add(row R) error {
	if len(s.held) == cap(s.held) {
		if err := s.grow(); err != nil {
			return err
		}
	}
	s.held = append(s.held, row)
	return nil
}

// grow makes room for one more row at least.
func (s *sorter[R]) grow() error {
	if len(s.held) < s.most {
		s.held = append(make([]R, 0, min(s.most, max(leastHeld, 2*cap(s.held)))), s.held...)
		return nil
	}
	sortRows(s.held, 56)
	if s.sum {
		last := 0
		for _, p := range s.held[1:] {
			if p[0] == s.held[last][0] {
				s.held[last][1] += p[1]
				continue
			}
			last++
			s.held[last] = p
		}
		if s.held = s.held[:last+1]; len(s.held) <= s.most/2 { // that made room enough
			return nil
		}
	}
	return s.spill()
}

// spill writes what is held, which is sorted, as a run.
func (s *sorter[R]) spill() (err error) {
	end := int64(0)
	if s.file != nil {
		end = s.ends[len(s.ends)-1]
	} else if s.file, err = s.scratch.create(); err != nil {
		return err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(s.file, end), writeSize)
	for _, p := range s.held {
		raw := w.AvailableBuffer()
		for i := 0; i < len(p); i++ {
			raw = binary.LittleEndian.AppendUint64(raw, p[i])
		}
		_, err = w.Write(raw)
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		return s.scratch.failed(err)
	}
	s.ends = append(s.ends, end+int64(s.size())*int64(len(s.held)))
	s.held = s.held[:0]
	return nil
}

// looksEvery is after how many steps a long loop looks whether it is to end.
const looksEvery = 1 << 16

// each visits all rows in order and frees the sorter.
func (s *sorter[R]) each(ctx context.Context, yield func(R) error) error {
	defer s.free()
	sortRows(s.held, 56)
	runs := []*run[R]{{held: s.held}}
	size := min(max(s.size()*s.most/(len(s.ends)+1), 4<<10), 64<<10)
	start := int64(0)
	for _, end := range s.ends {
		runs = append(runs, &run[R]{src: bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), size)})
		start = end
	}
	for at := len(runs) - 1; at >= 0; at-- { // runs becomes a heap: the least is the first
		var err error
		if runs, err = advance(runs, at); err != nil {
			return s.scratch.failed(err)
		}
	}
	var last R
	some := false
	for steps := 0; len(runs) > 0; steps++ {
		if steps%looksEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p := runs[0].row
		if s.sum && some && last[0] == p[0] {
			last[1] += p[1]
		} else {
			if some {
				if err := yield(last); err != nil {
					return err
				}
			}
			last, some = p, true
		}
		var err error
		if runs, err = advance(runs, 0); err != nil {
			return s.scratch.failed(err)
		}
	}
	if some {
		return yield(last)
	}
	return ctx.Err()
}

func (s *sorter[R]) free() {
	_ = s.file.Close()
	s.held, s.file = nil, nil
}

// run is one sorted run as it is read: from memory, or from a file.
type run[R row] struct {
	row  R
	held []R
	src  *bufio.Reader
}

// next reads the run's next row, and returns [io.EOF] at its end.
func (r *run[R]) next() error {
	if r.src == nil {
		if len(r.held) == 0 {
			return io.EOF
		}
		r.row, r.held = r.held[0], r.held[1:]
		return nil
	}
	raw, err := r.src.Peek(8 * len(r.row))
	if len(raw) < 8*len(r.row) {
		return err
	}
	for i := 0; i < len(r.row); i++ {
		r.row[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	_, err = r.src.Discard(len(raw))
	return err
}

// advance goes to the next row of a run in the heap and moves the run down to its place, or drops it at its end.
func advance[R row](runs []*run[R], at int) ([]*run[R], error) {
	if err := runs[at].next(); err == io.EOF {
		runs[at] = runs[len(runs)-1]
		runs = runs[:len(runs)-1]
	} else if err != nil {
		return runs, err
	}
	for at < len(runs) {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(runs); child++ {
			if compareRows(runs[child].row, runs[least].row) < 0 {
				least = child
			}
		}
		if least == at {
			break
		}
		runs[at], runs[least] = runs[least], runs[at]
		at = least
	}
	return runs, nil
}

package cluster

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"os"
)

const pairSize = 16

// sorter sorts any number of pairs in bounded memory: it sorts as many as fit, writes each such run to a file, and merges the
// runs.
type sorter struct {
	scratch *scratch
	// most is how many pairs are held in memory.
	most int
	// sum adds up the lo of pairs of one hi, so that each hi comes once.
	sum  bool
	held []pair
	file *os.File
	// ends are where in the file the runs end.
	ends []int64
}

// leastHeld is how many pairs are held however little memory there is to be.
const leastHeld = 1 << 12

func newSorter(s *scratch, memory int64, sum bool) *sorter {
	return &sorter{scratch: s, most: max(leastHeld, int(memory/pairSize)), sum: sum}
}

func (s *sorter) add(hi, lo uint64) error {
	if len(s.held) == cap(s.held) {
		if err := s.grow(); err != nil {
			return err
		}
	}
	s.held = append(s.held, pair{hi, lo})
	return nil
}

// grow makes room for one more pair at least.
func (s *sorter) grow() error {
	if len(s.held) < s.most {
		s.held = append(make([]pair, 0, min(s.most, max(leastHeld, 2*cap(s.held)))), s.held...)
		return nil
	}
	s.settle()
	if len(s.held) <= s.most/2 { // adding up made room enough
		return nil
	}
	return s.spill()
}

// settle sorts what is held, and adds it up.
func (s *sorter) settle() {
	sortPairs(s.held)
	if !s.sum || len(s.held) == 0 {
		return
	}
	last := 0
	for _, p := range s.held[1:] {
		if p.hi == s.held[last].hi {
			s.held[last].lo += p.lo
			continue
		}
		last++
		s.held[last] = p
	}
	s.held = s.held[:last+1]
}

// spill writes what is held, which is settled, as a run.
func (s *sorter) spill() error {
	end := int64(0)
	if s.file == nil {
		file, err := s.scratch.create()
		if err != nil {
			return err
		}
		s.file = file
	} else {
		end = s.ends[len(s.ends)-1]
	}
	room := make([]byte, 0, min(1<<20, pairSize*len(s.held)))
	for i, p := range s.held {
		room = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(room, p.hi), p.lo)
		if len(room) == cap(room) || i == len(s.held)-1 {
			if _, err := s.file.WriteAt(room, end); err != nil {
				return s.scratch.failed(err)
			}
			end += int64(len(room))
			room = room[:0]
		}
	}
	s.ends = append(s.ends, end)
	s.held = s.held[:0]
	return nil
}

// looksEvery is after how many steps a long loop looks whether it is to end.
const looksEvery = 1 << 16

// each visits all pairs in order and frees the sorter.
func (s *sorter) each(ctx context.Context, yield func(pair) error) error {
	defer s.free()
	s.settle()
	if s.file == nil {
		for i, p := range s.held {
			if i%looksEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := yield(p); err != nil {
				return err
			}
		}
		return nil
	}
	if len(s.held) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.held = nil
	return s.merge(ctx, yield)
}

func (s *sorter) free() {
	s.scratch.release(s.file)
	s.held, s.file = nil, nil
}

// run is one sorted run as it is read.
type run struct {
	pair
	src *bufio.Reader
}

// next reads the run's next pair, and reports false at its end.
func (r *run) next() (bool, error) {
	raw, err := r.src.Peek(pairSize)
	if len(raw) < pairSize {
		if err == io.EOF {
			err = nil
		}
		return false, err
	}
	r.hi, r.lo = binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[8:])
	_, err = r.src.Discard(pairSize)
	return true, err
}

// merge visits the pairs of all runs in order.
func (s *sorter) merge(ctx context.Context, yield func(pair) error) error {
	size := min(max(pairSize*s.most/len(s.ends), 4<<10), 1<<20)
	var runs []*run // a heap: the least is the first
	start := int64(0)
	for _, end := range s.ends {
		r := &run{src: bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), size)}
		start = end
		if more, err := r.next(); err != nil {
			return s.scratch.failed(err)
		} else if more {
			runs = append(runs, r)
		}
	}
	for i := len(runs)/2 - 1; i >= 0; i-- {
		sink(runs, i)
	}
	var last pair
	held := false
	for steps := 0; len(runs) > 0; steps++ {
		if steps%looksEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p := runs[0].pair
		switch {
		case s.sum && held && last.hi == p.hi:
			last.lo += p.lo
		default:
			if held {
				if err := yield(last); err != nil {
					return err
				}
			}
			last, held = p, true
		}
		more, err := runs[0].next()
		if err != nil {
			return s.scratch.failed(err)
		}
		if !more {
			runs[0] = runs[len(runs)-1]
			runs = runs[:len(runs)-1]
		}
		sink(runs, 0)
	}
	if held {
		return yield(last)
	}
	return nil
}

// sink moves a run down to its place.
func sink(runs []*run, at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(runs); child++ {
			if comparePairs(runs[child].pair, runs[least].pair) < 0 {
				least = child
			}
		}
		if least == at {
			return
		}
		runs[at], runs[least] = runs[least], runs[at]
		at = least
	}
}

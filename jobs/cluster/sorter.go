package cluster

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
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
	sortPairs(s.held, 56)
	if s.sum {
		last := 0
		for _, p := range s.held[1:] {
			if p.hi == s.held[last].hi {
				s.held[last].lo += p.lo
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
func (s *sorter) spill() (err error) {
	end := int64(0)
	if s.file != nil {
		end = s.ends[len(s.ends)-1]
	} else if s.file, err = s.scratch.create(); err != nil {
		return err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(s.file, end), writeSize)
	for _, p := range s.held {
		_, err = w.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), p.hi), p.lo))
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		return s.scratch.failed(err)
	}
	s.ends = append(s.ends, end+pairSize*int64(len(s.held)))
	s.held = s.held[:0]
	return nil
}

// looksEvery is after how many steps a long loop looks whether it is to end.
const looksEvery = 1 << 16

// each visits all pairs in order and frees the sorter.
func (s *sorter) each(ctx context.Context, yield func(pair) error) error {
	defer s.free()
	sortPairs(s.held, 56)
	runs := []*run{{held: s.held}}
	size := min(max(pairSize*s.most/(len(s.ends)+1), 4<<10), 64<<10)
	start := int64(0)
	for _, end := range s.ends {
		runs = append(runs, &run{src: bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), size)})
		start = end
	}
	for at := len(runs) - 1; at >= 0; at-- { // runs becomes a heap: the least is the first
		var err error
		if runs, err = advance(runs, at); err != nil {
			return s.scratch.failed(err)
		}
	}
	var last pair
	some := false
	for steps := 0; len(runs) > 0; steps++ {
		if steps%looksEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p := runs[0].pair
		if s.sum && some && last.hi == p.hi {
			last.lo += p.lo
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

func (s *sorter) free() {
	_ = s.file.Close()
	s.held, s.file = nil, nil
}

// run is one sorted run as it is read: from memory, or from a file.
type run struct {
	pair
	held []pair
	src  *bufio.Reader
}

// next reads the run's next pair, and returns [io.EOF] at its end.
func (r *run) next() error {
	if r.src == nil {
		if len(r.held) == 0 {
			return io.EOF
		}
		r.pair, r.held = r.held[0], r.held[1:]
		return nil
	}
	raw, err := r.src.Peek(pairSize)
	if len(raw) < pairSize {
		return err
	}
	r.hi, r.lo = binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[8:])
	_, err = r.src.Discard(pairSize)
	return err
}

// advance goes to the next pair of a run in the heap and moves the run down to its place, or drops it at its end.
func advance(runs []*run, at int) ([]*run, error) {
	if err := runs[at].next(); err == io.EOF {
		runs[at] = runs[len(runs)-1]
		runs = runs[:len(runs)-1]
	} else if err != nil {
		return runs, err
	}
	for at < len(runs) {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(runs); child++ {
			if comparePairs(runs[child].pair, runs[least].pair) < 0 {
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

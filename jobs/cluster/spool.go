package cluster

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
)

// ErrTemporary is within every error of a temporary file: no room, no right to write, no such directory.
var ErrTemporary = errors.New("temporary file")

// scratch makes temporary files in one directory.
type scratch struct {
	dir   string
	kept  bool       // the directory is that of [Corpus.Resume]
	mu    sync.Mutex // guards what follows
	files []*os.File
	names []string // of those that could not be removed while open
}

// create opens a new file, which is removed at once where the system lets it.
func (s *scratch) create() (*os.File, error) {
	f, err := os.CreateTemp(s.dir, "neardup-*.tmp")
	if err != nil {
		return nil, s.failed(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, f)
	if os.Remove(f.Name()) != nil {
		s.names = append(s.names, f.Name())
	}
	return f, nil
}

func (s *scratch) failed(err error) error {
	if s.kept {
		return fmt.Errorf("%w in %s: %w", ErrSaved, s.dir, err)
	}
	dir := s.dir
	if dir == "" {
		dir = os.TempDir()
	}
	return fmt.Errorf("%w in %s: %w", ErrTemporary, dir, err)
}

// close gives everything back.
func (s *scratch) close() {
	for _, f := range s.files {
		_ = f.Close() // again, perhaps
	}
	for _, name := range s.names {
		_ = os.Remove(name)
	}
	s.files, s.names = nil, nil
}

// spool is a list of records of bytes: in memory up to a limit, then all of it in a file. It is filled first, then sealed, then
// read by any number of goroutines.
type spool struct {
	scratch *scratch
	limit   int    // bytes kept in memory
	held    []byte // what is in memory
	file    *os.File
	stored  int64 // bytes in the file alone, from its beginning
	written int64 // bytes in the file
	records int
	// starts are where each inChunk records begin, ends how far from there each of them ends. That takes 4 bytes a record, and none is moved
	// while they become more.
	starts []int64
	ends   [][]uint32
}

// writeSize is how many bytes are written to the file at a time.
const writeSize = 1 << 20

// add appends a record.
func (s *spool) add(record []byte) error {
	size := len(s.held) + len(record)
	if s.stored == 0 && size > s.limit || s.stored > 0 && size > writeSize {
		if err := s.flush(); err != nil {
			return err
		}
	} else if s.stored == 0 && size > cap(s.held) { // append would take more than the limit
		s.held = append(make([]byte, 0, min(s.limit, 2*size)), s.held...)
	}
	if s.records%inChunk == 0 {
		s.starts = append(s.starts, s.stored+int64(len(s.held)))
		s.ends = append(s.ends, make([]uint32, 0, inChunk))
	}
	s.held = append(s.held, record...)
	chunk := s.records / inChunk
	end := s.stored + int64(len(s.held)) - s.starts[chunk]
	if end > math.MaxUint32 {
		return fmt.Errorf("%d records in a row have more than 4 GB", inChunk)
	}
	s.ends[chunk] = append(s.ends[chunk], uint32(end))
	s.records++
	return nil
}

// flush moves what is held to the file.
func (s *spool) flush() error {
	if err := s.write(); err != nil {
		return err
	}
	s.stored += int64(len(s.held))
	s.held = make([]byte, 0, writeSize)
	return nil
}

// write writes what is held to the file, as far as it is not there.
func (s *spool) write() (err error) {
	if s.file == nil {
		if s.file, err = s.scratch.create(); err != nil {
			return err
		}
	}
	end := s.stored + int64(len(s.held))
	if end <= s.written {
		return nil
	}
	if _, err := s.file.WriteAt(s.held[s.written-s.stored:], s.written); err != nil {
		return s.scratch.failed(err)
	}
	s.written = end
	return nil
}

// seal ends the filling.
func (s *spool) seal() error {
	if s.stored == 0 {
		return nil
	}
	return s.flush()
}

// start is where a record begins.
func (s *spool) start(record int) int64 {
	if record == 0 {
		return 0
	}
	chunk, at := (record-1)/inChunk, (record-1)%inChunk
	return s.starts[chunk] + int64(s.ends[chunk][at])
}

// read returns the bytes of the records from one to before another: the spool's own, or as many as fit into room, which may grow.
func (s *spool) read(from, to int, room []byte) ([]byte, error) {
	start, end := s.start(from), s.start(to)
	if s.stored == 0 {
		return s.held[start:end:end], nil
	}
	room = slices.Grow(room[:0], int(end-start))[:end-start]
	if _, err := s.file.ReadAt(room, start); err != nil {
		return nil, s.scratch.failed(err)
	}
	return room, nil
}

// free gives the room back.
func (s *spool) free() {
	_ = s.file.Close()
	s.held, s.starts, s.ends = nil, nil, nil
}

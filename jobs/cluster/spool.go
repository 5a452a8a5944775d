package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// ErrTemporary is behind every failure of a temporary file: no room, no right to write, no such directory.
var ErrTemporary = errors.New("temporary file")

// scratch makes temporary files in one directory.
type scratch struct {
	dir   string
	mu    sync.Mutex
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
	dir := s.dir
	if dir == "" {
		dir = os.TempDir()
	}
	return fmt.Errorf("%w in %s: %w", ErrTemporary, dir, err)
}

// release closes a file and gives its room back.
func (s *scratch) release(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}

// close gives everything back.
func (s *scratch) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		_ = f.Close() // again, perhaps
	}
	for _, name := range s.names {
		_ = os.Remove(name)
	}
	s.files, s.names = nil, nil
}

// spool is a list of records of bytes: in memory up to a limit, then all of it in a file. No record lies across two chunks. It is
// filled first, then sealed, then read by any number of goroutines.
type spool struct {
	scratch *scratch
	chunk   int   // bytes
	limit   int64 // bytes kept in memory
	chunks  [][]byte
	last    []byte // the chunk that is being filled
	file    *os.File
	stored  int64 // bytes in the file
}

func newSpool(s *scratch, chunk int, limit int64) *spool {
	return &spool{scratch: s, chunk: chunk, limit: limit}
}

// add appends a record and returns where it stands. It must be no longer than a chunk.
func (s *spool) add(record []byte) (int64, error) {
	if len(s.last)+len(record) > s.chunk {
		if err := s.turn(); err != nil {
			return 0, err
		}
	}
	if s.last == nil {
		s.last = make([]byte, 0, s.chunk)
	}
	at := s.stored + int64(len(s.chunks))*int64(s.chunk) + int64(len(s.last))
	s.last = append(s.last, record...)
	return at, nil
}

// turn puts the last chunk where it belongs and begins the next.
func (s *spool) turn() error {
	if s.file == nil && int64(len(s.chunks)+1)*int64(s.chunk) <= s.limit {
		s.chunks, s.last = append(s.chunks, s.last), nil
		return nil
	}
	if s.file == nil {
		file, err := s.scratch.create()
		if err != nil {
			return err
		}
		s.file = file
		for _, chunk := range s.chunks {
			if err := s.store(chunk); err != nil {
				return err
			}
		}
		s.chunks = nil
	}
	err := s.store(s.last)
	s.last = s.last[:0]
	return err
}

// store writes a chunk to the file, at its full length.
func (s *spool) store(chunk []byte) error {
	if _, err := s.file.WriteAt(chunk[:cap(chunk)], s.stored); err != nil {
		return s.scratch.failed(err)
	}
	s.stored += int64(s.chunk)
	return nil
}

// seal ends the filling.
func (s *spool) seal() error {
	if len(s.last) == 0 {
		return nil
	}
	if s.file == nil {
		s.chunks, s.last = append(s.chunks, s.last), nil
		return nil
	}
	return s.turn()
}

// whole reports whether all of it is in memory.
func (s *spool) whole() bool { return s.file == nil }

// length is how many chunks there are.
func (s *spool) length() int { return len(s.chunks) + int(s.stored/int64(s.chunk)) }

// read returns up to n bytes at a place, within its chunk: a part of the spool's memory, or of room, which has n bytes.
func (s *spool) read(at int64, n int, room []byte) ([]byte, error) {
	if s.file == nil {
		chunk, from := s.chunks[at/int64(s.chunk)], int(at%int64(s.chunk))
		return chunk[from:min(from+n, len(chunk))], nil
	}
	n, err := s.file.ReadAt(room[:min(int64(n), s.stored-at)], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, s.scratch.failed(err)
	}
	return room[:n], nil
}

// free gives the room back.
func (s *spool) free() {
	s.scratch.release(s.file)
	s.chunks, s.last = nil, nil
}

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

const (
	// untimed is how much of a body is read without a timeout: about what the connection buffers. Most searches are shorter, and cost no timer.
	untimed = 16 << 10
	// leastPaced bytes of the rest of a body that is held, or all that is left of it, must come within each paceTime.
	paceTime, leastPaced = 2 * time.Second, 32 << 10
	// bodyTime bounds the time for the whole body.
	bodyTime = 30 * time.Second
)

var (
	// errBrokenOff: the client's body ended early.
	errBrokenOff = errors.New("the client broke off")
	// errSlow: a client's body comes too slowly to be held in memory.
	errSlow = fmt.Errorf("the body comes too slowly: %w", errBusy)
)

// readBody reads the body of a client up to n bytes, and says whether that is all of it. length is its Content-Length, -1 for none. With errBusy
// there is no memory for more than what is returned. With errSlow, which is an errBusy, the body comes too slowly. In both cases the rest is still to
// be read: see onwardsFrom.
func (t *hold) readBody(r io.Reader, n, length int64) (head []byte, whole bool, err error) {
	if body, ok := r.(*source); ok {
		r = &timed{source: body}
	}
	return t.read(r, n, length, untimed, 0)
}

// source is a client's body. Its errors are marked as the client's, and they last: net/http's own body, read once more after it broke off, ends as
// if it were whole.
type source struct {
	io.ReadCloser
	err    error
	ended  atomic.Bool
	waited *atomic.Int64 // nanoseconds
	late   *late         // nil if no read runs
}

// late is a read of a body that took longer than it may, and still runs.
type late struct {
	piece []byte
	n     int
	err   error
	done  chan struct{}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) { return s.within(p, nil) }

// within reads until the time is up. Then it returns errSlow, and the next call returns what comes.
func (s *source) within(p []byte, up <-chan time.Time) (n int, err error) {
	if s.err != nil {
		return 0, s.err
	}
	defer spend(s.waited, clock())
	if s.late == nil && up == nil {
		n, err = s.ReadCloser.Read(p)
		return n, s.came(err)
	}
	if s.late == nil {
		l := &late{piece: copyBuffers.Get(), done: make(chan struct{})}
		go func() {
			l.n, l.err = s.ReadCloser.Read(l.piece[:min(len(p), len(l.piece))])
			close(l.done)
		}()
		s.late = l
	}
	l := s.late
	select {
	case <-l.done:
	case <-up:
		return 0, errSlow
	}
	if n = copy(p, l.piece[:l.n]); n < l.n {
		l.n = copy(l.piece, l.piece[n:l.n])
		return n, nil
	}
	s.late = nil
	copyBuffers.Put(l.piece)
	return n, s.came(l.err)
}

// came remembers and returns the error of a read.
func (s *source) came(err error) error {
	if err != nil && err != io.EOF {
		err = errors.Join(errBrokenOff, err)
	}
	if s.err = err; err != nil {
		s.ended.Store(true)
	}
	return err
}

// timed reads a client's body into memory until that takes too long.
type timed struct {
	*source
	n     int       // how much was read
	start time.Time // when the timeouts began
	mark  time.Time // when the pace was kept last,
	had   int       // and how much had been read then
}

// Read implements io.Reader. After errSlow the body itself goes on where this reader ended.
func (t *timed) Read(p []byte) (n int, err error) {
	defer func() { t.n += n }()
	if t.n < untimed {
		return t.source.Read(p[:min(len(p), untimed-t.n)])
	}
	now := time.Now()
	if t.start.IsZero() {
		t.start = now
	}
	if t.mark.IsZero() || t.n-t.had >= leastPaced {
		t.mark, t.had = now, t.n
	}
	left := min(paceTime-now.Sub(t.mark), bodyTime-now.Sub(t.start))
	if left <= 0 {
		return 0, errSlow
	}
	return t.within(p, time.After(left))
}

// spent is the head of a body, whose memory is released once it was read.
type spent struct {
	hold *hold
	room int64
	head bytes.Reader
}

// onwardsFrom returns the whole of a body whose head was read, to be sent on while the rest comes.
func (t *hold) onwardsFrom(head []byte, rest io.ReadCloser) io.ReadCloser {
	s := &spent{hold: t, room: int64(cap(head))}
	s.head.Reset(head)
	return readCloser{io.MultiReader(s, rest), rest}
}

// Read implements io.Reader.
func (s *spent) Read(p []byte) (int, error) {
	n, err := s.head.Read(p)
	if errors.Is(err, io.EOF) {
		s.head.Reset(nil)
		s.hold.give(s.room)
		s.room = 0
	}
	return n, err
}

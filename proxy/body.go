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
	// untimed is how much of a body may take as long as its client likes: about what the connection takes by itself. Most searches are
	// shorter, and cost no timer.
	untimed = 16 << 10
	// paceTime is in which time leastPaced bytes must come of the rest of a body for which room is held, or all that is left of it.
	paceTime, leastPaced = 2 * time.Second, 32 << 10
	// bodyTime is how long all of the body may take.
	bodyTime = 30 * time.Second
)

var (
	// errBrokenOff: the client's body ended before it was whole.
	errBrokenOff = errors.New("the client broke off")
	// errSlow: less of a client's body comes than is worth holding room for.
	errSlow = fmt.Errorf("the body comes too slowly: %w", errBusy)
)

// readBody reads the body of a client up to n bytes, and says whether that is all there is. length is how long the client says it is, -1 for
// nothing said. With errBusy there is no room for more than what is returned. With errSlow, which is an errBusy, too little comes. In both
// cases what follows is still to be read: see onwardsFrom.
func (t *hold) readBody(r io.Reader, n, length int64) (head []byte, whole bool, err error) {
	if body, ok := r.(*source); ok {
		r = &timed{source: body}
	}
	return t.read(r, n, length, untimed)
}

// source is a client's body. Its errors say whose fault they are, and they last: net/http's own body, read once more after it broke
// off, ends as if it were whole.
type source struct {
	io.ReadCloser
	err    error
	ended  atomic.Bool
	waited *atomic.Int64 // nanoseconds
	late   *late         // nil for none
}

// late is a piece of a body that is still being read.
type late struct {
	piece []byte
	n     int
	err   error
	done  chan struct{}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) { return s.within(p, nil) }

// within reads, but for no longer than until the time is up: then it is errSlow, and the next reading has what comes.
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
		l := &late{piece: pieces.Get(), done: make(chan struct{})}
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
	pieces.Put(l.piece)
	return n, s.came(l.err)
}

// came takes the error of a reading.
func (s *source) came(err error) error {
	if err != nil && err != io.EOF {
		err = errors.Join(errBrokenOff, err)
	}
	if s.err = err; err != nil {
		s.ended.Store(true)
	}
	return err
}

// timed reads a client's body for which room is held, until it takes too long.
type timed struct {
	*source
	n     int       // how much was read
	start time.Time // of what takes time
	mark  time.Time // when all was well last,
	had   int       // and how much had come by then
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

// spent is the head of a body, of which nothing is held any more once it was read.
type spent struct {
	hold *hold
	room int64
	head bytes.Reader
}

// onwardsFrom returns a body of which the head was read, as a whole: for one that is sent on while it comes.
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

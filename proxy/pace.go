package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// errSlow: less of a client's body comes than is worth holding room for.
var errSlow = fmt.Errorf("the body comes too slowly: %w", errBusy)

// timed reads a client's body for which room is held, until it takes too long.
type timed struct {
	body  *source
	hold  *hold
	n     int // how much was read
	start time.Time
	mark  time.Time // when all was well last,
	had   int       // and how much had come by then
	timer *time.Timer
}

// Read implements io.Reader. After errSlow the body itself goes on where this reader ended.
func (t *timed) Read(p []byte) (n int, err error) {
	defer func() { t.n += n }()
	if t.n < untimed {
		return t.body.Read(p[:min(len(p), untimed-t.n)])
	}
	now := time.Now()
	switch {
	case t.timer == nil:
		if err := t.hold.reserve(pieceSize); err != nil {
			return 0, err
		}
		t.hold.keepPiece(pieceSize)
		t.start, t.mark, t.had, t.timer = now, now, t.n, time.NewTimer(paceTime)
	case t.n-t.had >= leastPaced:
		t.mark, t.had = now, t.n
	}
	left := min(paceTime-now.Sub(t.mark), bodyTime-now.Sub(t.start))
	if left <= 0 {
		return 0, errSlow
	}
	t.timer.Reset(left)
	return t.body.within(p, t.timer.C)
}

// readBody is read for the body of a client, which has its share and may not take for ever: with errSlow, which is an errBusy, too little
// comes, and what follows is still to be read.
func (t *hold) readBody(r io.Reader, n, length int64) (head []byte, whole bool, err error) {
	first := int64(firstPiece)
	if length >= 0 {
		first = min(length, untimed)
	}
	if body, ok := r.(*source); ok && t != nil {
		timed := &timed{body: body, hold: t}
		defer timed.end()
		r = timed
	}
	return t.grow(r, n, length, first)
}

// end gives back what reading took, but for a piece that is still being read.
func (t *timed) end() {
	if t.timer == nil {
		return
	}
	t.timer.Stop()
	if t.body.late == nil {
		t.hold.give(pieceSize)
		t.hold.keepPiece(0)
	}
}

// keepPiece takes note of room for a piece that is read while the request may go on without it.
func (t *hold) keepPiece(n int64) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.piece = n
}

// late is a piece of a body that is still being read.
type late struct {
	piece []byte
	n     int
	err   error
	done  chan struct{}
}

// within reads, but for no longer than until the time is up: then it is errSlow, and the next reading has what comes.
func (s *source) within(p []byte, up <-chan time.Time) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	defer spend(s.waited, clock())
	if s.late == nil {
		l := &late{piece: pieces.Get(), done: make(chan struct{})}
		go func() {
			l.n, l.err = s.ReadCloser.Read(l.piece[:min(len(p), len(l.piece))])
			close(l.done)
		}()
		s.late = l
	}
	select {
	case <-s.late.done:
		return s.take(p)
	case <-up:
		return 0, errSlow
	}
}

// take returns what was read of a piece that is late, and what came of reading it at its end.
func (s *source) take(p []byte) (n int, err error) {
	l := s.late
	if n = copy(p, l.piece[:l.n]); n < l.n {
		l.n = copy(l.piece, l.piece[n:l.n])
		return n, nil
	}
	s.late = nil
	pieces.Put(l.piece)
	return n, s.came(l.err)
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

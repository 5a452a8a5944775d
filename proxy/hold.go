package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/neardup/sidecar/adapters"
)

// errBusy: the requests of the engine hold as many bytes as they may.
var errBusy = errors.New("too much is held at once")

// errShare: those of this client do, or those of all clients of which the engine has granted nothing yet.
var errShare = fmt.Errorf("%w by this client", errBusy)

// busyReason returns the reason for an error that is errBusy.
func busyReason(err error) adapters.Reason {
	switch {
	case errors.Is(err, errSlow):
		return adapters.ReasonSlow
	case errors.Is(err, errShare):
		return adapters.ReasonShare
	}
	return adapters.ReasonBusy
}

// clientShare is the part of what may be held that one client's requests may take before the engine has answered them. All that come with
// credentials of which the engine has granted nothing yet count as one client: anyone can send those, from as many addresses and under as many
// names as he likes.
const clientShare = 2

// strangers is the key of the share of all clients of which the engine has granted nothing yet. No client has it: a key has 32 bytes.
const strangers = "strangers"

// holds counts what all requests to an engine hold at once: searches, and bytes of bodies and replies.
type holds struct {
	most, mostSearches int64
	bytes, searches    atomic.Int64
	usual              atomic.Int64 // how long the engine's replies to searches are of late
	granted            set          // clients of which the engine has granted a request

	mu     sync.Mutex
	shares map[string]int64 // what is held of requests that the engine has not answered, by the client's key
}

// share takes room in a client's share.
func (h *holds) share(key string, n int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shares[key]+n > h.most/clientShare {
		return false
	}
	if h.shares == nil {
		h.shares = map[string]int64{}
	}
	h.shares[key] += n
	return true
}

// unshare gives room in a client's share back.
func (h *holds) unshare(key string, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shares[key] -= n; h.shares[key] <= 0 {
		delete(h.shares, key)
	}
}

// hold is what one request holds. A nil one is not counted. It is safe for concurrent use.
type hold struct {
	all      *holds
	sender   *sender // nil: there are no shares
	mu       sync.Mutex
	bytes    int64
	piece    int64  // of them, what a reading of the body that goes on takes
	owner    string // whose share they are taken from; empty until some are
	answered bool   // by the engine: what is held counts in no share any more
	ended    bool   // all was given back: what still goes on for the request counts no more
	search   atomic.Bool
}

// take takes room for n more bytes, and reports false where there is none: whatever they were to be used for goes on without.
func (t *hold) take(n int64) bool { return t.reserve(n) == nil }

// reserve is take, but says whether it is the client's share that is used up (errShare) or all (errBusy).
func (t *hold) reserve(n int64) error {
	if t == nil || n <= 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errBusy
	}
	shared := t.sender != nil && !t.answered
	if shared && t.owner == "" {
		if t.owner = t.sender.client().key; !t.all.granted.has(t.owner) {
			t.owner = strangers
		}
	}
	if shared && !t.all.share(t.owner, n) {
		return errShare
	}
	if t.all.bytes.Add(n) > t.all.most {
		t.all.bytes.Add(-n)
		if shared {
			t.all.unshare(t.owner, n)
		}
		return errBusy
	}
	t.bytes += n
	return nil
}

// known takes what the engine answered to the request, or to one on its behalf. granted says that it takes who sent it for a client of its
// own, denied that it does not.
func (t *hold) known(granted, denied bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.answered && t.owner != "" && !t.ended {
		t.all.unshare(t.owner, t.bytes)
	}
	t.answered = true
	if t.sender == nil {
		return
	}
	switch key := t.sender.client().key; {
	case denied:
		t.all.granted.Delete(key)
	case granted && !t.all.granted.has(key):
		t.all.granted.add(key)
	}
}

// give gives the room for n bytes back.
func (t *hold) give(n int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.back(n)
}

func (t *hold) back(n int64) {
	if n = min(n, t.bytes); t.ended || n <= 0 {
		return
	}
	t.bytes -= n
	t.all.bytes.Add(-n)
	if !t.answered && t.owner != "" {
		t.all.unshare(t.owner, n)
	}
}

// only gives back all but the room for n bytes, and for a reading that goes on.
func (t *hold) only(n int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.back(t.bytes - n - t.piece)
}

// room is take for the lines and documents of a body that streams: a negative n gives room back.
func (t *hold) room(n int) bool {
	if n < 0 {
		t.give(int64(-n))
		return true
	}
	return t.take(int64(n))
}

// begin takes a place among the searches that are held at once, and reports false where there is none.
func (t *hold) begin() bool {
	if t == nil || t.search.Load() {
		return true
	}
	if t.all.searches.Add(1) > t.all.mostSearches {
		t.all.searches.Add(-1)
		return false
	}
	t.search.Store(true)
	return true
}

// end gives the place back.
func (t *hold) end() {
	if t != nil && t.search.Swap(false) {
		t.all.searches.Add(-1)
	}
}

// release gives everything back, for good: a body that was streaming may be let go of only after that.
func (t *hold) release() {
	t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.back(t.bytes)
	t.ended = true
}

// holdOf returns what the request holds on whose behalf something is done, nil for none.
func holdOf(ctx context.Context) *hold {
	if u := underwayOf(ctx); u != nil {
		return &u.hold
	}
	return nil
}

// HeldBytes is how many bytes of bodies and replies are held at once.
func (h *Handler) HeldBytes() int64 { return h.holds.bytes.Load() }

const (
	// firstPiece is how much is read at once of what may be of any length, likelyPiece of what says how long it is: who sends it may take
	// all the time in the world, and what it says is no reason to hold room for it.
	firstPiece, likelyPiece = 4 << 10, 64 << 10
	// usualMost is how much is read at once of a reply that is taken to be as long as the last ones.
	usualMost = 1 << 20
)

// readReply is read for a reply of the engine. One that does not say how long it is is read as if it were as long as the last ones, and
// some more: put together from pieces it would take twice its room.
func (t *hold) readReply(r io.Reader, n, length int64) (head []byte, whole bool, err error) {
	first := int64(firstPiece)
	if t == nil {
		return t.read(r, n, length)
	}
	if usual := &t.all.usual; length < 0 {
		first = min(max(first, usual.Load()*9/8), usualMost)
		defer func() { usual.Store((usual.Load()*3 + int64(len(head))) / 4) }()
	}
	return t.readFrom(r, n, length, first)
}

// read reads at most n bytes and says whether that is all there is. length is how long it says it is, -1 where it does not. With errBusy
// there is no room for more than what is returned.
func (t *hold) read(r io.Reader, n, length int64) (head []byte, whole bool, err error) {
	return t.readFrom(r, n, length, firstPiece)
}

func (t *hold) readFrom(r io.Reader, n, length, first int64) (head []byte, whole bool, err error) {
	if length >= 0 {
		first = min(length, likelyPiece)
	}
	return t.grow(r, n, length, first)
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

// grow reads into memory of which there is first as much as said, and then twice as much each time.
func (t *hold) grow(r io.Reader, n, length, first int64) (head []byte, whole bool, err error) {
	room := min(first, n) + 1 // to see that there is no more
	if err := t.reserve(room); err != nil {
		return nil, false, err
	}
	head = make([]byte, 0, room)
	for {
		got, err := r.Read(head[len(head):cap(head)])
		head = head[:len(head)+got]
		switch {
		case int64(len(head)) > n:
			return head, false, nil
		case err == io.EOF:
			return head, true, nil
		case err != nil:
			return head, false, err
		case len(head) < cap(head):
			continue
		}
		longer := min(2*room, n+1)
		if length >= room {
			longer = min(longer, length+1)
		}
		if err := t.reserve(longer - room); err != nil {
			return head, false, err
		}
		head = append(make([]byte, 0, longer), head...)
		room = longer
	}
}

// decode decompresses a body up to the limit, beyond which it is errTooLarge.
func (t *hold) decode(encoding string, body []byte, limit int64) ([]byte, error) {
	window := windowOf(encoding, body)
	if err := t.reserve(window); err != nil {
		return nil, err
	}
	defer t.give(window)
	plain, err := decoder(encoding, window, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	head, whole, err := t.read(plain, limit, -1)
	reuse(plain)
	if err == nil && !whole {
		err = errTooLarge
	}
	return head, err
}

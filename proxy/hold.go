package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/neardup/sidecar/adapters"
)

// errBusy: the requests of the engine hold as many bytes as they may.
var errBusy = errors.New("too much is held at once")

// errShare: those of this client do, or those of all clients of which the engine has granted nothing yet.
var errShare = fmt.Errorf("%w by this client", errBusy)

// clientShare is the part of MaxHeld that one client's requests may take before the engine has answered them. All that come with
// credentials of which the engine has granted nothing yet count as one client: anyone can send those, from as many addresses and under as many
// names as he likes.
const clientShare = 2

// strangers is the key of the share of all clients of which the engine has granted nothing yet. No client has it: a key has 32 bytes.
const strangers = "strangers"

// holds counts what all requests to an engine hold at once: searches, and bytes of bodies and replies.
type holds struct {
	most, mostSearches int64
	short, long        usual // how long the engine's recent replies to searches are: those of at most likelyPiece bytes, and others
	granted            set   // clients of which the engine has granted a request
	held               prometheus.Gauge

	mu              sync.Mutex // for what follows, and for each hold
	bytes, searches int64
	shares          map[string]int64 // bytes of requests that the engine has not answered, by the client's key
}

// hold is what one request holds. What is read into a nil one is not counted. It is safe for concurrent use.
type hold struct {
	all      *holds
	sender   *sender // nil: there are no shares
	bytes    int64
	owner    string // whose share they are taken from; empty until some are
	answered bool   // by the engine: its bytes count in no share any more
	ended    bool   // all was given back: what still goes on for the request counts no more
	search   bool   // it has a place among the searches
	lent     *lent  // the body that a write sends, if that is in memory
}

// take takes room for n more bytes, and reports whether there is any.
func (t *hold) take(n int64) bool { return t.reserve(n) == nil }

// reserve is take, but says whether it is the client's share that is used up (errShare) or all (errBusy).
func (t *hold) reserve(n int64) error {
	if t == nil || n <= 0 {
		return nil
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if t.sender != nil && !t.answered && t.owner == "" {
		if t.owner = t.sender.client().key; !t.all.granted.has(t.owner) {
			t.owner = strangers
		}
	}
	switch {
	case t.ended:
		return errBusy
	case t.owner != "" && !t.answered && t.all.shares[t.owner]+n > t.all.most/clientShare:
		return errShare
	case t.all.bytes+n > t.all.most:
		return errBusy
	}
	t.add(n)
	return nil
}

// add counts n more bytes, or less. The caller has the lock.
func (t *hold) add(n int64) {
	t.bytes, t.all.bytes = t.bytes+n, t.all.bytes+n
	t.all.held.Add(float64(n))
	if t.owner != "" && !t.answered {
		t.share(n)
	}
}

// share adds to the owner's share. The caller has the lock.
func (t *hold) share(n int64) {
	if t.all.shares == nil {
		t.all.shares = map[string]int64{}
	}
	if t.all.shares[t.owner] += n; t.all.shares[t.owner] <= 0 {
		delete(t.all.shares, t.owner)
	}
}

// back gives room back. The caller has the lock.
func (t *hold) back(n int64) {
	if n = min(n, t.bytes); n > 0 && !t.ended {
		t.add(-n)
	}
}

// learn takes what the engine answered to the request, or to one on its behalf. granted says that it takes who sent it for a client of its
// own, denied that it does not.
func (t *hold) learn(granted, denied bool) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if !t.answered && t.owner != "" && !t.ended {
		t.share(-t.bytes)
	}
	t.answered = true
	switch {
	case t.sender == nil:
	case denied:
		t.all.granted.Delete(t.sender.client().key)
	case granted && !t.all.granted.has(t.sender.client().key):
		t.all.granted.add(t.sender.client().key)
	}
}

// give gives the room for n bytes back.
func (t *hold) give(n int64) {
	if t != nil {
		t.all.mu.Lock()
		defer t.all.mu.Unlock()
		t.back(n)
	}
}

// reuse gives a buffer back, with the room for it. Nobody may read or write it any more.
func (t *hold) reuse(buffer []byte) {
	t.give(int64(cap(buffer)))
	reuseBuffer(buffer)
}

// Hold is take for the lines and documents of a body that streams: a negative n gives room back.
func (t *hold) Hold(n int) bool {
	if n < 0 {
		t.give(int64(-n))
		return true
	}
	return t.take(int64(n))
}

// size is how many bytes it takes.
func (t *hold) size() int64 {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.bytes
}

// takePlace takes a place among the searches that may be in memory at once, and reports whether there is one.
func (t *hold) takePlace() bool {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if !t.search && t.all.searches < t.all.mostSearches {
		t.search = true
		t.all.searches++
	}
	return t.search
}

// keepOnly gives back the place among the searches, and all but the room for n bytes: the client may take its time.
func (t *hold) keepOnly(n int64) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.leave(n)
}

// release gives everything back, for good: a body that was streaming may be let go of only after that.
func (t *hold) release() {
	if t.lent != nil {
		t.lent.end()
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.leave(0)
	t.ended = true
}

// leave is keepOnly for a caller that has the lock.
func (t *hold) leave(n int64) {
	if t.search {
		t.search = false
		t.all.searches--
	}
	t.back(t.bytes - n)
}

// holdOf returns what the request holds on whose behalf something is done.
func holdOf(ctx context.Context) *hold { return &underwayOf(ctx).hold }

const (
	// firstPiece is how much is read at once of what may be of any length, likelyPiece of what says how long it is: who sends it may take
	// all the time in the world, and what it says is no reason to hold room for it.
	firstPiece, likelyPiece = 4 << 10, 64 << 10
	// usualMost is how much is read at once of a reply that is taken to be as long as the last ones.
	usualMost = 1 << 20
)

// readReply reads a reply of the engine, up to limit bytes, and decodes it. Its header goes on naming the coding.
func (t *hold) readReply(resp *http.Response, limit int64) (*adapters.Reply, error) {
	coding, readable := codingOf(resp)
	if !readable {
		return nil, adapters.NotUnderstood(fmt.Errorf("content encoding %q", coding))
	}
	body, whole, err := t.readUsual(resp.Body, limit, resp.ContentLength)
	switch {
	case errors.Is(err, errBusy):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	case !whole:
		return nil, errTooLarge
	}
	if coding != "" {
		sent := int64(len(body))
		if body, err = t.decode(coding, body, limit); errors.Is(err, errBusy) {
			return nil, err
		} else if err != nil {
			return nil, adapters.NotUnderstood(err)
		}
		t.give(sent)
	}
	return &adapters.Reply{Status: resp.StatusCode, Header: adapters.Header(resp.Header), Body: body}, nil
}

// readUsual reads an engine's reply as read does. For a reply without a stated length it first makes room for a usual short reply, and then, if that
// is too little, for a usual long one: a deep page asks for both. A buffer that grows step by step takes more than twice the reply's length, counting
// what the collector has not freed yet.
func (t *hold) readUsual(r io.Reader, n, length int64) (head []byte, whole bool, err error) {
	if t == nil || length >= 0 {
		return t.read(r, n, length, likelyPiece, 0)
	}
	first, then := t.all.short.room(), t.all.long.room()
	head, whole, err = t.read(r, n, length, cmp.Or(first, then, likelyPiece), then)
	if len(head) <= likelyPiece {
		t.all.short.add(int64(len(head)))
	} else {
		t.all.long.add(int64(len(head)))
	}
	return head, whole, err
}

// usual is the usual length of recent replies.
type usual struct{ mean atomic.Int64 }

// room returns how much memory a reply gets, 0 before the first one.
func (u *usual) room() int64 {
	if mean := u.mean.Load(); mean > 0 {
		return min(max(firstPiece, mean*9/8), usualMost)
	}
	return 0
}

func (u *usual) add(n int64) {
	mean := cmp.Or(u.mean.Load(), n)
	u.mean.Store((mean*3 + n) / 4)
}

// read reads at most n bytes and says whether that is all there is. length is how long it says it is, -1 where it does not. With errBusy
// there is no room for more than what is returned. The buffer begins with first bytes at most. Each time it is full it grows to twice its size,
// to eight times where the length is known, or to then bytes if that is more.
func (t *hold) read(r io.Reader, n, length, first, then int64) (head []byte, whole bool, err error) {
	if length >= 0 {
		first = min(length, first)
	}
	room := min(first, n) + 1 // to see that there is no more
	if err := t.reserve(bufferSize(room)); err != nil {
		return nil, false, err
	}
	head = newBuffer(room)
	for {
		got, err := r.Read(head[len(head):room])
		head = head[:len(head)+got]
		switch {
		case int64(len(head)) > n:
			return head, false, nil
		case err == io.EOF:
			return head, true, nil
		case err != nil:
			return head, false, err
		case int64(len(head)) < room:
			continue
		}
		longer := max(2*room, then)
		if length >= room {
			longer = min(max(8*room, then), length+1)
		}
		longer = min(longer, n+1)
		if err := t.reserve(bufferSize(longer) - bufferSize(room)); err != nil {
			return head, false, err
		}
		full := head
		head, room = append(newBuffer(longer), full...), longer
		reuseBuffer(full)
	}
}

// decode decompresses a body up to the limit, beyond which it is errTooLarge. One without an encoding is returned as it is.
func (t *hold) decode(encoding string, body []byte, limit int64) ([]byte, error) {
	if encoding == "" {
		return body, nil
	}
	window := windowOf(encoding, body)
	if err := t.reserve(window); err != nil {
		return nil, err
	}
	defer t.give(window)
	plain, err := decoder(encoding, window, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	head, whole, err := t.read(plain, limit, -1, firstPiece, 0)
	reuse(plain)
	if err == nil && !whole {
		err = errTooLarge
	}
	return head, err
}

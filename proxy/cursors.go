package proxy

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// perCursor is about what is held of a cursor beside its walk, in bytes.
const perCursor = 256

// cursors remembers what clients' cursors have shown, up to so many bytes and for so long; what was not used for the longest time
// goes first. Nothing of one client is ever found by another. It is safe for concurrent use.
type cursors struct {
	most int
	ttl  time.Duration

	mu   sync.Mutex
	at   map[cursorKey]*list.Element
	used list.List // of *cursor, the last used in front
	held int
}

type cursorKey [sha256.Size]byte

// cursor is what one cursor has shown.
type cursor struct {
	key   cursorKey
	walk  *rerank.Walk
	bytes int
	until time.Time
}

func newCursors(l Limits) *cursors {
	return &cursors{most: int(l.CursorMemory), ttl: l.CursorTTL, at: map[cursorKey]*list.Element{}}
}

// of returns what is remembered for a client.
func (c *cursors) of(who client) adapters.Cursors { return cursorsOf{c, who.key} }

// cursorsOf implements adapters.Cursors for one client.
type cursorsOf struct {
	all *cursors
	who string
}

var _ adapters.Cursors = cursorsOf{}

// Get implements adapters.Cursors.
func (c cursorsOf) Get(key string) (*rerank.Walk, bool) { return c.all.get(c.key(key)) }

// Put implements adapters.Cursors.
func (c cursorsOf) Put(key string, walk *rerank.Walk) { c.all.put(c.key(key), walk) }

// key is what a cursor is remembered under. A search can be as long as its body may be; the key is not.
func (c cursorsOf) key(key string) (k cursorKey) {
	sum := sha256.New()
	part(sum, c.who)
	part(sum, key)
	sum.Sum(k[:0])
	return k
}

func (c *cursors) get(key cursorKey) (*rerank.Walk, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire()
	e := c.at[key]
	if e == nil {
		return nil, false
	}
	c.used.MoveToFront(e)
	held := e.Value.(*cursor)
	if !time.Now().Before(held.until) {
		c.drop(e)
		return nil, false
	}
	return held.walk, true
}

func (c *cursors) put(key cursorKey, walk *rerank.Walk) {
	bytes := perCursor + walk.Bytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.at[key]; e != nil {
		c.drop(e)
	}
	if bytes > c.most {
		return
	}
	c.expire()
	c.at[key] = c.used.PushFront(&cursor{key, walk, bytes, time.Now().Add(c.ttl)})
	for c.held += bytes; c.held > c.most; {
		c.drop(c.used.Back())
	}
}

// expire forgets what has expired at the end of the list, so that memory is not held for cursors that no one goes on with.
func (c *cursors) expire() {
	for e := c.used.Back(); e != nil && !time.Now().Before(e.Value.(*cursor).until); e = c.used.Back() {
		c.drop(e)
	}
}

func (c *cursors) drop(e *list.Element) {
	held := c.used.Remove(e).(*cursor)
	delete(c.at, held.key)
	c.held -= held.bytes
}

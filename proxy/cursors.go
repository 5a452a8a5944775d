package proxy

import (
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// perCursor is about what is held of a cursor beside its walk, in bytes.
const perCursor = 512

// cursors remembers what clients' cursors have shown, up to so many bytes and for so long; what was not used for the longest time
// goes first. It is safe for concurrent use.
type cursors struct {
	most int
	at   *ttlcache.Cache[string, *rerank.Walk]
}

func newCursors(l Limits) *cursors {
	cost := func(c ttlcache.CostItem[string, *rerank.Walk]) uint64 { return uint64(perCursor + c.Value.Bytes()) }
	return &cursors{int(l.CursorMemory), ttlcache.New(
		ttlcache.WithTTL[string, *rerank.Walk](l.CursorTTL), ttlcache.WithDisableTouchOnHit[string, *rerank.Walk](),
		ttlcache.WithMaxCost(uint64(l.CursorMemory), cost),
	)}
}

// of returns what is remembered for a client. Nothing of it is ever found by another.
func (c *cursors) of(who client) adapters.Cursors { return cursorsOf{c, who} }

// cursorsOf implements adapters.Cursors for one client.
type cursorsOf struct {
	all *cursors
	who client
}

var _ adapters.Cursors = cursorsOf{}

// Get implements adapters.Cursors.
func (c cursorsOf) Get(key string) (*rerank.Walk, bool) {
	c.all.at.DeleteExpired()
	if held := c.all.at.Get(entryKey(c.who, key)); held != nil {
		return held.Value(), true
	}
	return nil, false
}

// Put implements adapters.Cursors.
func (c cursorsOf) Put(key string, walk *rerank.Walk) {
	c.all.at.DeleteExpired()
	key = entryKey(c.who, key)
	if perCursor+walk.Bytes() > c.all.most {
		c.all.at.Delete(key)
		return
	}
	c.all.at.Set(key, walk, ttlcache.DefaultTTL)
}

// set is a bounded set of keys: where it is full, adding one drops the one that was not asked for the longest.
type set struct {
	*ttlcache.Cache[string, struct{}]
}

// newSet returns a set that keeps its keys for some time; zero is for ever.
func newSet(keep time.Duration) set {
	return set{ttlcache.New(
		ttlcache.WithCapacity[string, struct{}](maxNames), ttlcache.WithTTL[string, struct{}](keep), ttlcache.WithDisableTouchOnHit[string, struct{}](),
	)}
}

func (s set) has(key string) bool { return s.Get(key) != nil }

func (s set) add(key string) { s.Set(key, struct{}{}, ttlcache.DefaultTTL) }

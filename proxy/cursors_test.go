package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// strolled returns a walk over n hits that do not fold, with ids of the length.
func strolled(n, length int) *rerank.Walk {
	w := new(rerank.Walk)
	for i := range n {
		s := &sketch.Sketch{Fingerprint: uint64(i + 1)}
		w.Take(&rerank.Hit{ID: strings.Repeat("x", length), Sketch: s, Profile: &rerank.Profile{Threshold: 1, MinShingles: 1000}}, 1<<30)
	}
	return w
}

// held returns how many bytes are held.
func (c *cursors) held() (n int) {
	c.at.Range(func(i *ttlcache.Item[string, *rerank.Walk]) bool {
		n += i.Value().Bytes() + perCursor
		return true
	})
	return n
}

func asked(header string) client { return clientOf(adapters.Header{"Authorization": {header}}, "") }

func TestCursorsAreBounded(t *testing.T) {
	if effort.Race {
		t.Skip("one goroutine: no race to be seen")
	}
	c := newCursors(Limits{CursorMemory: 100_000, CursorTTL: time.Minute})
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		c.of(asked(fmt.Sprint(r.IntN(3)))).Put(fmt.Sprint(r.IntN(300)), strolled(r.IntN(40), r.IntN(200)))
		if held := c.held(); held > 100_000 {
			t.Fatalf("after %d: %d bytes are held", i, held)
		}
	}
	if held := c.held(); held < 50_000 {
		t.Errorf("only %d bytes of 100,000 are used", held)
	}
	big := strolled(1000, 10)
	c.of(asked("a")).Put("big", big)
	if _, ok := c.of(asked("a")).Get("big"); ok || c.held() == 0 {
		t.Error("a walk larger than all there is was kept, or drove out the rest")
	}
}

func TestCursorsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCursors(Limits{CursorMemory: 1 << 20, CursorTTL: time.Minute})
		mine := c.of(asked("a"))
		mine.Put("1", strolled(1, 1))
		time.Sleep(59 * time.Second)
		mine.Put("2", strolled(1, 1))
		if _, ok := mine.Get("1"); !ok {
			t.Error("forgotten too early")
		}
		time.Sleep(time.Second + 1)
		if _, ok := mine.Get("1"); ok {
			t.Error("not forgotten in time")
		}
		if _, ok := mine.Get("2"); !ok {
			t.Error("the second is forgotten too early")
		}
		time.Sleep(time.Hour)
		mine.Get("3")
		expect.Same(t, c.at.Metrics().Insertions, c.at.Metrics().Evictions, "cursors that are let go of")
	})
}

// TestCursorsOfOthers looks with other credentials, and with keys that run into one another.
func TestCursorsOfOthers(t *testing.T) {
	c := newCursors(Limits{CursorMemory: 1 << 20, CursorTTL: time.Minute})
	c.of(asked("a")).Put("key", strolled(1, 1))
	for _, other := range []client{asked("b"), asked(""), asked("ak"), clientOf(nil, "api_key=a"), clientOf(adapters.Header{"X-User": {"a"}}, "")} {
		for _, key := range []string{"key", "ey", ""} {
			if _, ok := c.of(other).Get(key); ok {
				t.Errorf("%q is found by another client", key)
			}
		}
	}
	if _, ok := c.of(asked("a")).Get("key"); !ok {
		t.Error("not found by its own")
	}
	traced := clientOf(adapters.Header{"Authorization": {"a"}, "X-Request-Id": {"7"}}, "")
	if _, ok := c.of(traced).Get("key"); !ok {
		t.Error("not found where the request is another alone")
	}
}

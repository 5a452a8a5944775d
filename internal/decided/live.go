package decided

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// Live keeps a [Set] of the decided pairs of an engine up to date, for searches. It holds no ids, and takes about 170 bytes for a pair. Set is safe for
// concurrent use. All else is for one goroutine.
type Live struct {
	tail
	known map[[2]uint64]known // by the two documents
	set   atomic.Pointer[Set]
	stale bool // set does not match known yet
}

// NewLive returns a Live that has read nothing. Until its first Read succeeds, Set returns before.
func NewLive(journal adapters.Journal, before *Set) *Live {
	l := &Live{tail: tail{journal: journal}, known: map[[2]uint64]known{}, stale: true}
	l.set.Store(before)
	return l
}

// Set returns the pairs as of the last Read that succeeded.
func (l *Live) Set() *Set { return l.set.Load() }

// Read reads the new decisions. On an error Set stays as it is.
func (l *Live) Read(ctx context.Context) error {
	err := l.read(ctx, func() { clear(l.known); l.stale = true }, func(e entry) {
		l.stale = true
		for i := range e.Pairs {
			k := knownOf(&e.Pairs[i])
			if e.Pairs[i].Verdict == Forgotten {
				delete(l.known, [2]uint64{k.a, k.b})
				continue
			}
			l.known[[2]uint64{k.a, k.b}] = k
		}
	})
	if err == nil && l.stale {
		l.set.Store(newSet(maps.Values(l.known), len(l.known)))
		l.stale = false
	}
	return err
}

// Run calls Read at each interval until ctx ends, and reports the error of each Read, or nil.
func (l *Live) Run(ctx context.Context, interval time.Duration, report func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		within, cancel := context.WithTimeout(ctx, max(interval, time.Minute))
		err := l.Read(within)
		cancel()
		if ctx.Err() == nil {
			report(err)
		}
	}
}

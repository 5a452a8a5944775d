package proxy

import (
	"maps"
	"sync"
)

// counts are the handler's counters, each with a name and at most one label of few values.
type counts struct {
	mu sync.Mutex
	by map[string]int64
}

func (c *counts) add(name, label string) { c.addN(name, label, 1) }

func (c *counts) addN(name, label string, n int64) {
	if label != "" {
		name += " " + label
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int64{}
	}
	c.by[name] += n
}

// Counts returns a copy of the handler's counters by "name label": requests by kind, documents by change, searches collapsed and
// passed by reason, hits folded, requests broken off by the client or without an engine to answer.
func (h *Handler) Counts() map[string]int64 {
	h.counts.mu.Lock()
	defer h.counts.mu.Unlock()
	return maps.Clone(h.counts.by)
}

// budget is what searches may cost in requests that are sent a second time: every search adds a share of one, every second
// sending takes one.
type budget struct {
	share float64
	mu    sync.Mutex
	saved float64
	begun bool
}

// maxSaved is how many second sendings may be saved up, so that a burst of trouble after a quiet day stays a burst.
const maxSaved = 20

// allow says whether a search may be tried that could need a second sending.
func (b *budget) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun {
		b.begun, b.saved = true, maxSaved
	}
	b.saved = min(b.saved+b.share, maxSaved)
	return b.saved >= 1
}

// spend takes one second sending; refund gives it back where it turned out to be no trouble of ours.
func (b *budget) spend() { b.change(-1) }

func (b *budget) refund() { b.change(1) }

func (b *budget) change(by float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = min(b.saved+by, maxSaved)
}

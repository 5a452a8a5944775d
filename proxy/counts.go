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

package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/neardup/sidecar/adapters"
)

// counts are the handler's counters, each with a name and at most one label of few values. What is counted goes to the handler's
// Metrics as well.
type counts struct {
	metrics *Metrics // nil for none
	mu      sync.RWMutex
	by      map[tally]*count
}

type tally struct{ name, label string }

type count struct {
	n        atomic.Int64
	exported prometheus.Counter // nil where nothing of it is
}

func (c *counts) add(name, label string) { c.addN(name, label, 1) }

func (c *counts) addN(name, label string, n int64) {
	each := c.of(tally{name, label})
	each.n.Add(n)
	if each.exported != nil {
		each.exported.Add(float64(n))
	}
}

func (c *counts) of(t tally) *count {
	c.mu.RLock()
	each := c.by[t]
	c.mu.RUnlock()
	if each != nil {
		return each
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if each = c.by[t]; each == nil {
		if c.by == nil {
			c.by = map[tally]*count{}
		}
		each = &count{}
		if c.metrics != nil {
			each.exported = c.metrics.counter(t.name, t.label)
		}
		c.by[t] = each
	}
	return each
}

// outcome counts what was done with one search.
func (c *counts) outcome(o adapters.Outcome) {
	switch {
	case o.Reason != "":
		c.add("passed", string(o.Reason))
	case o.DryRun:
		c.add("dry_run", "")
		c.addN("would_fold", "", int64(o.Folded))
	case o.Native:
		c.add("native", "")
		c.addN("folded", "", int64(o.Folded))
	default:
		c.add("collapsed", "")
		c.addN("folded", "", int64(o.Folded))
	}
	if o.Rounds > 1 {
		c.addN("refills", "", int64(o.Rounds-1))
	}
	for _, each := range []struct {
		from string
		n    int
	}{
		{"stored", o.Sketches.Stored}, {"computed", o.Sketches.Computed}, {"missing", o.Sketches.Missing}, {"stale", o.Sketches.Stale},
		{"foreign", o.Sketches.Foreign},
	} {
		if each.n > 0 {
			c.addN("hits", each.from, int64(each.n))
		}
	}
	if o.Fell != "" {
		c.add("native_fell", string(o.Fell))
	}
	if o.CursorLost {
		c.add("cursor_lost", "")
	}
}

// Counts returns a copy of the handler's own counters by "name label": requests by kind, documents by change, searches
// collapsed and passed by reason, hits folded, requests broken off by the client or without an engine to answer. [Metrics] has
// the same for operators.
func (h *Handler) Counts() map[string]int64 {
	h.counts.mu.RLock()
	defer h.counts.mu.RUnlock()
	all := make(map[string]int64, len(h.counts.by))
	for t, each := range h.counts.by {
		name := t.name
		if t.label != "" {
			name += " " + t.label
		}
		all[name] = each.n.Load()
	}
	return all
}

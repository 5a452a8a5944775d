package rerank

import (
	"bytes"
	"slices"
	"strings"
)

// Walk goes through a collapsed list in pieces, each from where the last one ended, as a client's cursor does. It remembers the leaders, so
// that their near-duplicates stay hidden. It shows the first-ranked members of each group, since any other choice needs the whole window.
// The zero Walk is at the beginning. It is not safe for concurrent use; a Clone is independent.
type Walk struct {
	leaders []leader // n of one is how many members of its group were shown; clones share the hits
	ranks   int
	folded  int
}

// Clone returns a copy that goes its own way.
func (w *Walk) Clone() *Walk {
	c := *w
	c.leaders = slices.Clone(w.leaders)
	return &c
}

// Ranks returns how many ranks were walked.
func (w *Walk) Ranks() int { return w.ranks }

// Folded returns how many of the walked ranks were folded.
func (w *Walk) Folded() int { return w.folded }

// Bytes returns about how much memory the walk takes.
func (w *Walk) Bytes() int {
	n := 64
	for i := range w.leaders {
		h := w.leaders[i].hit
		n += 392 + len(h.ID) + len(h.Sketch.Payload) + len(h.Sketch.Topics) + h.Traits.bytes()
		if len(h.Others) > 0 {
			n += 768 // a map takes room for eight at once
		}
		for _, traits := range h.Others {
			n += 256 + traits.bytes()
		}
	}
	return n
}

// bytes returns how much memory the traits refer to.
func (t *Traits) bytes() int {
	n := 32 + len(t.Same) + len(t.Merit.Text)
	for _, values := range t.Different {
		n += 24
		for _, v := range values {
			n += 32 + len(v)
		}
	}
	return n
}

// Take goes on by one rank and reports whether its hit is shown. Beyond the window every hit is. The caller must not change what the hit
// refers to afterwards.
func (w *Walk) Take(hit *Hit, window int) bool {
	w.ranks++
	if w.ranks > window || hit.Sketch == nil {
		return true
	}
	if at := leaderOf(w.leaders, hit); at >= 0 {
		if l := &w.leaders[at]; l.n < l.hit.profile().Keep {
			l.n++
			return true
		}
		w.folded++
		return false
	}
	own, sketch := *hit, *hit.Sketch // copies of all that would keep the memory of the list alive
	sketch.Payload = bytes.Clone(sketch.Payload)
	own.ID, own.Sketch = strings.Clone(own.ID), &sketch
	w.leaders = append(w.leaders, leader{outlineOf(&sketch), &own, 1})
	return true
}

// Forget drops the leaders. It is for ranks beyond the window, where nothing folds.
func (w *Walk) Forget() { w.leaders = nil }

package rerank

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Walk goes through a collapsed list in pieces, each from where the last one ended, as a client's cursor does. It remembers the leaders, so
// that their near-duplicates stay hidden. It shows the first-ranked members of each group, since any other choice needs the whole window.
// The zero Walk is at the beginning. It is not safe for concurrent use; a Clone is independent.
type Walk struct {
	leaders leaders // n of one is how many members of its group were shown; clones share the hits
	ranks   int
	folded  int
	// Last is for the caller: what tells the hit of the last rank from all others, so that it can be found again.
	Last string
	ends []end // of earlier pieces that it can be cut back to, in their order
}

// end is where a piece of a walk ended.
type end struct {
	ranks, folded, leaders int // until there
	last                   string
}

func (e *end) shown() int { return e.ranks - e.folded }

// Clone returns a copy that goes its own way. It can't be cut back.
func (w *Walk) Clone() *Walk {
	c := *w
	c.leaders.list, c.ends = slices.Clone(w.leaders.list), nil // more members of a group may be shown from here on
	return &c
}

// Ranks returns how many ranks were walked.
func (w *Walk) Ranks() int { return w.ranks }

// Folded returns how many of the walked ranks were folded.
func (w *Walk) Folded() int { return w.folded }

// Bytes returns about how much memory the walk takes.
func (w *Walk) Bytes() int {
	n := 104 + len(w.Last)
	for i := range w.ends {
		n += 64 + len(w.ends[i].last)
	}
	for i := range w.leaders.list {
		h := w.leaders.list[i].hit
		n += 416 + len(h.ID) + len(h.Label) + len(h.Sketch.Payload) + len(h.Sketch.Topics) + h.Traits.bytes()
		if h.Sketch.Vector != nil {
			n += 128 + len(h.Sketch.Vector.Payload)
		}
		if h.Decided != nil {
			n += 32
		}
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
	if at := w.leaders.place(hit); at >= 0 {
		if l := &w.leaders.list[at]; l.n < l.hit.profile().Keep {
			l.n++
			return true
		}
		w.folded++
		return false
	}
	w.lead(hit, 1)
	return true
}

// lead adds a leader, of whose group n members were shown.
func (w *Walk) lead(hit *Hit, n int) {
	own, sketch := *hit, *hit.Sketch // copies of all that would keep the memory of the list alive
	sketch.Payload, sketch.Topics = bytes.Clone(sketch.Payload), bytes.Clone(sketch.Topics)
	if sketch.Vector != nil {
		vector := *sketch.Vector
		vector.Payload = bytes.Clone(vector.Payload)
		sketch.Vector = &vector
	}
	own.ID, own.Label, own.Sketch = strings.Clone(own.ID), strings.Clone(own.Label), &sketch
	if own.Decided != nil { // later hits say what was decided about both
		own.Decided = &Decided{Document: own.Decided.Document}
	}
	w.leaders.list = append(w.leaders.list, leader{outlineOf(&sketch), &own, n})
}

// Walk returns what a [Walk] becomes that takes the first ranks of the list, as many as given, behind those in front of it. What they fold into is known
// already. It is for groups by leaders that show their first-ranked members.
func (f *Found) Walk(ranks int) *Walk {
	w := new(Walk)
	if f.page.After != nil {
		w = f.page.After.Clone()
	}
	compared := min(ranks, len(f.hits), max(f.page.Window, 0))
	shown, _ := slices.BinarySearch(f.Shown, compared)
	w.ranks, w.folded = w.ranks+ranks, w.folded+compared-shown
	for _, rank := range f.Shown[:shown] { // beside a leader in front of the list
		if at := w.leaders.place(&f.hits[rank]); at >= 0 {
			w.leaders.list[at].n++
		}
	}
	for _, g := range f.Groups {
		if g.Leader >= compared {
			break
		}
		if hit := &f.hits[g.Leader]; hit.Sketch != nil {
			kept, _ := slices.BinarySearch(g.Kept, compared)
			w.lead(hit, 1+kept)
		}
	}
	return w
}

// Walked returns the leader in front of the list whose group the hit of a rank joins. It is nil if the hit joins no such group.
func (f *Found) Walked(rank int) *Hit {
	hit := f.Hit(rank)
	if hit == nil || rank >= f.page.Window || f.page.After == nil {
		return nil
	}
	if at := f.page.After.leaders.place(hit); at >= 0 {
		return f.page.After.leaders.list[at].hit
	}
	return nil
}

// end returns where the walk ends.
func (w *Walk) end() end { return end{w.ranks, w.folded, len(w.leaders.list), w.Last} }

// Until returns the walk as it was when it had shown as many hits as given, nil if no piece of it ended there.
func (w *Walk) Until(shown int) *Walk {
	if own := w.end(); own.shown() == shown {
		return w
	}
	i, found := slices.BinarySearchFunc(w.ends, shown, func(e end, shown int) int { return e.shown() - shown })
	if !found {
		return nil
	}
	e := w.ends[i]
	return &Walk{leaders{list: w.leaders.list[:e.leaders:e.leaders]}, e.ranks, e.folded, e.last, nil}
}

// Join returns the longer of two walks through one list, which ends wherever one of them does. It is w itself if that does so already, and nil if they
// disagree. They do so, too, where the longer has shown more members of a group whose leader is in both.
func (w *Walk) Join(other *Walk) *Walk {
	long, short := w, other
	if long.ranks < short.ranks {
		long, short = short, long
	}
	n := len(short.leaders.list)
	if n > len(long.leaders.list) || !slices.EqualFunc(long.leaders.list[:n], short.leaders.list, sameLeader) {
		return nil
	}
	ends := slices.Concat(w.ends, other.ends, []end{w.end(), other.end()})
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.shown(), b.shown()) })
	ends = slices.Compact(ends)
	for i := range ends[1:] {
		if ends[i].shown() == ends[i+1].shown() {
			return nil
		}
	}
	if long == w && len(ends) == len(w.ends)+1 {
		return w
	}
	return &Walk{long.leaders, long.ranks, long.folded, long.Last, ends[:len(ends)-1]}
}

// sameLeader reports whether leaders are the same document, as far as it is compared, with as many members shown.
func sameLeader(a, b leader) bool {
	return a.n == b.n && (a.hit == b.hit || reflect.DeepEqual(a.hit, b.hit))
}

// Forget drops the leaders. It is for ranks beyond the window, where nothing folds.
func (w *Walk) Forget() { w.leaders.list = nil }

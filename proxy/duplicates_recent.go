package proxy

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/neardup/sidecar/adapters"
)

const (
	// recentMost is how many documents each of the two halves of what was written of late holds: some 8 MB with 32 bands.
	recentMost = 8192
	// recentHeads is how many chains their bands are in, a power of two.
	recentHeads = 1 << 18
	// recentFor is how long a half is added to at most, and then kept. Engines show to searches what was written after a second
	// by default, and after half a minute where an operator has them load much.
	recentFor = 30 * time.Second
)

// recent remembers documents that were written through us a moment ago and that the engine may not show to searches yet,
// apart for each client and name. That one is there still is for others to find out.
type recent struct {
	mu         sync.Mutex
	young, old *half
}

// half is what was written in some time.
type half struct {
	began time.Time
	docs  []remembered
	// heads leads from a slot to the last node in it, counted from 1, and each node to the one before.
	heads []int32
	nodes []node
}

// node is one band of a document; rest is what its slot leaves of the band.
type node struct {
	doc, next int32
	rest      uint32
}

type remembered struct {
	place string
	rule  *adapters.Rule
	*candidate
}

func newHalf(now time.Time) *half { return &half{began: now, heads: make([]int32, recentHeads)} }

// slot returns where a band is kept that a document in a place has.
func slot(place string, key int64) (head uint32, rest uint32) {
	h := (binary.LittleEndian.Uint64([]byte(place)) ^ uint64(key)) * 0x9e3779b97f4a7c15
	return uint32(h>>32) % recentHeads, uint32(h)
}

// turn forgets what is old.
func (r *recent) turn(now time.Time) {
	if r.old != nil && now.Sub(r.old.began) > 3*recentFor {
		r.old = nil
	}
	if r.young == nil || len(r.young.docs) >= recentMost || now.Sub(r.young.began) > recentFor {
		r.old, r.young = r.young, newHalf(now)
		if r.old != nil && now.Sub(r.old.began) > 3*recentFor {
			r.old = nil
		}
	}
}

// add remembers a document that was written to a place, which is an [entryKey].
func (r *recent) add(place string, rule *adapters.Rule, c *candidate, keys []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(time.Now())
	h := r.young
	h.docs = append(h.docs, remembered{place, rule, c})
	for _, key := range keys {
		head, rest := slot(place, key)
		h.nodes = append(h.nodes, node{int32(len(h.docs) - 1), h.heads[head], rest})
		h.heads[head] = int32(len(h.nodes))
	}
}

// find returns the documents of a place that share a band key with the newcomer.
func (r *recent) find(place string, n *newcomer) (list []*candidate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(time.Now())
	seen := map[*candidate]bool{}
	for _, h := range []*half{r.young, r.old} {
		if h == nil {
			continue
		}
		for _, key := range n.keys {
			head, rest := slot(place, key)
			for at := h.heads[head]; at > 0 && len(list) < maxCompared; at = h.nodes[at-1].next {
				band := h.nodes[at-1]
				if d := h.docs[band.doc]; band.rest == rest && d.place == place && d.rule == n.rule && !seen[d.candidate] {
					seen[d.candidate] = true
					list = append(list, d.candidate)
				}
			}
		}
	}
	return list
}

// remember keeps what was just written, for the writes that follow.
func (f *findings) remember(status int) {
	if f == nil || status >= 300 {
		return
	}
	places := map[string]string{}
	for _, n := range f.seen {
		if n.rule.OnDuplicate == adapters.IndexDuplicates || n.partial || f.left[n.op.Number] != nil {
			continue
		}
		place, made := places[n.op.Index]
		if !made {
			place = entryKey(f.who, n.op.Index)
			places[n.op.Index] = place
		}
		s := n.sketch
		c := &candidate{id: n.op.ID, index: n.index, sketch: &s, cluster: n.cluster, stored: &adapters.Stored{ID: n.op.ID}}
		f.h.recent.add(place, n.rule, c, n.keys)
	}
}

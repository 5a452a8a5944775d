package proxy

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// recentMost is how many recent documents each of the two halves holds: some 10 MB with 32 bands.
	recentMost = 8192
	// recentFor is how long a half is added to at most, and then kept. Engines show to searches what was written after a second
	// by default, and after half a minute where an operator has them load much.
	recentFor = 30 * time.Second
)

// recent remembers documents that were written through us a moment ago and that the engine may not show to searches yet,
// apart for each client and name. That one is there still is for others to find out.
type recent struct {
	mu         sync.Mutex
	young, old shelf
	began      time.Time // the young one
}

// turn forgets what is old.
func (r *recent) turn(now time.Time) {
	age := now.Sub(r.began)
	if len(r.young.docs) >= recentMost || age > recentFor {
		r.old, r.young, r.began = r.young, shelf{}, now
	}
	if age > 3*recentFor {
		r.old = shelf{}
	}
}

// add remembers a document that was written to a place, which is an [entryKey].
func (r *recent) add(place string, rule *rule.Rule, c *candidate, keys []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(time.Now())
	r.young.add(place, rule, c, keys)
}

// find returns the documents of a place that share a band key with the newcomer.
func (r *recent) find(place string, n *newcomer) []*candidate {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(time.Now())
	return append(r.young.find(place, n), r.old.find(place, n)...)
}

// shelf holds documents by their bands.
type shelf struct {
	docs  []shelved
	last  map[uint64]int32 // by band: the last node of it, counted from 1
	nodes []node
}

type shelved struct {
	place string
	rule  *rule.Rule
	*candidate
}

// node is one band of a document, and the node before it of the same band.
type node struct{ doc, before int32 }

// band returns what a band is kept under that a document in a place has.
func band(place string, key int64) uint64 {
	return binary.LittleEndian.Uint64([]byte(place)) ^ uint64(key)
}

// add puts a document with these band keys on the shelf.
func (s *shelf) add(place string, rule *rule.Rule, c *candidate, keys []int64) {
	if s.last == nil {
		s.last = map[uint64]int32{}
	}
	s.docs = append(s.docs, shelved{place, rule, c})
	for _, key := range keys {
		b := band(place, key)
		s.nodes = append(s.nodes, node{int32(len(s.docs) - 1), s.last[b]})
		s.last[b] = int32(len(s.nodes))
	}
}

// find returns the documents of a place that share a band key with the newcomer, no more than it is compared with.
func (s *shelf) find(place string, n *newcomer) (list []*candidate) {
	seen := map[*candidate]bool{}
	for _, key := range n.keys {
		for at := s.last[band(place, key)]; at > 0 && len(list) < maxCompared; at = s.nodes[at-1].before {
			if d := s.docs[s.nodes[at-1].doc]; d.place == place && d.rule == n.rule && !seen[d.candidate] {
				seen[d.candidate] = true
				list = append(list, d.candidate)
			}
		}
	}
	return list
}

// remember keeps what was just written, for the writes that follow.
func (f *findings) remember() {
	for _, n := range f.seen {
		if n.rule.OnDuplicate == rule.IndexDuplicates || n.partial || f.left[n.op.Number] != nil {
			continue
		}
		c := n.candidate
		c.newcomer, c.stored = nil, &adapters.Stored{ID: n.id}
		f.h.recent.add(entryKey(f.u.sender.client(), n.op.Index), n.rule, &c, n.keys)
	}
}

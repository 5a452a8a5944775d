package rerank

import (
	"math"

	"github.com/neardup/sidecar/sketch"
)

// index finds those of many hits that another one can agree with at or above a threshold, without a look at all of them. Sketches of k
// positions that agree so well differ in at most d of them. So of any d+1 groups of positions, no position in two of them, one at least
// is equal in both. Unrelated sketches share a group of two or more positions of eight bits once in a few hundred comparisons or less.
type index struct {
	scheme        uint32
	length        int     // k
	least         float64 // the threshold
	groups, width int     // how many groups, of how many positions
	// heads begins, for each value of a group's hash, the chain of the entries that have it; next goes on, 0 ends. Entry e is group
	// (e-1) % (groups+1) of hit (e-1) / (groups+1); the last group is the fingerprint.
	heads, next []int32
	// seen says for each hit at which question it was found last.
	seen      []int32
	questions int32
	found     []int32
}

// many is from how many hits on an index is worth its room and time.
const many = 300

// newIndex returns an index for as many hits as stand in the list, or nil where it would find little or nothing faster.
func newIndex(hits []Hit) *index {
	x := &index{least: math.Inf(1)}
	for i := range hits {
		s, p := hits[i].Sketch, hits[i].Profile
		if s == nil || p.Measure == Containment {
			continue
		}
		if x.length == 0 && s.Form == sketch.Positions && s.Bits == 8 {
			x.scheme, x.length = s.Scheme, len(s.Payload)
		}
		x.least = min(x.least, p.Threshold)
	}
	// The agreement of e equal positions is (256e - k) / 255k: see sketch.Sketch.Agreement.
	k := float64(x.length)
	equal := int(math.Ceil((255*k*max(x.least, 0)+k)/256 - 1e-6))
	x.groups = max(x.length-equal, 0) + 1
	x.width = min(x.length/x.groups, 8)
	if x.width < 2 || math.IsNaN(x.least) {
		return nil
	}
	size := 1
	for size < 2*len(hits)*(x.groups+1) {
		size *= 2
	}
	x.heads = make([]int32, size)
	x.next = append(make([]int32, 0, len(hits)*(x.groups+1)+1), 0)
	return x
}

// add adds the next hit.
func (x *index) add(s *sketch.Sketch) {
	x.seen = append(x.seen, 0)
	for g := range x.groups + 1 {
		entry := int32(len(x.next))
		x.next = append(x.next, 0)
		if g < x.groups && !x.fits(s) {
			continue
		}
		head := x.head(s, g)
		x.next[entry], *head = *head, entry
	}
}

// fits reports whether a sketch's positions can be looked up.
func (x *index) fits(s *sketch.Sketch) bool {
	return s.Scheme == x.scheme && s.Form == sketch.Positions && s.Bits == 8 && len(s.Payload) == x.length
}

// head is where the chain of a sketch's group begins.
func (x *index) head(s *sketch.Sketch, group int) *int32 {
	value := s.Fingerprint
	if group < x.groups {
		value = 0
		for _, b := range s.Payload[group*x.width:][:x.width] {
			value = value<<8 | uint64(b)
		}
	}
	value = (value + uint64(group)*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	value = (value ^ value>>32) * 0xd6e8feb86659fd93
	return &x.heads[(value^value>>32)&uint64(len(x.heads)-1)]
}

// find returns the numbers of the hits, in no order, among which are all that a hit may fold into. It reports false where all have to be
// looked at, be it that so much is alike that this is less work.
func (x *index) find(hit *Hit) ([]int32, bool) {
	if p := hit.Profile; p.Measure == Containment || !(p.Threshold >= x.least) || !x.fits(hit.Sketch) {
		return nil, false
	}
	x.found, x.questions = x.found[:0], x.questions+1
	steps := len(x.seen)
	for g := range x.groups + 1 {
		for entry := *x.head(hit.Sketch, g); entry > 0; entry = x.next[entry] {
			if steps--; steps < 0 {
				return nil, false
			}
			n := (entry - 1) / int32(x.groups+1)
			if x.seen[n] != x.questions {
				x.seen[n] = x.questions
				x.found = append(x.found, n)
			}
		}
	}
	return x.found, true
}

package rerank

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/neardup/sidecar/sketch"
)

// index finds those of many hits that another one can agree with at or above a threshold, without a look at all of them. Two that do share
// one of their marks at least. Every sketch has its fingerprint for a mark, and
//
//   - lists of values have each of theirs: without a common one there is no agreement above 0;
//   - k positions that agree so well differ in at most d of them. So of any d+1 groups of positions, no position in two of them, one
//     at least is equal in both. Unrelated sketches rarely share a group of two or more positions of eight bits.
type index struct {
	scheme uint32
	form   sketch.Form
	length int     // k
	least  float64 // the threshold
	// groups are how many groups of positions, of how many each.
	groups, width int
	// heads begins, for each value of a mark's hash, the chain of the entries that have it. An entry is of the hit with the number of, and
	// next goes on; 0 ends.
	heads, next, of []int32
	// seen says for each hit at which question it was found last, shared how many of its marks were, sketches what it is known by.
	seen      []int32
	shared    []int32
	sketches  []*sketch.Sketch
	questions int32
	found     []int32
}

const (
	// many is from how many leaders on an index is worth its room and time, manyLists the same where those are lists of values, which take
	// hundreds of times as long to compare.
	many      = 1200
	manyLists = 24
	// maxEntries bounds the room: 12 bytes each, or some more.
	maxEntries = 4 << 20
	valueSize  = 8
	// sameText is more marks than a sketch has.
	sameText = 1 << 16
)

// newIndex returns an index for as many hits as stand in the list, or nil where it would find little or nothing faster.
func newIndex(hits []Hit) *index {
	x := &index{least: math.Inf(1)}
	known, entries := false, 0
	for i := range hits {
		s, p := hits[i].Sketch, hits[i].profile()
		if s == nil {
			continue
		}
		if !known && (lists(s.Form) || s.Form == sketch.Positions && s.Bits == 8) {
			x.scheme, x.form, x.length, known = s.Scheme, s.Form, len(s.Payload), true
		}
		if p.Measure != Containment || x.listed() {
			x.least = min(x.least, p.Threshold)
		}
		entries += 1 + len(s.Payload)/valueSize
	}
	switch {
	case !known || math.IsNaN(x.least) || math.IsInf(x.least, 1): // nothing could be looked up
		return nil
	case x.listed():
		if !(x.least > 0) {
			return nil
		}
	default:
		x.groups = max(x.length-leastEqual(x.length, x.least), 0) + 1
		x.width = min(x.length/x.groups, 8)
		entries = len(hits) * (x.groups + 1)
		if x.width < 2 {
			return nil
		}
	}
	if entries > maxEntries {
		return nil
	}
	size := 1
	for size < 2*entries {
		size *= 2
	}
	x.heads = make([]int32, size)
	x.next, x.of = append(make([]int32, 0, entries+1), 0), append(make([]int32, 0, entries+1), 0)
	return x
}

// listed reports whether sketches are lists of values.
func (x *index) listed() bool { return lists(x.form) }

func lists(form sketch.Form) bool { return form == sketch.Values || form == sketch.Sample }

// add adds the next hit.
func (x *index) add(s *sketch.Sketch) {
	number := int32(len(x.seen))
	x.seen, x.shared, x.sketches = append(x.seen, 0), append(x.shared, 0), append(x.sketches, s)
	for m := range x.marks(s) {
		head := x.head(s, m)
		x.next, x.of = append(x.next, *head), append(x.of, number)
		*head = int32(len(x.next) - 1)
	}
}

// fits reports whether a sketch can be looked up by more than its fingerprint.
func (x *index) fits(s *sketch.Sketch) bool {
	return s.Scheme == x.scheme && s.Form == x.form && (x.listed() || s.Bits == 8 && len(s.Payload) == x.length)
}

// marks is how many marks a sketch has; the first is the fingerprint.
func (x *index) marks(s *sketch.Sketch) int {
	switch {
	case !x.fits(s):
		return 1
	case x.listed():
		return 1 + len(s.Payload)/valueSize
	}
	return 1 + x.groups
}

// head is where the chain of a sketch's mark begins.
func (x *index) head(s *sketch.Sketch, mark int) *int32 {
	key := s.Fingerprint
	switch {
	case mark == 0:
	case x.listed():
		key, mark = value(s, mark-1), 1
	default:
		key = 0
		for _, b := range s.Payload[(mark-1)*x.width:][:x.width] {
			key = key<<8 | uint64(b)
		}
	}
	key = (key + uint64(mark)*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	key = (key ^ key>>32) * 0xd6e8feb86659fd93
	return &x.heads[(key^key>>32)&uint64(len(x.heads)-1)]
}

// find returns the numbers of the hits, in no order, among which are all that a hit may fold into. It reports false where all have to be
// looked at, be it that so much is alike that this is less work.
func (x *index) find(hit *Hit) ([]int32, bool) {
	if p := hit.profile(); !x.fits(hit.Sketch) || !(p.Threshold >= x.least) || p.Measure == Containment && !x.listed() {
		return nil, false
	}
	x.found, x.questions = x.found[:0], x.questions+1
	steps := len(x.seen)
	if x.listed() { // comparing lists takes far longer than going on in a chain
		steps *= 64
	}
	for m := range x.marks(hit.Sketch) {
		weight := int32(1)
		if m == 0 {
			weight = sameText
		}
		for entry := *x.head(hit.Sketch, m); entry > 0; entry = x.next[entry] {
			if steps--; steps < 0 {
				return nil, false
			}
			n := x.of[entry]
			if x.seen[n] != x.questions {
				x.seen[n], x.shared[n] = x.questions, 0
				x.found = append(x.found, n)
			}
			x.shared[n] += weight
		}
	}
	if x.listed() {
		x.found = slices.DeleteFunc(x.found, func(n int32) bool { return x.tooFew(hit, n) })
	}
	return x.found, true
}

// tooFew reports whether a list of values shares too few marks with a hit's to be a near-duplicate.
func (x *index) tooFew(hit *Hit, n int32) bool {
	if x.shared[n] >= sameText {
		return false
	}
	a, b, p := hit.Sketch, x.sketches[n], hit.profile()
	if p.Measure == Containment {
		a, b = smallerFirst(a, b)
	}
	return atMost(a, b, int(x.shared[n]), p.Measure) < p.Threshold
}

// atMost returns what the measure of two comparable lists of values does not exceed if they have no more than so many values in common.
func atMost(a, b *sketch.Sketch, common int, measure Measure) float64 {
	n, m := len(a.Payload)/valueSize, len(b.Payload)/valueSize
	looked := 0 // how many values a comparison looks at, as far as the ends of the lists tell
	switch {
	case measure == Containment && b.Cut:
		looked = sort.Search(n, func(i int) bool { return m == 0 || value(a, i) > value(b, m-1) })
	case measure == Containment:
		looked = n
	case a.Cut && b.Cut:
		looked = min(n, m)
	case a.Cut:
		looked = n
	case b.Cut:
		looked = m
	default:
		looked = n + m - common
	}
	if looked <= common {
		return 1
	}
	return float64(common) / float64(looked)
}

// value returns the value at a place of a list.
func value(s *sketch.Sketch, i int) uint64 { return binary.BigEndian.Uint64(s.Payload[i*valueSize:]) }

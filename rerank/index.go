package rerank

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/neardup/sidecar/sketch"
)

// index finds the hits that may reach a threshold with another one, without comparing all of them. Two such hits share at least one of
// their marks. The fingerprint of a sketch is a mark, and so are
//
//   - the values of a list: without a common one there is no agreement above 0;
//   - groups of positions: k positions that reach the threshold differ in at most d of them. So of any d+1 disjoint groups at least one is
//     equal in both. Unrelated sketches rarely share a group of two or more positions of eight bits.
type index struct {
	scheme uint32
	form   sketch.Form
	length int     // k
	least  float64 // the threshold
	// groups is how many groups of positions there are, width how many positions each has.
	groups, width int
	// heads holds, for each value of a mark's hash, the first entry that has it. next holds the entry after an entry, 0 for none, and owners
	// the number of its hit.
	heads, next, owners []int32
	// seen holds, for each hit, the question that found it last; shared, how many of its marks were found; sketches, its sketch.
	seen      []int32
	shared    []int32
	sketches  []*sketch.Sketch
	questions int32
	found     []int32
}

const (
	// many is the number of leaders from which an index is worth its memory and time. manyLists is the same for lists of values, which take
	// hundreds of times as long to compare.
	many      = 1200
	manyLists = 24
	// maxEntries bounds the memory: an entry takes some 12 bytes.
	maxEntries = 4 << 20
	valueSize  = 8
	// sameText is more marks than a sketch has.
	sameText = 1 << 16
)

// newIndex returns an empty index with space for the hits, or nil where it would save little or nothing.
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
	x.next, x.owners = append(make([]int32, 0, entries+1), 0), append(make([]int32, 0, entries+1), 0)
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
		x.next, x.owners = append(x.next, *head), append(x.owners, number)
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

// find returns the numbers of hits, in no order, that include all that a hit may fold into. It reports false where the caller must compare
// all of them: where there is no index, and where so many are alike that this is less work.
func (x *index) find(hit *Hit) ([]int32, bool) {
	if p := hit.profile(); x == nil || !x.fits(hit.Sketch) || !(p.Threshold >= x.least) || p.Measure == Containment && !x.listed() {
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
			n := x.owners[entry]
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

// atMost returns an upper bound of the measure of two comparable lists of values that have at most common values in common.
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

package calibrate

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

const (
	// allPairs is up to how many units every pair is compared: some eight million, in a fifth of a second.
	allPairs = 4000
	// randomPairs is how many pairs of the sample are compared at random at most.
	randomPairs = 2_000_000
	// maxCandidates is how many pairs bands may bring together, by an estimate.
	maxCandidates = 10_000_000
	// maxBucket is how many units of one band are compared each with each; of more, each with so many that follow.
	maxBucket = 64
	// maxWeight bounds the weight of a pair where bands miss most that are like it.
	maxWeight = 4
	// maxBands is how many bands are made in memory at most.
	maxBands = 64
	// maxRows is how many positions a band has at most: of those that are bits it takes many.
	maxRows = 32
)

// unit is a text: all documents that have it. They are compared with others as one.
type unit struct {
	first, size int // of docs
	// judged says that its shares are counted: all units but those that were found by looking up.
	judged bool
	// partners counts the documents at or above each of the thresholds, without the unit's own.
	partners [len(thresholds)]float32
	// near says of each hundredth of agreement whether there is a partner.
	near [128]bool
}

// nearAt is the place of an agreement in unit.near.
func nearAt(value float64) int { return min(127, int(max(0, value)*100+0.5)) }

// marked reports whether there is a partner at an agreement from low to high.
func (u *unit) marked(low, high float64) bool {
	return slices.Contains(u.near[nearAt(low):nearAt(high)+1], true)
}

// makeUnits makes a unit of all documents with the same text.
func (c *calibration) makeUnits() {
	byText := map[uint64]int{}
	for i := range c.docs {
		d := &c.docs[i]
		if at, known := byText[d.sketch.Fingerprint]; known {
			c.units[at].size++
			continue
		}
		byText[d.sketch.Fingerprint] = len(c.units)
		c.units = append(c.units, unit{first: i, size: 1, judged: true})
	}
	h := &c.report.Candidates
	for _, u := range c.units {
		h.Same += float64(u.size) * float64(u.size-1) / 2
		c.report.Copies += u.size - 1
	}
}

// weight returns how many pairs there are for each one that the report's bands find.
func (c *calibration) weight(value float64) float64 {
	if c.report.Bands == 0 {
		return 1
	}
	return min(maxWeight, 1/max(1e-9, sketch.Candidate(c.precision.Matching(max(0, value)), c.report.Bands, c.report.Rows)))
}

// countCandidate counts a pair of units among the candidates.
func (c *calibration) countCandidate(i, j int, value float64) {
	u, v := &c.units[i], &c.units[j]
	h := &c.report.Candidates
	if c.docs[u.first].sketch.SameText(&c.docs[v.first].sketch) {
		h.Same++
		return
	}
	h.Pairs++
	h.add(value, float64(u.size)*float64(v.size), c.weight(value))
	c.offer(u.first, v.first, value)
	c.gather(u.first, v.first, value, c.weight(value))
}

// countPartner counts the second of two units as a partner of the first.
func (c *calibration) countPartner(i, j int, value float64) {
	u, v := &c.units[i], &c.units[j]
	a, b := &c.docs[u.first].sketch, &c.docs[v.first].sketch
	same := a.SameText(b)
	if !c.judgeAt(u.first, v.first, value).Near() { // at no threshold
		return
	}
	for t, threshold := range thresholds {
		if same || value >= threshold {
			u.partners[t] += float32(v.size)
		}
	}
	if !same { // of the same text nothing is left to chance
		u.near[nearAt(value)] = true
	}
}

// judgeAt judges two documents of this agreement as the rule would at the lowest threshold.
func (c *calibration) judgeAt(a, b int, value float64) rerank.Reason {
	profile := c.rule.Profile
	profile.Threshold = 0
	return profile.JudgeAt(&c.docs[a].sketch, &c.docs[b].sketch, value)
}

// compareRandom compares random pairs of the sample, or all of them if there are no more than randomPairs.
func (c *calibration) compareRandom() {
	sample, h := c.docs[:c.report.Sample], &c.report.Random
	visit := func(i, j int) {
		a, b := &sample[i].sketch, &sample[j].sketch
		h.Pairs++
		if a.SameText(b) {
			h.Same++
			return
		}
		value := c.value(a, b)
		h.add(value, 1, 1)
		c.offer(i, j, value)
	}
	n := len(sample)
	if n*(n-1)/2 <= randomPairs {
		for i := range n {
			for j := i + 1; j < n; j++ {
				visit(i, j)
			}
		}
		return
	}
	random := rand.New(rand.NewPCG(c.options.Seed, 1))
	for range randomPairs {
		i, j := random.IntN(n), random.IntN(n-1)
		if j >= i {
			j++
		}
		visit(min(i, j), max(i, j))
	}
}

// compareCandidates compares all pairs, or those that share a band or a value.
func (c *calibration) compareCandidates() {
	r, n := &c.report, len(c.units)
	if n <= allPairs {
		r.Way = ByAll
		for i := range n {
			for j := i + 1; j < n; j++ {
				c.compareUnits(i, j)
			}
		}
		return
	}
	r.Way = ByValues
	if r.Bands, r.Rows = c.chooseBands(); r.Bands > 0 {
		r.Way = ByBands
	}
	c.compareByKeys()
}

// compareUnits compares two units and counts them.
func (c *calibration) compareUnits(i, j int) {
	c.report.Compared++
	value := c.value(&c.docs[c.units[i].first].sketch, &c.docs[c.units[j].first].sketch)
	c.countCandidate(i, j, value)
	c.countPartner(i, j, value)
	c.countPartner(j, i, value)
}

// chooseBands returns the fewest rows by which no more candidates are to be expected than can be compared, in all and of one band,
// going by the random pairs; none for sketches that have no bands.
func (c *calibration) chooseBands() (bands, rows int) {
	if len(c.docs) == 0 {
		return 0, 0
	}
	positions := c.report.Positions
	if _, ok := c.docs[0].sketch.AppendBands(nil, 1, 1); !ok {
		return 0, 0
	}
	n, h := float64(len(c.units)), &c.report.Random
	for rows = 2; rows < min(maxRows, positions); rows++ {
		bands = min(maxBands, positions/rows)
		share, one := 0.0, 0.0 // of pairs that share a band, and a certain one
		for bin, pairs := range h.Found {
			q := c.precision.Matching((float64(bin) + 0.5) / Bins)
			share += pairs / float64(max(1, h.Pairs)) * sketch.Candidate(q, bands, rows)
			one += pairs / float64(max(1, h.Pairs)) * sketch.Candidate(q, 1, rows)
		}
		if share*n*(n-1)/2 <= maxCandidates && one*n <= maxBucket/2 {
			break
		}
	}
	return min(maxBands, positions/rows), rows
}

// maxValues is by how many of its least values a sketch that has no bands is found: of a pair of resemblance 0.3 all but one in
// three hundred share one of 16.
const maxValues = 16

// keysOf returns what a sketch is found by, in order: its bands, or else its least values.
func (c *calibration) keysOf(s *sketch.Sketch) (keys []uint64) {
	if c.report.Bands > 0 {
		keys, _ = s.AppendBands(nil, c.report.Bands, c.report.Rows)
	} else {
		for at := 0; at+8 <= len(s.Payload) && len(keys) < maxValues; at += 8 {
			keys = append(keys, binary.BigEndian.Uint64(s.Payload[at:]))
		}
	}
	slices.Sort(keys)
	return keys
}

// compareByKeys compares the units that share a key, each pair at the least key that both have.
func (c *calibration) compareByKeys() {
	type entry struct {
		key  uint64
		unit int
	}
	keys := make([][]uint64, len(c.units))
	var entries []entry
	for i, u := range c.units {
		keys[i] = c.keysOf(&c.docs[u.first].sketch)
		for _, key := range keys[i] {
			entries = append(entries, entry{key, i})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.unit, b.unit)) })
	for from := 0; from < len(entries); {
		to, key := from+1, entries[from].key
		for to < len(entries) && entries[to].key == key {
			to++
		}
		for i := from; i < to; i++ {
			last := min(to, i+1+maxBucket)
			c.report.Capped = c.report.Capped || last < to
			for _, other := range entries[i+1 : last] {
				if a, b := entries[i].unit, other.unit; leastCommon(keys[a], keys[b]) == key {
					c.compareUnits(a, b)
				}
			}
		}
		from = to
	}
}

// leastCommon returns the first number that two sorted lists, which share one, have in common.
func leastCommon(a, b []uint64) uint64 {
	for i, j := 0, 0; ; {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			return a[i]
		}
	}
}

// ofResemblance reports whether the threshold is held against resemblance.
func (c *calibration) ofResemblance() bool { return c.rule.Profile.Measure != rerank.Containment }

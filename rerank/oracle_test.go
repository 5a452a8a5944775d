package rerank

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/neardup/sidecar/sketch"
)

// The collapsed list by its definition (doc.go), written out on its own and as plainly as it can be, at whatever cost: the oracle of
// Collapse, FindPage and Walk. It shares no code with them but the types.

// definedNear: hit i may fold into hit j, which stands before it.
func definedNear(i, j Hit) bool {
	if i.Sketch == nil || j.Sketch == nil || i.Pinned {
		return false
	}
	if same, is := definedDecision(i, j); is {
		return same
	}
	p := i.Profile
	a, b, known := i.Traits, j.Traits, true
	if j.Profile.Basis != p.Basis {
		b, known = j.Others[p.Basis]
	}
	if !known && (p.Same || p.Different || p.Within > 0) {
		return false
	}
	if p.Same && !(a.Same != "" && b.Same != "" && a.Same == b.Same) {
		return false
	}
	if p.Different {
		if len(a.Different) == 0 || len(b.Different) == 0 {
			return false
		}
		for f := range a.Different {
			if len(a.Different[f]) == 0 || len(b.Different[f]) == 0 {
				return false
			}
			for _, x := range a.Different[f] {
				for _, y := range b.Different[f] {
					if x == y {
						return false
					}
				}
			}
		}
	}
	if p.Within > 0 {
		apart := a.At - b.At
		if apart < 0 {
			apart = -apart
		}
		if !a.Timed || !b.Timed || apart > p.Within {
			return false
		}
	}
	switch p.Vector.Combine {
	case Both:
		return definedAlike(i, j) && definedVectorsAlike(i, j)
	case Either:
		return definedAlike(i, j) || definedVectorsAlike(i, j)
	}
	return definedAlike(i, j)
}

// definedVectorsAlike: the cosine of the vectors of two hits reaches the threshold. One side in a number n differs at the angle π/n.
func definedVectorsAlike(i, j Hit) bool {
	a, b := i.Sketch.Vector, j.Sketch.Vector
	if a == nil || b == nil || a.Shingles != b.Shingles || a.Scheme != b.Scheme {
		return false
	}
	differ := 0
	for at := range 8 * len(a.Payload) {
		if a.Payload[at/8]>>(at%8)&1 != b.Payload[at/8]>>(at%8)&1 {
			differ++
		}
	}
	return math.Cos(math.Pi*float64(differ)/float64(8*len(a.Payload))) >= i.Profile.Vector.Threshold
}

// definedAlike: the texts of two hits are near-duplicates.
func definedAlike(i, j Hit) bool {
	p := i.Profile
	if i.Sketch.Scheme != j.Sketch.Scheme {
		return false
	}
	if i.Sketch.Fingerprint == j.Sketch.Fingerprint {
		return true
	}
	if p.Numbers == DecideByNumbers && i.Sketch.Numbers != j.Sketch.Numbers {
		return false
	}
	if !sameWords(i.Sketch, j.Sketch) {
		if min(int(i.Sketch.Shingles), int(j.Sketch.Shingles)) < p.MinShingles {
			return false
		}
		for _, words := range []int{int(i.Sketch.Words), int(j.Sketch.Words)} {
			if words > 0 && words < p.MinWords {
				return false
			}
		}
		if p.Measure != Containment && (repeatsAlone(i.Sketch.Topics, j.Sketch.Topics) || repeatsAlone(j.Sketch.Topics, i.Sketch.Topics)) {
			return false
		}
	}
	equal, k := 0, len(i.Sketch.Payload)
	for at := range k {
		if i.Sketch.Payload[at] == j.Sketch.Payload[at] {
			equal++
		}
	}
	resemblance := (float64(equal)/float64(k) - 1.0/256) / (1 - 1.0/256)
	if p.Measure != Containment {
		return resemblance >= p.Threshold-1e-12
	}
	small, large := i.Sketch, j.Sketch
	if large.Shingles < small.Shingles {
		small, large = large, small
	}
	e, ok := small.Containment(large)
	return ok && e.Value >= p.Threshold && e.Error <= 0.16
}

// definedDecision: what was decided about two hits with these texts, if anything was.
func definedDecision(i, j Hit) (same, is bool) {
	if i.Decided == nil || j.Decided == nil {
		return false, false
	}
	for _, d := range i.Decided.Pairs {
		if d.Other == j.Decided.Document && d.Fingerprint == j.Sketch.Fingerprint {
			return d.Same, true
		}
	}
	return false, false
}

// definedDifferent: the two hits were decided to be different.
func definedDifferent(hits []Hit, i, j int) bool {
	if hits[i].Sketch == nil || hits[j].Sketch == nil {
		return false
	}
	same, is := definedDecision(hits[max(i, j)], hits[min(i, j)])
	return is && !same
}

// definedGroups: the members of each group, by its first.
func definedGroups(hits []Hit, transitive bool) [][]int {
	return definedGroupsBy(hits, transitive, func(i, j int) bool { return definedNear(hits[i], hits[j]) })
}

// definedGroupsBy: the same, where it is known which hits may fold into which before them.
func definedGroupsBy(hits []Hit, transitive bool, near func(i, j int) bool) [][]int {
	var groups [][]int
	if !transitive {
		for i := range hits {
			g := slices.IndexFunc(groups, func(members []int) bool { return near(i, members[0]) })
			if g >= 0 {
				groups[g] = append(groups[g], i)
			} else {
				groups = append(groups, []int{i})
			}
		}
		return groups
	}
	edge := func(i, j int) bool {
		i, j = max(i, j), min(i, j)
		return !hits[i].Pinned && !hits[j].Pinned && near(i, j)
	}
	of := make([]int, len(hits)) // the group of each, from 1
	for i := range hits {
		if of[i] > 0 {
			continue
		}
		group := []int{i}
		of[i] = len(groups) + 1
		for at := 0; at < len(group); at++ {
			for j := range hits {
				if of[j] == 0 && edge(group[at], j) {
					of[j] = len(groups) + 1
					group = append(group, j)
				}
			}
		}
		slices.Sort(group)
		groups = append(groups, definedApart(hits, group, edge)...)
	}
	slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
	// Components behind a pinned hit that a member is near to are its, unless that would bring two hits together that were decided to be different.
	var joined [][]int
	for _, group := range groups {
		into := slices.IndexFunc(joined, func(members []int) bool {
			p, clash := members[0], false
			for _, i := range group {
				for _, j := range members {
					clash = clash || definedDifferent(hits, i, j)
				}
			}
			return hits[p].Pinned && !clash && slices.ContainsFunc(group, func(i int) bool { return p < group[0] && near(i, p) })
		})
		if into < 0 {
			joined = append(joined, group)
			continue
		}
		joined[into] = append(joined[into], group...)
		slices.Sort(joined[into])
	}
	return joined
}

// definedApart: a component, in as many parts as it has where two of its members were decided to be different: the pairs are gone through, decided ones first, then
// from the greatest agreement to the least, ties by the later and then the earlier rank. Each joins the parts that it links, unless that would bring two members
// together that were decided to be different.
func definedApart(hits []Hit, group []int, edge func(i, j int) bool) [][]int {
	different := func(i, j int) bool { return definedDifferent(hits, i, j) }
	var pairs [][2]int
	apart := false
	for _, i := range group {
		for _, j := range group {
			if j < i {
				apart = apart || different(i, j)
				if edge(i, j) {
					pairs = append(pairs, [2]int{i, j})
				}
			}
		}
	}
	if !apart {
		return [][]int{group}
	}
	weight := func(p [2]int) float64 {
		i, j := hits[p[0]], hits[p[1]]
		if _, is := definedDecision(i, j); is {
			return 2
		}
		e, _ := i.Profile.Estimate(i.Sketch, j.Sketch)
		return e.Value
	}
	slices.SortStableFunc(pairs, func(p, q [2]int) int {
		if by := weight(q) - weight(p); by != 0 {
			return map[bool]int{true: 1, false: -1}[by > 0]
		}
		return slices.Compare(p[:], q[:])
	})
	part := map[int]int{}
	for _, i := range group {
		part[i] = i
	}
	for _, p := range pairs {
		from, to, clash := part[p[0]], part[p[1]], false
		for _, i := range group {
			for _, j := range group {
				clash = clash || part[i] == from && part[j] == to && different(i, j)
			}
		}
		for _, i := range group {
			if !clash && part[i] == from {
				part[i] = to
			}
		}
	}
	parts := map[int][]int{}
	for _, i := range group {
		parts[part[i]] = append(parts[part[i]], i)
	}
	return slices.Collect(maps.Values(parts))
}

// definedBetter: of two members, a is before b by the leader's criterion.
func definedBetter(leader, a, b Hit, rankA, rankB int) bool {
	p := leader.Profile
	if p == nil || !p.Chooses {
		return rankA < rankB
	}
	merit := func(h Hit) Merit {
		if h.Profile.Basis == p.Basis {
			return h.Traits.Merit
		}
		return h.Others[p.Basis].Merit
	}
	x, y := merit(a), merit(b)
	switch {
	case x.Known != y.Known:
		return x.Known
	case !x.Known:
	case x.Number != y.Number:
		return x.Number > y.Number != p.Ascending
	case x.Text != y.Text:
		return x.Text > y.Text != p.Ascending
	}
	return rankA < rankB
}

// defined returns the whole collapsed list as ranks, how many were folded, and the groups.
func defined(hits []Hit, window int, transitive bool) (list []int, folded int, groups []Group) {
	within := hits[:min(window, len(hits))]
	place := map[int]int{} // what is shown where
	for _, members := range definedGroups(within, transitive) {
		leader, order := members[0], slices.Clone(members)
		for i := range order { // the best of what is left to the front, one after another
			for j := i + 1; j < len(order); j++ {
				if hits[order[i]].Pinned && i == 0 {
					continue
				}
				if definedBetter(hits[leader], hits[order[j]], hits[order[i]], order[j], order[i]) {
					order[i], order[j] = order[j], order[i]
				}
			}
		}
		keep := 1
		if p := hits[leader].Profile; p != nil && p.Keep > 1 {
			keep = p.Keep
		}
		keep = min(keep, len(order))
		g := Group{Leader: leader, Representative: order[0], Kept: slices.Clone(order[1:keep]), Folded: slices.Clone(order[keep:])}
		slices.Sort(g.Kept)
		slices.Sort(g.Folded)
		groups = append(groups, g)
		folded += len(g.Folded)
		place[leader] = order[0]
		for _, rank := range order[1:keep] {
			if rank == leader {
				place[order[0]] = rank
			} else {
				place[rank] = rank
			}
		}
	}
	for at := range within {
		if rank, ok := place[at]; ok {
			list = append(list, rank)
		}
	}
	for at := len(within); at < len(hits); at++ {
		list = append(list, at)
	}
	return list, folded, groups
}

// sameWords: two texts differ in nothing that their words would show.
func sameWords(a, b *sketch.Sketch) bool {
	return a.Shingles == b.Shingles && a.Words == b.Words && a.Numbers == b.Numbers && string(a.Payload) == string(b.Payload)
}

// repeatsAlone: by their tables of topics, the first text often has a word that the second does not repeat.
func repeatsAlone(a, b []byte) bool {
	for cell := range 4 * min(len(a), len(b)) {
		often := a[cell/8]&(1<<(cell%8)) != 0
		repeated := b[len(b)/2+cell/8]&(1<<(cell%8)) != 0
		if often && !repeated {
			return true
		}
	}
	return false
}

// kind says what random lists are made of.
type kind struct {
	duplicates float64
	families   int
	profiles   []*Profile
	nils, pins float64
	decided    float64 // decisions for each hit
}

// randomKind draws profiles of every sort; with ranked, only those that show leaders.
func randomKind(r *rand.Rand, ranked bool) kind {
	k := kind{duplicates: r.Float64(), families: 1 + r.IntN(30)}
	if r.IntN(2) == 0 {
		k.nils = 0.1
	}
	if r.IntN(3) == 0 {
		k.pins = 0.15
	}
	if r.IntN(2) == 0 {
		k.decided = []float64{0.1, 1}[r.IntN(2)]
	}
	for range 1 + r.IntN(3) {
		p := &Profile{Threshold: 0.5 + 0.45*r.Float64(), Keep: max(0, r.IntN(6)-1)}
		p.Basis = []string{"", "x"}[r.IntN(8)/7]
		p.Same, p.Different = r.IntN(5) == 0, r.IntN(5) == 0
		if r.IntN(5) == 0 {
			p.Within = 1 + r.Int64N(12)
		}
		if r.IntN(6) == 0 {
			p.MinShingles = 60
		}
		if r.IntN(6) == 0 {
			p.MinWords = 50
		}
		if r.IntN(6) == 0 {
			p.Numbers = DecideByNumbers
		}
		if r.IntN(6) == 0 {
			p.Measure = Containment
		}
		if combine := r.IntN(6); combine < 2 {
			p.Vector = Vector{Combine: []Combine{Both, Either}[combine], Threshold: 0.7 + 0.3*r.Float64()}
		}
		if !ranked {
			p.Chooses, p.Ascending = r.IntN(2) == 0, r.IntN(2) == 0
		}
		k.profiles = append(k.profiles, p)
	}
	return k
}

func randomTraits(r *rand.Rand) (t Traits) {
	t.Same = []string{"", "red", "blue", "red"}[r.IntN(4)]
	if r.IntN(8) > 0 {
		t.Different = [][]string{{}, {"lang"}}
		for range r.IntN(3) {
			t.Different[0] = append(t.Different[0], []string{"a", "b", "c", "d", "e"}[r.IntN(5)])
		}
		t.Different[1][0] += fmt.Sprint(r.IntN(9))
	}
	t.At, t.Timed = int64(r.IntN(40))-20, r.IntN(8) > 0
	if r.IntN(6) > 0 {
		t.Merit = Merit{Known: true, Number: float64(r.IntN(4))}
		if r.IntN(3) == 0 {
			t.Merit.Text = []string{"m", "n"}[r.IntN(2)]
		}
	}
	return t
}

// list draws a list of n hits.
func (k kind) list(r *rand.Rand, n int) []Hit {
	hits := make([]Hit, n)
	for i := range hits {
		family, differ := byte(60+r.IntN(190)), r.IntN(3)
		if r.Float64() < k.duplicates {
			family, differ = byte(r.IntN(k.families)), r.IntN(45)
		}
		h := hit(fmt.Sprint("h", i), family, differ)
		s := *h.Sketch
		s.Shingles = []uint32{40, 100, 100, 400}[r.IntN(4)]
		s.Words = []uint32{0, 30, 80, 80}[r.IntN(4)]
		s.Numbers = []uint32{0, 0, 0, 5}[r.IntN(4)]
		if often := r.IntN(6); often < 3 { // its words that occur often, all of which are repeated
			s.Topics = make([]byte, 28)
			s.Topics[often], s.Topics[14+often] = 1<<often, 1<<often
			s.Topics[14], s.Topics[15] = s.Topics[14]|1, s.Topics[15]|2 // two words are repeated in every text
		}
		if r.IntN(10) == 0 {
			s.Scheme = 2
		}
		s.Vector = randomVector(r)
		h.Sketch, h.Profile = &s, k.profiles[r.IntN(len(k.profiles))]
		h.Traits, h.Pinned = randomTraits(r), r.Float64() < k.pins
		for _, basis := range []string{"", "x"} {
			if basis != h.Profile.Basis && r.IntN(2) == 0 {
				h.Others = map[string]Traits{basis: randomTraits(r)}
			}
		}
		if r.Float64() < k.nils {
			h.Sketch, h.Profile, h.Traits, h.Others = nil, nil, Traits{}, nil
		}
		hits[i] = h
	}
	k.decide(r, hits)
	return hits
}

// randomVector draws the sketch of a vector of 64 sides, near one of three; or of a document without one, or nil.
func randomVector(r *rand.Rand) *sketch.Sketch {
	kind := r.IntN(12)
	if kind < 2 {
		return nil
	}
	v := &sketch.Sketch{Scheme: 7, Form: sketch.VectorSides, Bits: 1, Shingles: 300, Payload: slices.Repeat([]byte{[]byte{0, 255, 15}[r.IntN(3)]}, 8)}
	for range r.IntN(14) {
		side := r.IntN(64)
		v.Payload[side/8] ^= 1 << (side % 8)
	}
	switch kind {
	case 2:
		v.Scheme = 8
	case 3:
		v.Shingles = 301
	}
	return v
}

// decide draws decisions about pairs of hits, some of them about another text.
func (k kind) decide(r *rand.Rand, hits []Hit) {
	for range int(k.decided * float64(len(hits))) {
		i, j, same := r.IntN(len(hits)), r.IntN(len(hits)), r.IntN(2) == 0
		if hits[i].Sketch == nil || hits[j].Sketch == nil || i == j {
			continue
		}
		texts := [2]uint64{hits[i].Sketch.Fingerprint, hits[j].Sketch.Fingerprint}
		if changed := r.IntN(8); changed < 2 {
			texts[changed]++
		}
		for at, one := range []int{i, j} {
			other := []int{j, i}[at]
			own := texts[at] == hits[one].Sketch.Fingerprint // else it is not one of this hit
			if hits[one].Decided == nil {
				hits[one].Decided = &Decided{Document: r.Uint64()}
			}
			if hits[other].Decided == nil {
				hits[other].Decided = &Decided{Document: r.Uint64()}
			}
			d := Decision{hits[other].Decided.Document, texts[1-at], same}
			at, there := slices.BinarySearchFunc(hits[one].Decided.Pairs, d, Decision.Compare)
			if !there && own {
				hits[one].Decided.Pairs = slices.Insert(hits[one].Decided.Pairs, at, d)
			}
		}
	}
}

// distinct draws a sketch that agrees with no other but by chance.
func distinct(r *rand.Rand) *sketch.Sketch {
	s := &sketch.Sketch{Scheme: 1, Shingles: 100, Bits: 8, Fingerprint: r.Uint64(), Payload: make([]byte, 128)}
	for i := range s.Payload {
		s.Payload[i] = byte(r.Uint32())
	}
	return s
}

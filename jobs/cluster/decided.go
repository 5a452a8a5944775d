package cluster

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/sketch"
)

// A decided pair that is the same is an edge. One that is different never is in one cluster. A component that holds such a pair is divided: the edges among its
// texts are gone through, decided ones first, then by falling agreement, ties by the numbers, and one that would bring two different texts together is left out.
// Its edges are all pairs that are near-duplicates by their sketches. In a component of more than mostWhole texts these are only pairs that share a band, if
// there are bands.
//
// Documents of one text have one number. Of those that are different from another document of their text, the one with the lowest id keeps the number. The
// others get numbers of their own, after those of all texts.

// mostWhole is the largest component, in texts, of which all pairs are compared.
const mostWhole = 2000

// spot is where a document of a decided pair is: its place in the order of coming, and its text. The place is none if it did not come, or has no text.
type spot struct {
	place uint32
	text  uint64
}

// expect notes which documents decided pairs are about.
func (c *Corpus) expect(pairs []decided.Pair) {
	c.spots = map[string]spot{}
	for _, p := range pairs {
		c.spots[p.A], c.spots[p.B] = spot{place: none}, spot{place: none}
	}
}

// notice notes where a document with a text is, if a decided pair is about it.
func (c *Corpus) notice(id string, text, place uint64) {
	if _, is := c.spots[id]; is {
		c.spots[id] = spot{uint32(place), text}
	}
}

// decidedIn returns the decided pairs of the verdict whose documents are there, with the texts that were decided about. A text of 0 is any.
func (c *Corpus) decidedIn(v decided.Verdict) (pairs [][2]spot) {
	for _, p := range c.options.Decided {
		a, b := c.spots[p.A], c.spots[p.B]
		if p.Verdict == v && a.place != none && b.place != none && a != b && (p.TextA == 0 || p.TextA == a.text) && (p.TextB == 0 || p.TextB == b.text) {
			pairs = append(pairs, [2]spot{a, b})
		}
	}
	return pairs
}

// partTexts gives documents numbers of their own that are different from others of their text. It is called before anything is joined.
func (c *Corpus) partTexts() error {
	c.ordinary = uint32(len(c.at))
	own := map[uint32]bool{}
	for _, pair := range c.decidedIn(decided.Different) {
		if pair[0].text == pair[1].text {
			own[pair[0].place], own[pair[1].place] = true, true
		}
	}
	if len(own) == 0 {
		return nil
	}
	ids, r := map[uint32]string{}, reader{c: c}
	for place := range own {
		names, err := r.read(place, 0)
		if err != nil {
			return err
		}
		ids[place] = cutText(&names)
	}
	first := map[uint32]bool{} // the numbers that a document has kept
	for _, place := range slices.SortedFunc(maps.Keys(own), func(a, b uint32) int { return cmp.Compare(ids[a], ids[b]) }) {
		if number := c.number[place]; !first[number] {
			first[number], c.at[number] = true, place
		} else {
			c.number[place] = uint32(len(c.at))
			c.at = append(c.at, place)
			c.again = append(c.again, number)
		}
	}
	return nil
}

// name returns the number that a cluster is named for, given its first document. A document that was parted from others of its text has another one.
func (c *Corpus) name(root uint32, first *Member) uint64 {
	if root == none || root < c.ordinary {
		return first.Fingerprint
	}
	return first.Fingerprint ^ c.options.Rule.NumberOf(first.ID)
}

// edge joins two texts. Its agreement is above 1 where it was decided.
type edge struct {
	a, b      uint32
	agreement float64
}

// decide joins what is the same, and divides the components that hold what is different.
func (c *Corpus) decide(ctx context.Context) error {
	if len(c.options.Decided) == 0 {
		return nil
	}
	var same []edge
	for _, pair := range c.decidedIn(decided.Same) {
		a, b := c.number[pair[0].place], c.number[pair[1].place]
		same = append(same, edge{min(a, b), max(a, b), 2})
		c.forest.Join(a, b)
	}
	apart, members := map[uint32][]uint32{}, map[uint32][]uint32{}
	for _, pair := range c.decidedIn(decided.Different) {
		a, b := c.number[pair[0].place], c.number[pair[1].place]
		apart[a], apart[b] = append(apart[a], b), append(apart[b], a)
		if root := c.forest.Of(a); root == c.forest.Of(b) {
			members[root] = nil
		}
	}
	if len(members) == 0 {
		return nil
	}
	for number := range uint32(len(c.at)) {
		root := c.forest.Of(number)
		if list, divided := members[root]; divided {
			members[root] = append(list, number)
		}
	}
	edges := map[uint32][]edge{}
	for _, e := range same {
		edges[c.forest.Of(e.a)] = append(edges[c.forest.Of(e.a)], e)
	}
	for i, root := range slices.Sorted(maps.Keys(members)) {
		c.progress("dividing clusters", i, len(members))
		list, err := c.edgesAmong(ctx, members[root])
		if err != nil {
			return err
		}
		c.divide(members[root], append(edges[root], list...), apart)
	}
	return nil
}

// divide makes the component of the members anew by its edges.
func (c *Corpus) divide(members []uint32, edges []edge, apart map[uint32][]uint32) {
	slices.SortFunc(edges, func(x, y edge) int {
		return cmp.Or(cmp.Compare(y.agreement, x.agreement), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	avoided := map[uint32][]uint32{} // by each component, the texts that none of its members is to be with
	for _, number := range members {
		c.forest[number].Store(number)
		avoided[number] = apart[number]
	}
	for _, e := range edges {
		a, b := c.forest.Of(e.a), c.forest.Of(e.b)
		if a == b || slices.ContainsFunc(avoided[a], func(other uint32) bool { return c.forest.Of(other) == b }) {
			continue
		}
		all := slices.Concat(avoided[a], avoided[b])
		c.forest.Join(a, b)
		avoided[c.forest.Of(a)] = all
	}
}

// edgesAmong returns the near-duplicates among the texts of a component.
func (c *Corpus) edgesAmong(ctx context.Context, members []uint32) (edges []edge, err error) {
	r, sketches := reader{c: c}, make([]sketch.Sketch, len(members))
	for i, number := range members {
		if _, err := r.read(c.at[number], 0); err != nil {
			return nil, err
		}
		s := r.sketches[0]
		s.Payload, s.Topics = bytes.Clone(s.Payload), bytes.Clone(s.Topics)
		sketches[i] = s
	}
	profile, looked := &c.options.Rule.Profile, 0
	look := func(i, j int) bool {
		if looked++; looked%looksEvery == 0 && ctx.Err() != nil {
			return false
		}
		if near, agreement := profile.NearDuplicates(&sketches[i], &sketches[j]); near {
			edges = append(edges, edge{members[i], members[j], agreement})
		}
		return true
	}
	if len(members) <= mostWhole || c.options.Algorithm != Bands {
		for i := range members {
			for j := range members[:i] {
				if !look(j, i) {
					return nil, ctx.Err()
				}
			}
		}
		return edges, ctx.Err()
	}
	pairs, err := c.pairsWithin(sketches)
	for _, p := range pairs {
		if err != nil || !look(int(p>>32), int(uint32(p))) {
			return nil, cmp.Or(err, ctx.Err())
		}
	}
	return edges, cmp.Or(err, ctx.Err())
}

// pairsWithin returns the pairs of sketches that share a band, each once: the place of the lesser one in the high half.
func (c *Corpus) pairsWithin(sketches []sketch.Sketch) (pairs []uint64, err error) {
	bands := c.options.Rule.Bands
	keys := make([][]uint64, len(sketches))
	for i := range sketches {
		if keys[i], err = c.keys(nil, &sketches[i], bands); err != nil {
			return nil, err
		}
		if !c.options.Rule.Profile.Long(&sketches[i]) {
			keys[i] = []uint64{sketches[i].WordsKey()}
		}
	}
	for band := range bands {
		buckets := map[uint64][]uint64{}
		for i := range sketches {
			if band < len(keys[i]) {
				buckets[keys[i][band]] = append(buckets[keys[i][band]], uint64(i))
			}
		}
		for _, bucket := range buckets {
			Pairs(len(bucket), func(a, b int) bool {
				pairs = append(pairs, bucket[a]<<32|bucket[b])
				return true
			})
		}
		slices.Sort(pairs) // most share several bands
		pairs = slices.Compact(pairs)
	}
	return pairs, nil
}

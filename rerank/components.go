package rerank

import "slices"

// components returns the members of each connected component of the hits that are not pinned, by first member, ascending. A component
// joins the first pinned hit before its own first member that one of its members is a near-duplicate of, unless that would bring two hits together that
// were decided to be different; otherwise a pinned hit is alone.
func components(hits []Hit, p *pace) [][]int {
	f := forest(ranks(len(hits)))
	f.connect(hits, p)
	apart := differing(hits, p)
	f.separate(hits, apart, p)
	f.adopt(hits, apart, p)
	groups := make([][]int, 0, len(hits))
	at, alone := make([]int, len(hits)), ranks(len(hits))
	for rank := range hits {
		root := f.root(rank)
		if root == rank {
			at[rank] = len(groups)
			groups = append(groups, alone[rank:rank+1:rank+1])
			continue
		}
		groups[at[root]] = append(groups[at[root]], rank)
	}
	return groups
}

// forest holds for each rank one of its own component that is no greater, itself where it is the first.
type forest []int

// connect joins the hits that are near-duplicates and not pinned.
func (f forest) connect(hits []Hit, p *pace) {
	members := leaders{list: make([]leader, 0, len(hits))} // each its own group
	for rank := range hits {
		if p.lateAt(rank) {
			return
		}
		hit := &hits[rank]
		if hit.neverFolds() {
			continue
		}
		for _, m := range members.candidates(hit) {
			if f.root(rank) != f.root(m.n) && hit.foldsInto(m.hit) {
				f.join(rank, m.n)
			}
		}
		members.add(hit, rank)
	}
}

// root returns the first rank of a rank's component.
func (f forest) root(rank int) int {
	for f[rank] != rank {
		f[rank] = f[f[rank]]
		rank = f[rank]
	}
	return rank
}

func (f forest) join(a, b int) {
	a, b = f.root(a), f.root(b)
	f[max(a, b)] = min(a, b)
}

// adopt joins components to the pinned hits that they belong to.
func (f forest) adopt(hits []Hit, apart map[int][]int, pace *pace) {
	var pinned, roots []int
	members := map[int][]int{} // of a component, by its root
	for rank := range hits {
		switch root := f.root(rank); {
		case hits[rank].Sketch == nil:
		case hits[rank].Pinned:
			pinned = append(pinned, rank)
		case len(pinned) > 0 && root > pinned[0]:
			if root == rank {
				roots = append(roots, root)
			}
			members[root] = append(members[root], rank)
		}
	}
	for _, root := range roots {
		for _, p := range pinned {
			if p > root {
				break
			}
			near := slices.ContainsFunc(members[root], func(rank int) bool { return !pace.lateAt(rank) && hits[rank].foldsInto(&hits[p]) })
			if near && !f.clash(apart, members[root], p) {
				f.join(root, p)
				break
			}
		}
	}
}

package rerank

// components returns the members of each connected component of the hits that are not pinned, by first member, ascending. A component
// joins the first pinned hit before its own first member that one of its members is a near-duplicate of; otherwise a pinned hit is alone.
func components(hits []Hit, p *pace) [][]int {
	f := forest(ranks(len(hits)))
	f.connect(hits, p)
	f.separate(hits, p)
	f.adopt(hits, p)
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
func (f forest) adopt(hits []Hit, pace *pace) {
	var pinned []int
	for rank := range hits {
		if hits[rank].Pinned && hits[rank].Sketch != nil {
			pinned = append(pinned, rank)
		}
	}
	if len(pinned) == 0 {
		return
	}
	into := make(map[int]int) // the pinned hit of a component, by its first member
	for rank := range hits {
		if pace.lateAt(rank) {
			return
		}
		if hits[rank].neverFolds() {
			continue
		}
		root := f.root(rank)
		before, ok := into[root]
		if !ok {
			before = root
		}
		for _, p := range pinned {
			if p >= before {
				break
			}
			if hits[rank].foldsInto(&hits[p]) {
				into[root] = p
				break
			}
		}
	}
	for root, p := range into {
		f.join(root, p)
	}
}

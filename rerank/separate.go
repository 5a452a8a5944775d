package rerank

import (
	"cmp"
	"slices"
)

// edge is two hits that may fold, with their agreement.
type edge struct {
	later, earlier int
	agreement      float64 // above 1 if people decided that they are the same
}

// differing returns, for each hit, the hits that people decided to be different from it.
func differing(hits []Hit, p *pace) map[int][]int {
	apart := map[int][]int{}
	var decided []int
	for rank := range hits {
		if p.lateAt(rank) {
			return nil
		}
		if hits[rank].Decided == nil || hits[rank].Sketch == nil {
			continue
		}
		for _, other := range decided {
			if d := hits[rank].Decision(&hits[other]); d != nil && !d.Same {
				apart[rank], apart[other] = append(apart[rank], other), append(apart[other], rank)
			}
		}
		decided = append(decided, rank)
	}
	return apart
}

// clash reports whether people decided that one of the hits is different from a hit of a component.
func (f forest) clash(apart map[int][]int, hits []int, root int) bool {
	return slices.ContainsFunc(hits, func(rank int) bool {
		return slices.ContainsFunc(apart[rank], func(other int) bool { return f.root(other) == root })
	})
}

// separate splits the components that hold two hits decided to be different. It rebuilds each from its edges, the strongest first, and skips an edge
// that would join two such hits. See Groups in the package's description.
func (f forest) separate(hits []Hit, apart map[int][]int, p *pace) {
	var roots []int
	for rank, others := range apart {
		for _, other := range others {
			if root := f.root(rank); root == f.root(other) {
				roots = append(roots, root)
			}
		}
	}
	slices.Sort(roots)
	for _, root := range slices.Compact(roots) {
		var members []int
		for rank := range hits {
			if f.root(rank) == root {
				members = append(members, rank)
			}
		}
		edges := edgesAmong(hits, members, p)
		with := map[int][]int{} // the members of a component, by its root
		for _, rank := range members {
			f[rank], with[rank] = rank, []int{rank}
		}
		for _, e := range edges {
			a, b := f.root(e.later), f.root(e.earlier)
			if a == b || f.clash(apart, with[a], b) {
				continue
			}
			f.join(a, b)
			with[f.root(a)] = append(with[a], with[b]...)
		}
	}
}

// edgesAmong returns the edges between hits, the strongest first.
func edgesAmong(hits []Hit, members []int, p *pace) (edges []edge) {
	for i, later := range members {
		if p.lateAt(later) {
			return nil
		}
		for _, earlier := range members[:i] {
			near, agreement := hits[later].profile().Near(&hits[later], &hits[earlier])
			if !near {
				continue
			}
			if hits[later].Decision(&hits[earlier]) != nil {
				agreement = 2
			}
			edges = append(edges, edge{later, earlier, agreement})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(b.agreement, a.agreement), cmp.Compare(a.later, b.later), cmp.Compare(a.earlier, b.earlier))
	})
	return edges
}

package rerank

import (
	"cmp"
	"slices"

	"github.com/neardup/sidecar/sketch"
)

// Hit is one rank of the engine's list.
type Hit struct {
	// ID tells whether two readings of a rank show the same document. It is opaque here.
	ID string
	// Sketch is nil for a hit that has none or none that is comparable: it is never folded and nothing is folded into it.
	Sketch *sketch.Sketch
	// Profile is that of the hit's own index. It is nil exactly where Sketch is.
	Profile *Profile
	// Pinned says that the hit stands where it does by the operator's will: it is never folded, though others are into it.
	Pinned bool
	// Traits are what the profile goes by beside the sketch.
	Traits Traits
}

// Traits are what is known of a hit beside its sketch, as far as its profile asks for it.
type Traits struct {
	// Same are the values of the fields that must be equal, joined; empty where one lacks.
	Same string
	// Different are the values of each field that must have none in common.
	Different [][]string
	// At is the hit's moment in Unix milliseconds; Timed says that there is one.
	At    int64
	Timed bool
	// Merit is what representatives are chosen by.
	Merit Merit
}

// Merit is a value to choose a representative by: a number or, among those without one, a text. The zero Merit is none.
type Merit struct {
	Known  bool
	Number float64
	Text   string
}

// Group is a leader and the hits folded into it.
type Group struct {
	// Leader is the rank of the first member, in whose place the Representative is shown.
	Leader, Representative int
	// Kept are the ranks of further members that are shown, Folded those of the ones that are not, both ascending.
	Kept, Folded []int
}

// Collapsed is the collapsed list over a window.
type Collapsed struct {
	// Groups are ordered by leader.
	Groups []Group
	// Shown are the ranks of the hits that are shown, in the order of the collapsed list.
	Shown []int
}

// Collapse returns the collapsed list of the first window hits. The ranks beyond the window belong to no group. With transitive, hits are
// grouped by connected components, otherwise by leaders.
func Collapse(hits []Hit, window int, transitive bool) Collapsed {
	hits = hits[:min(max(window, 0), len(hits))]
	group := grouped
	if transitive {
		group = components
	}
	return shown(hits, group(hits))
}

// grouped returns the members of each group, by leader, ascending.
func grouped(hits []Hit) [][]int {
	var groups [][]int
	var leaders leaders
	for rank := range hits {
		if g := leaders.of(&hits[rank]); g >= 0 {
			groups[g] = append(groups[g], rank)
			continue
		}
		leaders.add(&hits[rank], len(groups))
		groups = append(groups, []int{rank})
	}
	return groups
}

// leaders are what further hits are compared with.
type leaders []leader

type leader struct {
	hit   *Hit
	group int
}

func (ls *leaders) add(hit *Hit, group int) {
	if hit.Sketch != nil {
		*ls = append(*ls, leader{hit, group})
	}
}

// of returns the group of the first leader that hit folds into, or -1.
func (ls leaders) of(hit *Hit) int {
	if hit.Sketch == nil || hit.Pinned {
		return -1
	}
	for _, l := range ls {
		if near, _ := hit.Profile.Near(hit, l.hit); near {
			return l.group
		}
	}
	return -1
}

// components returns the members of each connected component, by first member, ascending. A pinned hit joins
// none: others join it.
func components(hits []Hit) [][]int {
	first := make([]int, len(hits)) // the first member of each hit's component, as far as is known
	var find func(int) int
	find = func(i int) int {
		if first[i] != i {
			first[i] = find(first[i])
		}
		return first[i]
	}
	for rank := range hits {
		first[rank] = rank
		if hits[rank].Sketch == nil || hits[rank].Pinned {
			continue
		}
		for other := range rank {
			a, b := find(rank), find(other)
			if a == b || hits[max(a, b)].Pinned {
				continue
			}
			if near, _ := hits[rank].Profile.Near(&hits[rank], &hits[other]); near {
				first[max(a, b)] = min(a, b)
			}
		}
	}
	var groups [][]int
	at := map[int]int{}
	for rank := range hits {
		root := find(rank)
		if root == rank {
			at[rank] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[root]] = append(groups[at[root]], rank)
	}
	return groups
}

// shown chooses what is shown of each group, and puts it in order.
func shown(hits []Hit, groups [][]int) Collapsed {
	c := Collapsed{Groups: make([]Group, len(groups))}
	in := make([]int, len(hits)) // the rank of the hit shown in each place, or -1
	for i := range in {
		in[i] = -1
	}
	for i, members := range groups {
		g, places := choose(hits, members)
		c.Groups[i] = g
		for place, rank := range places {
			in[place] = rank
		}
	}
	for _, rank := range in {
		if rank >= 0 {
			c.Shown = append(c.Shown, rank)
		}
	}
	return c
}

// choose returns the group of the members, and which of them is shown in which place. The best takes the leader's place, and the leader,
// if it is shown too, the place of the best; the others stay at their own ranks.
func choose(hits []Hit, members []int) (g Group, places map[int]int) {
	leader := members[0]
	profile := hits[leader].Profile
	g = Group{Leader: leader, Representative: leader}
	if profile == nil || len(members) == 1 {
		return g, map[int]int{leader: leader}
	}
	best := slices.Clone(members)
	if profile.Chooses {
		slices.SortStableFunc(best, func(a, b int) int { return profile.order(hits[a].Traits.Merit, hits[b].Traits.Merit) })
	}
	keep := min(max(profile.Keep, 1), len(best))
	g.Representative = best[0]
	places = map[int]int{leader: best[0]}
	for i, rank := range best {
		switch {
		case i == 0:
		case i >= keep:
			g.Folded = append(g.Folded, rank)
		case rank == leader:
			g.Kept, places[best[0]] = append(g.Kept, rank), rank
		default:
			g.Kept, places[rank] = append(g.Kept, rank), rank
		}
	}
	slices.Sort(g.Kept)
	slices.Sort(g.Folded)
	return g, places
}

// order compares two merits: negative where the first is better.
func (p *Profile) order(a, b Merit) int {
	if a.Known != b.Known {
		if a.Known {
			return -1
		}
		return 1
	}
	by := cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(b.Text, a.Text))
	if p.Ascending {
		return -by
	}
	return by
}

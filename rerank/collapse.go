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
	// Profile says what the hit folds into. Nil is the default profile.
	Profile *Profile
	// Pinned says that the hit stands where it does by the operator's will: it is never folded, though others are into it.
	Pinned bool
	// Traits are what the profile goes by beside the sketch.
	Traits Traits
	// Others are the Traits under the other bases of a search ([Profile.Basis]), as far as they are known: a condition is held against the
	// values that the profile of the hit that may fold asks for, a representative is chosen by those of the leader's. Where they are
	// not known nothing folds under a condition, and the hit has no merit.
	Others map[string]Traits
}

var standard = Default()

// profile returns the hit's profile.
func (h *Hit) profile() *Profile {
	if h.Profile == nil {
		return &standard
	}
	return h.Profile
}

// traits returns the hit's traits of a basis, nil where they are not known.
func (h *Hit) traits(basis string) *Traits {
	if h.profile().Basis == basis {
		return &h.Traits
	}
	if t, ok := h.Others[basis]; ok {
		return &t
	}
	return nil
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

// Collapse returns the collapsed list of the first window hits. The ranks beyond the window belong to no group.
func Collapse(hits []Hit, window int) Collapsed { return collapse(hits, window, grouped, &pace{}) }

// CollapseTransitive is Collapse with groups that are connected components.
func CollapseTransitive(hits []Hit, window int) Collapsed {
	return collapse(hits, window, components, &pace{})
}

// collapse is Collapse with any way of grouping, at a pace: what it returns where the time is over is of no use.
func collapse(hits []Hit, window int, group func([]Hit, *pace) [][]int, p *pace) Collapsed {
	hits = hits[:min(max(window, 0), len(hits))]
	return shown(hits, group(hits, p))
}

// grouped returns the members of each group, by leader, ascending.
func grouped(hits []Hit, p *pace) [][]int {
	groups := make([][]int, 0, len(hits)) // few fold
	leaders, alone := leaders{of: hits, list: make([]leader, 0, len(hits))}, ranks(len(hits))
	for rank := range hits {
		if p.out(rank) {
			break
		}
		if g := leaders.group(&hits[rank]); g >= 0 {
			groups[g] = append(groups[g], rank)
			continue
		}
		leaders.add(&hits[rank], len(groups))
		groups = append(groups, alone[rank:rank+1:rank+1])
	}
	return groups
}

// ranks returns the ranks from 0 to before n.
func ranks(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// leaders are what further hits are compared with.
type leaders struct {
	// of are all the hits among which the leaders are, if known: what an index is made for.
	of    []Hit
	list  []leader
	index *index
}

type leader struct {
	outline
	hit   *Hit
	group int
}

func (ls *leaders) add(hit *Hit, group int) {
	if hit.Sketch == nil {
		return
	}
	ls.list = append(ls.list, leader{outlineOf(hit.Sketch), hit, group})
	if n := len(ls.list); ls.of != nil && ls.index == nil && (n == many || n == manyLists && lists(hit.Sketch.Form)) {
		if ls.index = newIndex(ls.of); ls.index != nil {
			for _, l := range ls.list[:n-1] {
				ls.index.add(l.hit.Sketch)
			}
		}
	}
	if ls.index != nil {
		ls.index.add(hit.Sketch)
	}
}

// group returns the group of the first leader that hit folds into, or -1.
func (ls *leaders) group(hit *Hit) int {
	if hit.leads() {
		return -1
	}
	p := newProbe(hit)
	if ls.index != nil {
		if found, ok := ls.index.find(hit); ok {
			return ls.first(&p, found)
		}
	}
	for i := range ls.list {
		if l := &ls.list[i]; !p.apart(&l.outline) && p.near(l.hit) {
			return l.group
		}
	}
	return -1
}

// first returns the group of the first of some leaders that a hit folds into, or -1.
func (ls *leaders) first(p *probe, some []int32) int {
	least := int32(len(ls.list))
	for _, i := range some {
		if l := &ls.list[i]; i < least && !p.apart(&l.outline) && p.near(l.hit) {
			least = i
		}
	}
	if int(least) == len(ls.list) {
		return -1
	}
	return ls.list[least].group
}

// shown chooses what is shown of each group, and puts it in order.
func shown(hits []Hit, groups [][]int) Collapsed {
	c := Collapsed{Groups: make([]Group, len(groups))}
	in := make([]int, len(hits)) // the rank of the hit shown in each place, or -1
	for i := range in {
		in[i] = -1
	}
	for i, members := range groups {
		c.Groups[i] = choose(hits, members, in)
	}
	c.Shown = make([]int, 0, len(groups))
	for _, rank := range in {
		if rank >= 0 {
			c.Shown = append(c.Shown, rank)
		}
	}
	return c
}

// choose returns the group of the members, and notes which of them is shown in which place. The best takes the leader's place, and the
// leader, if it is shown too, the place of the best; the others stay at their own ranks. A pinned leader is its group's best, whatever
// the others are.
func choose(hits []Hit, members, in []int) Group {
	leader := members[0]
	profile := hits[leader].profile()
	g := Group{Leader: leader, Representative: leader}
	in[leader] = leader
	if len(members) == 1 {
		return g
	}
	best := slices.Clone(members)
	if profile.Chooses {
		sorted := best
		if hits[leader].Pinned {
			sorted = best[1:]
		}
		slices.SortStableFunc(sorted, func(a, b int) int { return profile.Compare(&hits[a], &hits[b]) })
	}
	keep := min(max(profile.Keep, 1), len(best))
	g.Representative, in[leader] = best[0], best[0]
	for _, rank := range best[1:keep] {
		place := rank
		if rank == leader {
			place = best[0]
		}
		g.Kept, in[place] = append(g.Kept, rank), rank
	}
	g.Folded = append(g.Folded, best[keep:]...)
	slices.Sort(g.Kept)
	slices.Sort(g.Folded)
	return g
}

// Compare compares two members of a group whose leader has the profile: negative where the first is shown rather than the second, 0 where
// their ranks decide.
func (p *Profile) Compare(a, b *Hit) int {
	if !p.Chooses {
		return 0
	}
	return p.order(p.merit(a), p.merit(b))
}

// merit is a member's merit by the leader's profile.
func (p *Profile) merit(member *Hit) Merit {
	if t := member.traits(p.Basis); t != nil {
		return t.Merit
	}
	return Merit{}
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

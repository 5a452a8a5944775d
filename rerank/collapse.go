package rerank

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/neardup/sidecar/sketch"
)

// Hit is one rank of the engine's list.
type Hit struct {
	// ID identifies the document, so that two readings of a rank can be compared. It is opaque here.
	ID string
	// Sketch is nil for a hit that has none or none that is comparable: it is never folded and nothing is folded into it.
	Sketch *sketch.Sketch
	// Profile says what the hit folds into. Nil is the default profile.
	Profile *Profile
	// Pinned says that the operator chose the rank of the hit. It is never folded; others may fold into it.
	Pinned bool
	// Traits are what the profile uses beside the sketch.
	Traits Traits
	// Decided is what people have decided about the hit, nil for nothing.
	Decided *Decided
	// Label is for the caller: what it calls the group that the hit leads. A [Walk] keeps it.
	Label string
	// Others are the Traits under the other bases of a search ([Profile.Basis]). A condition uses the basis of the hit that may fold, the
	// choice of a representative that of the leader. Without Traits of that basis nothing folds under a condition, and the hit has no merit.
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

// Traits are the values of a hit that its profile uses beside the sketch.
type Traits struct {
	// Same holds the values of the fields that must be equal, joined. It is empty where one is missing.
	Same string
	// Different holds, for each field in which hits must differ, its values.
	Different [][]string
	// At is the time of the hit in Unix milliseconds, if Timed.
	At    int64
	Timed bool
	// Merit is the value by which representatives are chosen.
	Merit Merit
}

// Merit is a value to choose a representative by: a number or, among equal numbers, a text. The zero Merit is no value.
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
func Collapse(hits []Hit, window int) Collapsed {
	groups, shown, _ := collapse(hits, Page{Window: window}, &pace{})
	return Collapsed{groups, shown}
}

// CollapseTransitive is Collapse with groups that are connected components.
func CollapseTransitive(hits []Hit, window int) Collapsed {
	groups, shown, _ := collapse(hits, Page{Window: window, Transitive: true}, &pace{})
	return Collapsed{groups, shown}
}

// collapse returns the groups of the hits in the page's window, and the ranks that are shown. earlier is how many hits fold into leaders in front of the
// list: these belong to no group. If the pace is late afterwards, the results are incomplete.
func collapse(hits []Hit, page Page, p *pace) (groups []Group, shown []int, earlier int) {
	hits = hits[:min(max(page.Window, 0), len(hits))]
	if page.Transitive && page.After == nil {
		groups, shown = showGroups(hits, components(hits, p))
		return groups, shown, 0
	}
	var showing, beside []int // how many members of each walked leader's group are shown, and the ranks of those in this list
	var before leaders
	if page.After != nil {
		before = page.After.leaders
		showing = make([]int, len(before.list))
	}
	members := make([][]int, 0, len(hits)) // of each group; few fold
	leaders, alone := leaders{list: make([]leader, 0, len(hits))}, ranks(len(hits))
	for rank := range hits {
		if p.lateAt(rank) {
			break
		}
		hit := &hits[rank]
		if len(showing) > 0 {
			if at := before.place(hit); at >= 0 {
				if l := &before.list[at]; l.n+showing[at] < l.hit.profile().Keep {
					showing[at]++
					beside = append(beside, rank)
				} else {
					earlier++
				}
				continue
			}
		}
		if at := leaders.place(hit); at >= 0 {
			g := leaders.list[at].n
			members[g] = append(members[g], rank)
			continue
		}
		leaders.add(hit, len(members))
		members = append(members, alone[rank:rank+1:rank+1])
	}
	groups, shown = showGroups(hits, members)
	if len(beside) > 0 {
		shown = append(shown, beside...)
		slices.Sort(shown)
	}
	return groups, shown, earlier
}

// neverFolds reports whether a hit is a leader whatever comes before it.
func (h *Hit) neverFolds() bool { return h.Sketch == nil || h.Pinned }

// foldsInto reports whether a hit may fold into one of a lower rank.
func (h *Hit) foldsInto(other *Hit) bool {
	near, _ := h.profile().Near(h, other)
	return near
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
	list   []leader
	values *values // of the leaders whose sketches are lists; nil: all are compared
}

// leader is a hit that others are compared with. n is the number of its group.
type leader struct {
	outline
	hit *Hit
	n   int
}

func (ls *leaders) add(hit *Hit, group int) {
	if hit.Sketch == nil {
		return
	}
	if isList(hit.Sketch) {
		if ls.values == nil {
			ls.values = newValues(cap(ls.list))
		}
		ls.values.add(hit.Sketch, len(ls.list))
	}
	ls.list = append(ls.list, leader{outlineOf(hit.Sketch), hit, group})
}

// candidates yields, in order, the leaders that a hit may fold into, with their places. It skips a leader if a quick look rules it out and nothing is decided
// about the two.
func (ls *leaders) candidates(hit *Hit) iter.Seq2[int, *leader] {
	return func(yield func(int, *leader) bool) {
		if hit.neverFolds() {
			return
		}
		decided := hit.Decided != nil
		if ls.values != nil && isList(hit.Sketch) && hit.profile().Threshold > 0 && hit.profile().Vector.Combine != Either {
			for i, shared := range ls.values.count(hit.Sketch, len(ls.list)) {
				l := &ls.list[i]
				near := shared > 0 && hit.profile().mayReach(hit.Sketch, l.hit.Sketch, shared)
				if (near || decided && hit.Decision(l.hit) != nil) && !yield(i, l) {
					return
				}
			}
			return
		}
		p := newProbe(hit) // a quick look at two bits of each position: most pairs differ too much in these
		for i := range ls.list {
			if l := &ls.list[i]; (!p.rulesOut(&l.outline) || decided && hit.Decision(l.hit) != nil) && !yield(i, l) {
				return
			}
		}
	}
}

// place returns the place of the first leader that a hit folds into, or -1.
func (ls *leaders) place(hit *Hit) int {
	for i, l := range ls.candidates(hit) {
		if hit.foldsInto(l.hit) {
			return i
		}
	}
	return -1
}

// showGroups chooses which members of each group are shown, and puts these in order.
func showGroups(hits []Hit, members [][]int) (groups []Group, shown []int) {
	groups = make([]Group, len(members))
	in := make([]int, len(hits)) // the rank of the hit shown in each place, or -1
	for i := range in {
		in[i] = -1
	}
	for i := range members {
		groups[i] = choose(hits, members[i], in)
	}
	return groups, slices.DeleteFunc(in, func(rank int) bool { return rank < 0 })
}

// choose returns the group of the members, and writes into in which of them is shown in which place. The best takes the leader's place, and
// the leader, if it is shown too, the place of the best. The others stay at their own ranks. A pinned leader is always the best.
func choose(hits []Hit, members, in []int) Group {
	leader := members[0]
	profile := hits[leader].profile()
	g := Group{Leader: leader, Representative: leader}
	in[leader] = leader
	if len(members) == 1 {
		return g
	}
	best := members
	if profile.Chooses {
		best = slices.Clone(members)
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
	if keep < len(best) {
		g.Folded = best[keep:]
	}
	slices.Sort(g.Kept)
	slices.Sort(g.Folded)
	return g
}

// Compare compares two members of a group whose leader has the profile. It is negative where the first is shown before the second, and 0
// where their ranks decide.
func (p *Profile) Compare(a, b *Hit) int {
	if !p.Chooses {
		return 0
	}
	first, second := p.merit(a), p.merit(b)
	by := cmp.Or(cmp.Compare(second.Number, first.Number), cmp.Compare(second.Text, first.Text))
	switch {
	case first.Known != second.Known && first.Known:
		return -1
	case first.Known != second.Known:
		return 1
	case p.Ascending:
		return -by
	}
	return by
}

// merit is a member's merit by the leader's profile.
func (p *Profile) merit(member *Hit) Merit {
	if t := member.traits(p.Basis); t != nil {
		return t.Merit
	}
	return Merit{}
}

// ErrLate means that [Page.Deadline] ended the search for the page.
var ErrLate = errors.New("rerank: the time for the page is over")

// Deadline says when the time for something is over. A nil one never comes.
type Deadline interface {
	// Late reports whether it is over: once it is, it stays so. It is asked wherever work can grow.
	Late() bool
}

// betweenLooks is how many hits are compared between two looks at the Deadline. One hit against ten thousand leaders takes some 0.5 ms.
const betweenLooks = 8

// pace ends the comparing of hits when the time is over.
type pace struct {
	Deadline // nil: there is all the time
	late     bool
}

// lateAt reports whether the time is over when the hit of a rank comes.
func (p *pace) lateAt(rank int) bool {
	if !p.late && p.Deadline != nil && rank%betweenLooks == 0 {
		p.late = p.Late()
	}
	return p.late
}

package typesense

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// listed is one rank of the engine's own list.
type listed struct {
	id     string
	sketch *sketch.Sketch // nil if there is none to go by
	pinned bool
	values map[string]any // of the document, as far as the client's key lets it be seen
	seen   []byte         // the hit as the client sees it
}

// definition is the collapsed list as DESIGN.md defines it, done in the plainest way.
type definition struct {
	rule      *rule.Rule
	threshold float64
	keep      int
	window    int
}

// at returns the values of a field: texts, numbers and truths as text, of a list each.
func (h listed) at(path string) (texts []string) {
	value := any(h.values)
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	for _, v := range list {
		if v != nil {
			texts = append(texts, fmt.Sprint(v))
		}
	}
	return texts
}

// moment returns a date as Unix milliseconds.
func (h listed) moment(path string) (ms int64, ok bool) {
	list := h.at(path)
	if len(list) == 0 {
		return 0, false
	}
	ms, err := strconv.ParseInt(list[0], 10, 64)
	if err != nil {
		return 0, false
	}
	if ms < 253402300800 {
		ms *= 1000
	}
	return ms, true
}

// near reports whether a hit may fold into one before it.
func (d definition) near(hit, before listed) bool {
	if hit.sketch == nil || before.sketch == nil {
		return false
	}
	for _, field := range d.rule.Together.Same {
		a, b := slices.Compact(slices.Sorted(slices.Values(hit.at(field)))), slices.Compact(slices.Sorted(slices.Values(before.at(field))))
		if len(a) == 0 || !slices.Equal(a, b) {
			return false
		}
	}
	for _, field := range d.rule.Together.Different {
		a, b := hit.at(field), before.at(field)
		if len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(v string) bool { return slices.Contains(b, v) }) {
			return false
		}
	}
	if span := d.rule.Together.Within; span > 0 {
		a, ok1 := hit.moment(d.rule.Together.WithinField)
		b, ok2 := before.moment(d.rule.Together.WithinField)
		if !ok1 || !ok2 || max(a-b, b-a) > span {
			return false
		}
	}
	agreement, comparable := d.agreement(hit, before)
	return hit.sketch.SameText(before.sketch) || comparable && agreement >= d.threshold
}

func (d definition) agreement(a, b listed) (agreement float64, comparable bool) {
	if d.rule.Profile.Measure != rerank.Containment {
		return a.sketch.Agreement(b.sketch)
	}
	if a.sketch.Shingles > b.sketch.Shingles {
		a, b = b, a
	}
	e, comparable := a.sketch.Containment(b.sketch)
	return e.Value, comparable && e.Error <= rerank.MaxContainmentError
}

// groups returns the members of each group, by leader.
func (d definition) groups(list []listed) map[int][]int {
	groups := map[int][]int{}
	if d.rule.Transitive {
		for _, component := range d.components(list) {
			first := component[0]
			leader := first
			for rank := first - 1; rank >= 0 && !list[first].pinned; rank-- { // in the end, the first pinned one that it is near to
				if list[rank].pinned && slices.ContainsFunc(component, func(member int) bool { return d.near(list[member], list[rank]) }) {
					leader = rank
				}
			}
			groups[leader] = slices.Sorted(slices.Values(append(groups[leader], component...)))
		}
		return groups
	}
	for i, hit := range list {
		leader := i
		for j := range i {
			if leads := len(groups[j]) > 0; leads && leader == i && !hit.pinned && d.near(hit, list[j]) {
				leader = j
			}
		}
		groups[leader] = append(groups[leader], i)
	}
	return groups
}

// components returns the connected components of the hits that are not pinned, and the pinned ones each by itself, by first member.
func (d definition) components(list []listed) (components [][]int) {
	of := make([]int, len(list))
	for i := range list {
		of[i] = i
		for j := range i {
			if of[i] == of[j] || list[i].pinned || list[j].pinned || !d.near(list[i], list[j]) {
				continue
			}
			from, to := max(of[i], of[j]), min(of[i], of[j])
			for k := range i + 1 {
				if of[k] == from {
					of[k] = to
				}
			}
		}
	}
	members := map[int][]int{}
	for i, c := range of {
		members[c] = append(members[c], i)
	}
	for _, c := range slices.Sorted(maps.Keys(members)) {
		components = append(components, members[c])
	}
	return components
}

// better compares two hits as representatives: below 0 if the first is to be shown before the second.
func (d definition) better(a, b listed) int {
	c := d.rule.Choice
	merit := func(h listed) (number float64, text string, known bool) {
		switch c.By {
		case rule.ByNewest, rule.ByOldest:
			ms, ok := h.moment(d.rule.DateField)
			return float64(ms), "", ok
		case rule.ByLongest:
			return float64(h.sketch.Shingles), "", true
		case rule.ByPrefer:
			best := math.MaxInt
			for _, v := range h.at(c.Field) {
				if i := slices.Index(c.Values, v); i >= 0 {
					best = min(best, i)
				}
			}
			return float64(best), "", best < math.MaxInt
		case rule.ByField:
			if list := h.at(c.Field); len(list) > 0 {
				number, err := strconv.ParseFloat(list[0], 64)
				if err != nil {
					return 0, list[0], true
				}
				return number, "", true
			}
		}
		return 0, "", false
	}
	numberA, textA, knownA := merit(a)
	numberB, textB, knownB := merit(b)
	switch {
	case knownA != knownB && knownA:
		return -1
	case knownA != knownB:
		return 1
	}
	order := cmp.Or(cmp.Compare(numberA, numberB), cmp.Compare(textA, textB))
	if c.By == rule.ByNewest || c.By == rule.ByLongest || c.By == rule.ByField && !c.Ascending {
		order = -order
	}
	return order
}

// collapsed is the list that is shown and what is not.
type collapsed struct {
	shown  []int // ranks
	hidden int
}

// collapse collapses a list.
func (d definition) collapse(list []listed) collapsed {
	var c collapsed
	window := min(d.window, len(list))
	places := map[int]int{}
	for leader, members := range d.groups(list[:window]) {
		order := slices.Clone(members)
		if by := d.rule.Choice.By; by != "" && by != rule.ByRank {
			slices.SortStableFunc(order, func(a, b int) int { return d.better(list[a], list[b]) })
		}
		if list[leader].pinned { // it stays
			order = append([]int{leader}, slices.DeleteFunc(order, func(rank int) bool { return rank == leader })...)
		}
		show := order[:min(max(d.keep, 1), len(order))]
		for _, rank := range show {
			switch rank {
			case order[0]:
				places[leader] = rank
			case leader:
				places[order[0]] = rank
			default:
				places[rank] = rank
			}
		}
		c.hidden += len(order) - len(show)
	}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		c.shown = append(c.shown, places[place])
	}
	for rank := window; rank < len(list); rank++ {
		c.shown = append(c.shown, rank)
	}
	return c
}

// moved reports whether the list is another than the engine's.
func (c collapsed) moved() bool {
	for i, rank := range c.shown {
		if i != rank {
			return true
		}
	}
	return c.hidden > 0
}

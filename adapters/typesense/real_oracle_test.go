package typesense

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// listed is one rank of the engine's own list.
type listed struct {
	id     string
	sketch *sketch.Sketch // nil if there is none to go by
	pinned bool
	values map[string]any // of the document, as far as the client's key lets it be seen
	body   string
	seen   []byte // the hit as the client sees it
}

// definition is the collapsed list as DESIGN.md defines it, done in the plainest way.
type definition struct {
	rule      *adapters.Rule
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
	e, comparable := d.estimate(a, b)
	return e.Value, comparable && e.Error <= rerank.MaxContainmentError
}

func (d definition) estimate(a, b listed) (sketch.Estimate, bool) {
	if a.sketch == nil || b.sketch == nil {
		return sketch.Estimate{}, false
	}
	if d.rule.Profile.Measure != rerank.Containment {
		return a.sketch.Resemblance(b.sketch)
	}
	if a.sketch.Shingles <= b.sketch.Shingles {
		return a.sketch.Containment(b.sketch)
	}
	return b.sketch.Containment(a.sketch)
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
		case adapters.ByNewest, adapters.ByOldest:
			ms, ok := h.moment(d.rule.DateField)
			return float64(ms), "", ok
		case adapters.ByLongest:
			return float64(h.sketch.Shingles), "", true
		case adapters.ByPrefer:
			best := math.MaxInt
			for _, v := range h.at(c.Field) {
				if i := slices.Index(c.Values, v); i >= 0 {
					best = min(best, i)
				}
			}
			return float64(best), "", best < math.MaxInt
		case adapters.ByField:
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
	if c.By == adapters.ByNewest || c.By == adapters.ByLongest || c.By == adapters.ByField && !c.Ascending {
		order = -order
	}
	return order
}

// collapsed is the list that is shown and what is not.
type collapsed struct {
	shown  []int         // ranks
	folded map[int][]int // into which rank that is shown
	leader map[int]int   // of a rank that is shown in another's place
	hidden int
}

// collapse collapses a list.
func (d definition) collapse(list []listed) collapsed {
	c := collapsed{folded: map[int][]int{}, leader: map[int]int{}}
	window := min(d.window, len(list))
	places := map[int]int{}
	for leader, members := range d.groups(list[:window]) {
		order := slices.Clone(members)
		if by := d.rule.Choice.By; by != "" && by != adapters.ByRank {
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
		c.leader[order[0]] = leader
		c.folded[order[0]] = slices.Sorted(slices.Values(order[len(show):]))
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

// foldedHit and neardup are what is shown of folded hits.
type foldedHit struct {
	ID        *string
	Agreement float64
	Document  json.RawMessage
	Explain   *struct {
		Agreement, Error float64
		By               string
		Shingles         []uint32
		Shared           []string
	}
}

type neardup struct {
	Found   int
	Exact   bool
	Hits    []foldedHit
	Explain *struct {
		Representative string
		Leader         *struct{ ID string }
		Folded         int
		Threshold      float64
		Measure        string
		Window         int
	}
}

// rounded is a share as it is written.
func rounded(share float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(share, 'f', 4, 64), 64)
	return r
}

// viewed is what a test expects of what is shown of folded hits.
type viewed struct {
	definition
	collapsed
	list             []listed
	expand           adapters.Expand
	explain, whole   bool
	hidesID, hasText bool
	shared           int // how many explanations listed shingles
}

// check compares what is shown beside the hit of a rank.
func (v *viewed) check(t *testing.T, rank int, raw []byte) {
	t.Helper()
	var got neardup
	if err := strictly(raw, &got); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	folded := v.folded[rank]
	if v.whole && !got.Exact {
		t.Fatalf("the whole window is read: %s", raw)
	}
	if len(got.Hits) > len(folded) || got.Exact && len(got.Hits) != len(folded) || got.Found != len(got.Hits) {
		t.Fatalf("into rank %d are folded %v, not %s", rank, folded, raw)
	}
	leader, explained := v.leader[rank], got.Explain != nil
	if _, leads := v.leader[rank]; !leads {
		leader = rank
	}
	if explained != v.explain {
		t.Fatalf("explanations are wanted: %t, not %s", v.explain, raw)
	}
	for i, h := range got.Hits {
		v.checkHit(t, folded[i], leader, rank, h)
	}
	if !explained {
		return
	}
	e, measure := got.Explain, string(cmp.Or(v.rule.Profile.Measure, rerank.Resemblance))
	hasSketch := v.list[leader].sketch != nil && leader < v.window
	wantLeader := leader != rank && !v.hidesID
	if e.Folded != len(got.Hits) || e.Window != v.window || e.Representative != string(cmp.Or(v.rule.Choice.By, adapters.ByRank)) ||
		hasSketch && (e.Threshold != v.threshold || e.Measure != measure) || (e.Leader != nil && e.Leader.ID != "") != wantLeader ||
		wantLeader && e.Leader.ID != v.list[leader].id {
		t.Fatalf("rank %d, led by %d: %s", rank, leader, raw)
	}
}

// checkHit compares what is shown of a folded hit.
func (v *viewed) checkHit(t *testing.T, rank, leader, representative int, h foldedHit) {
	t.Helper()
	hit, with := v.list[rank], v.list[leader]
	if rank == leader {
		with = v.list[representative]
	}
	e, _ := v.estimate(hit, with)
	if (h.ID == nil) != v.hidesID || h.ID != nil && *h.ID != hit.id || h.Agreement != rounded(max(e.Value, 0)) {
		t.Fatalf("rank %d is shown as %+v, agreement %v", rank, h, e.Value)
	}
	var seen struct{ Document json.RawMessage }
	if err := json.Unmarshal(hit.seen, &seen); err != nil {
		t.Fatal(err)
	}
	if v.expand == adapters.ExpandSource != (h.Document != nil) || h.Document != nil && !bytes.Equal(h.Document, seen.Document) {
		t.Fatalf("rank %d shows %s, not %s", rank, h.Document, seen.Document)
	}
	if (h.Explain != nil) != v.explain {
		t.Fatalf("rank %d explains: %+v", rank, h)
	}
	if h.Explain == nil {
		return
	}
	by := "sketch"
	if hit.sketch.SameText(with.sketch) {
		by = "fingerprint"
	}
	if x := h.Explain; x.By != by || x.Agreement != h.Agreement || x.Error != rounded(e.Error) ||
		!slices.Equal(x.Shingles, []uint32{hit.sketch.Shingles, with.sketch.Shingles}) {
		t.Fatalf("rank %d explains: %+v", rank, x)
	}
	if h.Explain.Shared == nil {
		return
	}
	v.shared++
	if want := sharedShingles(hit.body, with.body, v.rule.Sketcher.Scheme().Words); !v.hasText || !slices.Equal(h.Explain.Shared, want) {
		t.Fatalf("rank %d shares %q, not %q", rank, h.Explain.Shared, want)
	}
}

// sharedShingles returns the first ten runs of n words that stand in both texts.
func sharedShingles(a, b string, n int) []string {
	shared := []string{}
	words := strings.Fields(a)
	for i := range len(words) - n + 1 {
		run := strings.Join(words[i:i+n], " ")
		if strings.Contains(" "+b+" ", " "+run+" ") && len(shared) < 10 && !slices.Contains(shared, run) {
			shared = append(shared, run)
		}
	}
	return shared
}

// strictly decodes JSON that holds nothing unknown.
func strictly(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

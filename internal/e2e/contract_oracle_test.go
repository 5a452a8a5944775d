package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/neardup/sidecar/sketch"
)

// What follows is the definition of the collapsed list in the plainest words, without a thought for speed. It uses nothing of
// ours but package sketch, so that whatever cuts a page can be held against it.

// terms are a rule of the configuration as the definition reads it.
type terms struct {
	fields      []string
	threshold   float64
	minShingles int
	minWords    int
	decide      bool   // numbers: decide
	measure     string // "" is resemblance
	window      int
	keep        int // 0 is 1
	by          chooser
	dateField   string
	span        time.Duration // 0 is none
	same        []string
	different   []string
	transitive  bool
	collapsed   bool // totals
	expand      string
	group       bool
	dry         bool
	alone       bool // missing: alone
	scheme      scheme
}

// chooser says which member of a group is shown in the leader's place.
type chooser struct {
	by        string // "" is rank
	field     string
	ascending bool
	values    []string
}

// scheme is what a rule's sketches are made by, as far as it differs from the shipped default.
type scheme struct {
	family    string
	words     int
	positions int
	seed      string
}

// usable reports whether a sketch that was stored under one rule is one by another.
func (r *terms) usable(writer *terms) bool {
	return writer != nil && writer.scheme == r.scheme && slices.Equal(writer.fields, r.fields)
}

// standing is a rank of the engine's whole list.
type standing struct {
	index, id string
	raw       string // the hit as a client sees it that knows nothing of our field
	rule      *terms // of its own index, under the controls of the search
	source    map[string]any
	sketch    *sketch.Sketch // nil where it counts as missing
	pinned    bool
}

func (s *standing) String() string { return s.index + "/" + s.id }

// foldGroup is a group of the collapsed list, in ranks.
type foldGroup struct {
	leader, representative int
	members, folded        []int // by rank
}

// folding is a collapsed list.
type folding struct {
	groups []foldGroup
	shown  []int // ranks, in the order of the list; those beyond the window too
	folded int
}

// collapse is the definition.
func collapse(list []standing, window int, transitive bool) folding {
	within := list[:min(window, len(list))]
	members := ledBy(within)
	if transitive {
		members = connected(within)
	}
	var f folding
	in := map[int]int{} // which rank is shown in which place
	for _, ranks := range members {
		one := foldGroup{leader: ranks[0], members: ranks}
		shown := shownOf(within, ranks)
		one.representative = shown[ranks[0]]
		for place, rank := range shown {
			in[place] = rank
		}
		kept := slices.Collect(maps.Values(shown))
		one.folded = slices.DeleteFunc(slices.Clone(ranks), func(rank int) bool { return slices.Contains(kept, rank) })
		f.folded += len(one.folded)
		f.groups = append(f.groups, one)
	}
	for place := range within {
		if rank, ok := in[place]; ok {
			f.shown = append(f.shown, rank)
		}
	}
	for rank := len(within); rank < len(list); rank++ {
		f.shown = append(f.shown, rank)
	}
	return f
}

// ledBy returns the members of each group: a hit joins the first leader that it is near to, and else is a leader.
func ledBy(list []standing) (groups [][]int) {
hits:
	for rank := range list {
		for i, group := range groups {
			if !list[rank].pinned && near(&list[rank], &list[group[0]]) {
				groups[i] = append(group, rank)
				continue hits
			}
		}
		groups = append(groups, []int{rank})
	}
	return groups
}

// connected returns the connected components: what can be reached over hits that are near by the later one's rule. Pinned hits
// lead groups of their own, and a component joins the first of them that stands before it and that a member of it is near to.
func connected(list []standing) (groups [][]int) {
	seen := make([]bool, len(list))
	for first := range list {
		if seen[first] {
			continue
		}
		group, next := []int{}, []int{first}
		seen[first] = true
		for len(next) > 0 {
			rank := next[0]
			group, next = append(group, rank), next[1:]
			for other := range list {
				linked := !seen[other] && !list[rank].pinned && !list[other].pinned
				if linked && near(&list[max(rank, other)], &list[min(rank, other)]) {
					seen[other] = true
					next = append(next, other)
				}
			}
		}
		slices.Sort(group)
		led := slices.IndexFunc(groups, func(pinned []int) bool {
			return list[pinned[0]].pinned && !list[first].pinned && slices.ContainsFunc(group, func(rank int) bool {
				return near(&list[rank], &list[pinned[0]])
			})
		})
		if led >= 0 {
			groups[led] = append(groups[led], group...)
			slices.Sort(groups[led])
			continue
		}
		groups = append(groups, group)
	}
	return groups
}

// near reports whether a hit folds into one that stands before it, by the hit's own rule.
func near(hit, leader *standing) bool {
	if hit.sketch == nil || leader.sketch == nil || hit.sketch.Scheme != leader.sketch.Scheme {
		return false
	}
	r := hit.rule
	for _, field := range r.same {
		a, b := valuesOf(hit.source, field), valuesOf(leader.source, field)
		if len(a) == 0 || len(b) == 0 || !subset(a, b) || !subset(b, a) {
			return false
		}
	}
	for _, field := range r.different {
		a, b := valuesOf(hit.source, field), valuesOf(leader.source, field)
		if len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(v string) bool { return slices.Contains(b, v) }) {
			return false
		}
	}
	if r.span > 0 {
		a, known := momentOf(hit.source, r.dateField)
		b, both := momentOf(leader.source, r.dateField)
		if !known || !both || a.Sub(b).Abs() > r.span {
			return false
		}
	}
	agreement, same := agreementOf(hit, leader)
	if same || agreement < r.threshold {
		return same
	}
	if r.decide && hit.sketch.Numbers != leader.sketch.Numbers {
		return false
	}
	if agreement >= 1 && hit.sketch.SameWords(leader.sketch) {
		return true
	}
	words := min(hit.sketch.Words, leader.sketch.Words)
	enough := min(hit.sketch.Shingles, leader.sketch.Shingles) >= uint32(r.minShingles) && words >= uint32(r.minWords)
	return enough && (r.measure == "containment" || !hit.sketch.OtherTopics(leader.sketch))
}

// maxContainmentError is beyond which standard error a containment is none.
const maxContainmentError = 0.16

// agreementOf returns what the hit's rule measures, and whether the two are the same text.
func agreementOf(hit, leader *standing) (agreement float64, same bool) {
	a, b := hit.sketch, leader.sketch
	if hit.rule.measure == "containment" {
		if b.Shingles < a.Shingles {
			a, b = b, a
		}
		one, comparable := a.Containment(b)
		if comparable && one.Error <= maxContainmentError {
			agreement = one.Value
		}
	} else if value, comparable := a.Agreement(b); comparable {
		agreement = value
	}
	return agreement, a.SameText(b)
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(v string) bool { return !slices.Contains(b, v) })
}

// shownOf returns which member of a group is shown in which place, by the leader's rule.
func shownOf(list []standing, members []int) map[int]int {
	leader := members[0]
	if len(members) == 1 {
		return map[int]int{leader: leader}
	}
	best, rule := slices.Clone(members), list[leader].rule
	sorted := best
	if list[leader].pinned { // it is shown where it is, whatever is chosen
		sorted = best[1:]
	}
	slices.SortStableFunc(sorted, func(a, b int) int { return rule.by.compare(rule, &list[a], &list[b]) })
	best = best[:min(max(rule.keep, 1), len(best))]
	shown := map[int]int{leader: best[0]}
	for _, rank := range best[1:] {
		shown[rank] = rank
		if rank == leader {
			delete(shown, rank)
			shown[leader], shown[best[0]] = best[0], leader
		}
	}
	return shown
}

// compare is negative where the first is to be shown rather than the second. Those without the value come last.
func (c chooser) compare(r *terms, a, b *standing) int {
	switch c.by {
	case "longest":
		return cmp.Compare(b.sketch.Shingles, a.sketch.Shingles)
	case "newest", "oldest":
		x, knownX := momentOf(a.source, r.dateField)
		y, knownY := momentOf(b.source, r.dateField)
		if !knownX || !knownY {
			return lack(knownX, knownY)
		}
		if c.by == "oldest" {
			return x.Compare(y)
		}
		return y.Compare(x)
	case "prefer":
		x, y := place(valuesOf(a.source, c.field), c.values), place(valuesOf(b.source, c.field), c.values)
		return cmp.Compare(x, y)
	case "field":
		x, y := valuesOf(a.source, c.field), valuesOf(b.source, c.field)
		if len(x) == 0 || len(y) == 0 {
			return lack(len(x) > 0, len(y) > 0)
		}
		by := cmp.Compare(x[0], y[0])
		if n, ok := a.source[c.field].(float64); ok {
			by = cmp.Compare(n, b.source[c.field].(float64))
		}
		if c.ascending {
			return by
		}
		return -by
	}
	return 0
}

// lack puts what has no value behind what has.
func lack(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}

// place returns the first of the wanted values that is there, their number if none is.
func place(values, wanted []string) int {
	for i, v := range wanted {
		if slices.Contains(values, v) {
			return i
		}
	}
	return len(wanted)
}

// valuesOf returns the values of a field.
func valuesOf(source map[string]any, field string) (values []string) {
	switch v := source[field].(type) {
	case nil:
	case []any:
		for _, one := range v {
			values = append(values, fmt.Sprint(one))
		}
	default:
		values = append(values, fmt.Sprint(v))
	}
	return values
}

// momentOf returns the date in a field: a text by RFC 3339, or Unix seconds.
func momentOf(source map[string]any, field string) (time.Time, bool) {
	switch v := source[field].(type) {
	case string:
		at, err := time.Parse(time.RFC3339, v)
		return at, err == nil
	case float64:
		return time.Unix(int64(v), 0), true
	}
	return time.Time{}, false
}

// paperSketch returns the sketch of a document by a rule, nil if its text holds no word.
func paperSketch(sketcher *sketch.Sketcher, r *terms, source map[string]any) *sketch.Sketch {
	var texts []string
	for _, field := range r.fields {
		if text, ok := source[field].(string); ok {
			texts = append(texts, text)
		}
	}
	if strings.TrimSpace(strings.Join(texts, "")) == "" {
		return nil
	}
	s, ok := sketcher.Sketch(texts...)
	if !ok {
		return nil
	}
	return &s
}

// sketcher returns what makes a rule's sketches.
func (s scheme) sketcher() (*sketch.Sketcher, error) {
	made := sketch.DefaultScheme()
	made.Seed = cmp.Or(s.seed, seed)
	made.Words = cmp.Or(s.words, made.Words)
	made.Positions = cmp.Or(s.positions, made.Positions)
	if s.family != "" {
		made.Family = sketch.Family(s.family)
	}
	return sketch.New(made)
}

// yaml returns the rule as an entry of the configuration.
func (r *terms) yaml(match string) string {
	list := func(values []string) string { return "[" + strings.Join(values, ", ") + "]" }
	choice := r.by.by
	switch choice {
	case "field":
		choice = fmt.Sprintf("{field: %s, order: %s}", r.by.field, map[bool]string{true: "asc", false: "desc"}[r.by.ascending])
	case "prefer":
		choice = fmt.Sprintf("{prefer: %s, values: %s}", r.by.field, list(r.by.values))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "      - match: %q\n", match)
	for _, line := range []struct {
		set   bool
		key   string
		value any
	}{
		{true, "fields", list(r.fields)},
		{true, "threshold", r.threshold},
		{true, "min_shingles", r.minShingles},
		{true, "min_words", r.minWords},
		{r.decide, "numbers", "decide"},
		{true, "window", r.window},
		{true, "missing", map[bool]string{true: "alone", false: "compute"}[r.alone]},
		{r.measure != "", "measure", r.measure},
		{r.keep > 0, "keep", r.keep},
		{choice != "", "representative", choice},
		{r.dateField != "", "date_field", r.dateField},
		{r.span > 0, "within", fmt.Sprintf("{field: %s, span: %s}", r.dateField, r.span)},
		{len(r.same) > 0, "same", list(r.same)},
		{len(r.different) > 0, "different", list(r.different)},
		{r.transitive, "transitive", true},
		{r.collapsed, "totals", "collapsed"},
		{r.expand != "", "expand", r.expand},
		{r.group, "group", true},
		{r.dry, "dry_run", true},
		{r.scheme != (scheme{}), "sketch", "{" + r.scheme.yaml() + "}"},
	} {
		if line.set {
			fmt.Fprintf(&b, "        %s: %v\n", line.key, line.value)
		}
	}
	return b.String()
}

func (s scheme) yaml() string {
	var list []string
	if s.family != "" {
		list = append(list, "family: "+s.family)
	}
	if s.words > 0 {
		list = append(list, fmt.Sprint("words: ", s.words))
	}
	if s.positions > 0 {
		list = append(list, fmt.Sprint("positions: ", s.positions))
	}
	if s.seed != "" {
		list = append(list, fmt.Sprintf("seed: %q", s.seed))
	}
	return strings.Join(list, ", ")
}

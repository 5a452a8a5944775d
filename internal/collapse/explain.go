package collapse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// groups are those of the list that was read, by the ranks of their members. They are for a page that is to show them.
type groups map[int]*rerank.Group

// groupsOf returns the group of each hit of the page, as the client is to see it.
func (s *search) groupsOf(page []*rule.Seen, ranks []int) ([]*adapters.Group, error) {
	shown, list := s.groups(), make([]*adapters.Group, len(page))
	for i, rank := range ranks {
		if s.asked.Scope.Explains && s.all.Plan.Late() {
			return nil, adapters.ErrLate
		}
		list[i] = &adapters.Group{}
		if s.asked.Scope.Expand > rule.ExpandOff {
			list[i] = s.group(rank, s.judge.Rule(page[i].Index), shown)
		}
		if s.asked.Scope.Group {
			list[i].Label = s.label(rank, page[i], shown[rank])
		}
	}
	return list, nil
}

func (s *search) groups() groups {
	gs := groups{}
	for i := range s.found.Groups {
		g := &s.found.Groups[i]
		for _, rank := range members(g) {
			gs[rank] = g
		}
	}
	return gs
}

// comparedWith returns the rank that a member of a group is compared with: the leader, and the leader with the representative.
func comparedWith(g *rerank.Group, rank int) int {
	if rank == g.Leader {
		return g.Representative
	}
	return g.Leader
}

// members returns the ranks of all members of a group.
func members(g *rerank.Group) []int { return slices.Concat(g.Kept, g.Folded, []int{g.Representative}) }

// label returns which group a hit that is shown belongs to. own is nil if the group begins in front of the list, or if the hit was not compared.
func (s *search) label(rank int, hit *rule.Seen, own *rerank.Group) *adapters.Label {
	if own == nil {
		if leader := s.found.Walked(rank); leader != nil { // earlier pages have shown how many there are
			return &adapters.Label{ID: leader.Label}
		}
		return &adapters.Label{ID: s.judge.GroupID(hit), Size: 1, Exact: s.found.Stats().Ended}
	}
	all := members(own)
	l := &adapters.Label{ID: s.found.Hit(own.Leader).Label, Size: len(all), Exact: s.found.Stats().Ended}
	least := 2.0
	for _, rank := range all {
		if rank != own.Leader {
			least = min(least, s.estimate(rank, own.Leader).Value)
		}
	}
	if len(all) > 1 {
		l.Agreement = agreementText(least)
	}
	return l
}

// group returns what is to be shown of the hits that are folded into a rank's, in an index with the rule. None are folded into a further member
// of a group that is shown beside its representative.
func (s *search) group(rank int, r *rule.Rule, gs groups) *adapters.Group {
	own, member := gs[rank]
	if !member {
		own = &rerank.Group{Leader: rank, Representative: rank}
	}
	represents := own.Representative == rank
	g := &adapters.Group{Exact: s.found.Stats().Ended || !member || !represents}
	if !represents {
		_, g.Beside = s.pair(rank, comparedWith(own, rank))
		return g
	}
	for _, folded := range own.Folded {
		f := adapters.Folded{Judged: s.sight(folded)}
		if f.Agreement, f.Why = s.pair(folded, comparedWith(own, folded)); s.asked.Scope.Expand == rule.ExpandSource {
			f.Source = s.sources.at(folded)
		}
		g.Folded = append(g.Folded, f)
	}
	if s.asked.Scope.Explains {
		g.Why = s.why(rank, r, own)
	}
	return g
}

// why returns why the representative of a group is shown: {"representative", "leader", "folded", "threshold", "measure", "window"}. The leader is left
// out where it is the hit itself.
func (s *search) why(rank int, r *rule.Rule, g *rerank.Group) []byte {
	by, leader := rule.ByRank, g.Leader
	if r != nil {
		by = cmp.Or(r.Choice.By, by)
	}
	out := fmt.Appendf(nil, `{"representative":"%s"`, by)
	if first := s.sight(leader); leader != rank && first != nil {
		out = append(append(out, `,"leader":`...), s.query.Name(first)...)
	}
	out = fmt.Appendf(out, `,"folded":%d`, len(g.Folded))
	if hit := s.found.Hit(leader); hit != nil && hit.Profile != nil {
		out = strconv.AppendFloat(append(out, `,"threshold":`...), hit.Profile.Threshold, 'f', -1, 64)
		out = fmt.Appendf(out, `,"measure":"%s"`, cmp.Or(hit.Profile.Measure, rerank.Resemblance))
	}
	return fmt.Appendf(out, `,"window":%d}`, s.page.Window)
}

// pair returns how far the hits of two ranks agree, by the profile of the first: 0 where they are not comparable. Where that is to be explained
// it says why too: {"agreement", "error", "by", "threshold" of vectors that decide, "shingles": [its own, the other's], "shared"}.
func (s *search) pair(rank, other int) (agreement, why []byte) {
	hit, with, by := s.found.Hit(rank), s.found.Hit(other), "sketch"
	var shingles [2]uint32
	if hit != nil && with != nil && hit.Sketch != nil && with.Sketch != nil {
		shingles = [2]uint32{hit.Sketch.Shingles, with.Sketch.Shingles}
		switch _, reason := hit.Profile.Judge(hit.Sketch, with.Sketch); reason {
		case rerank.SameText:
			by = "fingerprint"
		case rerank.SameWords:
			by = "words"
		case rerank.VectorsAgree:
			by = "vector"
		}
		if hit.Decision(with) != nil {
			by = "decided"
		}
	}
	estimate := s.estimate(rank, other)
	agreement = agreementText(estimate.Value)
	if !s.asked.Scope.Explains {
		return agreement, nil
	}
	why = fmt.Appendf(nil, `{"agreement":%s,"error":%.4f,"by":"%s"`, agreement, estimate.Error, by)
	if by == "vector" {
		why = strconv.AppendFloat(append(why, `,"threshold":`...), hit.Profile.Vector.Threshold, 'f', -1, 64)
	}
	why = fmt.Appendf(why, `,"shingles":[%d,%d]`, shingles[0], shingles[1])
	if shared := s.shared(rank, other); shared != nil {
		list := make([][]byte, len(shared))
		for i, shingle := range shared {
			list[i] = jsonedit.AppendString(nil, shingle)
		}
		why = append(append(why, `,"shared":`...), jsonedit.Array(list)...)
	}
	return agreement, append(why, '}')
}

// estimate returns how far the hits of two ranks agree, by the profile of the first: the zero Estimate where they are not comparable.
func (s *search) estimate(rank, other int) (e sketch.Estimate) {
	hit, with := s.found.Hit(rank), s.found.Hit(other)
	if hit == nil || with == nil || hit.Sketch == nil || with.Sketch == nil {
		return e
	}
	if own, comparable := hit.Profile.Estimate(hit.Sketch, with.Sketch); comparable {
		e = own
	}
	return e
}

// agreementText returns an agreement as it is shown.
func agreementText(value float64) []byte { return fmt.Appendf(nil, "%.4f", max(value, 0)) }

// sight returns a rank's hit as it was judged, nil where it was not.
func (s *search) sight(rank int) *rule.Seen {
	if rank < 0 || rank >= len(s.compared) {
		return nil
	}
	return &s.compared[rank]
}

// shared returns shingles that the documents of two ranks have in common, nil unless both are at hand.
func (s *search) shared(rank, other int) []string {
	first := s.sight(rank)
	if first == nil {
		return nil
	}
	rule := s.judge.Rule(first.Index)
	if rule == nil {
		return nil
	}
	a, b := s.document(rank, rule), s.document(other, rule)
	if a == nil || b == nil {
		return nil
	}
	return sharedShingles(rule, a, b)
}

// document returns the document of a rank, nil if its texts were not read.
func (s *search) document(rank int, rule *rule.Rule) []byte {
	if judged := s.sight(rank); judged != nil {
		if document := judged.Shown.Document(rule); document != nil {
			return document
		}
	}
	if hit := s.sources.at(rank); hit != nil {
		return hit.Shown.Document(rule)
	}
	return nil
}

// withFolded returns the page's ranks, and those that are folded into them.
func (s *search) withFolded(page []int) []int {
	ranks := slices.Clone(page)
	for _, g := range s.found.Groups {
		if slices.Contains(page, g.Representative) {
			ranks = append(ranks, g.Folded...)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// maxShared is the most shared shingles that an explanation lists.
const maxShared = 10

// sharedShingles returns some shingles that two whole documents' JSON have in common, as text, in the order of the first. It is not nil.
func sharedShingles(r *rule.Rule, a, b []byte) []string {
	shared := []string{}
	textsA, textsB := slices.Concat(r.FieldTexts(a)...), slices.Concat(r.FieldTexts(b)...)
	scheme := r.Sketcher.Scheme()
	set := r.Sketcher.Shingles(textsB...)
	if len(set) == 0 {
		return shared
	}
	listed := map[uint64]bool{}
	add := func(candidate string) (more bool) {
		// A text that is one shingle of the scheme has one alone: any other candidate has more.
		if one := r.Sketcher.Shingles(candidate); len(one) == 1 && !listed[one[0]] {
			if _, found := slices.BinarySearch(set, one[0]); found {
				if len(candidate) > maxShownShingle { // a word can be as long as its text
					candidate = strings.ToValidUTF8(candidate[:maxShownShingle], "") + "…"
				}
				shared, listed[one[0]] = append(shared, candidate), true
			}
		}
		return len(shared) < maxShared
	}
	for _, text := range textsA {
		if !candidates(scheme, text, add) {
			break
		}
	}
	return shared
}

// maxShownShingle is how many bytes of a shingle are shown.
const maxShownShingle = 200

// candidates visits what may be the shingles of a text, as far as visit wants more.
func candidates(scheme sketch.Scheme, text string, visit func(string) bool) (more bool) {
	if scheme.Features == sketch.Tags {
		return visit(text)
	}
	spaceless := func(r rune) bool { return unicode.In(r, spacelessScripts...) }
	words := sketch.Words(text)
	if scheme.Keep != (sketch.Keep{}) { // folded words are not those of the shingles
		words = strings.Fields(text)
	}
	if scheme.Features != sketch.CharacterShingles {
		for i := range len(words) - min(scheme.Words, len(words)) + 1 {
			run := strings.Join(words[i:min(i+scheme.Words, len(words))], " ")
			if plain := scheme.Features == sketch.WordShingles || strings.IndexFunc(run, spaceless) < 0; run != "" && plain && !visit(run) {
				return false
			}
		}
	}
	if scheme.Features == sketch.WordShingles {
		return true
	}
	characters := []rune(strings.Join(words, " "))
	if scheme.Features == sketch.Auto {
		characters = slices.DeleteFunc(characters, func(r rune) bool { return !spaceless(r) })
	}
	for i := range len(characters) - min(scheme.Characters, len(characters)) + 1 {
		if run := characters[i:min(i+scheme.Characters, len(characters))]; len(run) > 0 && !visit(string(run)) {
			return false
		}
	}
	return true
}

// spacelessScripts are written without blanks between words: shingles are of characters there.
var spacelessScripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

package adapters

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Names of what is shown of folded hits, alike on all engines as far as their replies have a place for it.
const (
	AgreementField = rule.FieldPrefix + "agreement"
	ExplainField   = rule.FieldPrefix + "explain"
)

// MaxShared is the most shared shingles that an explanation lists.
const MaxShared = 10

// Views answers what is to be shown of the groups that the hits of a page stand for. It is for one page.
type Views struct {
	window int
	exact  bool
	read   ranked
	groups map[int]rerank.Group // by each rank that is shown
	leads  map[int]int          // the rank that each member is compared with
}

// ranked is what was read of ranks, nil where nothing was, as a [rerank.Found] has it.
type ranked interface {
	Hit(rank int) *rerank.Hit
}

// NewViews returns the views of the groups of a list that was read. exact says that nothing more can fold into them, window how many ranks
// were collapsed over.
func NewViews(groups []rerank.Group, read ranked, exact bool, window int) *Views {
	v := &Views{window: window, exact: exact, read: read, groups: map[int]rerank.Group{}, leads: map[int]int{}}
	for _, g := range groups {
		v.groups[g.Representative] = g
		for _, rank := range slices.Concat(g.Kept, g.Folded, []int{g.Representative}) {
			v.leads[rank] = g.Leader
		}
		v.leads[g.Leader] = g.Representative
	}
	return v
}

// Folded returns the ranks of the hits that are folded into the one shown of a rank, ascending, and whether they are all there are.
// None are folded into a further member that is shown beside its representative.
func (v *Views) Folded(rank int) (ranks []int, exact bool) {
	g, ok := v.groups[rank]
	return g.Folded, v.exact || !ok
}

// Represents reports whether what is shown of a rank stands for itself or for a group, and not as a further member beside its
// representative.
func (v *Views) Represents(rank int) bool {
	_, member := v.leads[rank]
	_, ok := v.groups[rank]
	return ok || !member
}

// Leader returns the rank of the first-ranked member of the group that a rank represents: the rank itself for most.
func (v *Views) Leader(rank int) int {
	if g, ok := v.groups[rank]; ok {
		return g.Leader
	}
	return rank
}

// With returns the rank that a member of a group is compared with: the leader, and for the leader itself the representative.
func (v *Views) With(rank int) int {
	if with, ok := v.leads[rank]; ok {
		return with
	}
	return rank
}

// Pair is what two sketches say of two hits.
type Pair struct {
	// Agreement is what the profile's measure says, 0 where they are not comparable; Error its standard error.
	Agreement, Error float64
	// SameText says that their fingerprints are equal.
	SameText bool
	// Shingles are how many each has.
	Shingles [2]uint32
	// Shared are some shingles that both have, as text, where both texts are at hand.
	Shared []string
}

// Pair returns what is to be said of a rank that is no representative and the rank that it is compared with.
func (v *Views) Pair(rank int) Pair { return PairOf(v.read.Hit(rank), v.read.Hit(v.With(rank))) }

// PairOf compares a hit with another, by the hit's own profile.
func PairOf(hit, other *rerank.Hit) (p Pair) {
	if hit == nil || other == nil || hit.Sketch == nil || other.Sketch == nil {
		return p
	}
	a, b := hit.Sketch, other.Sketch
	p.SameText, p.Shingles = a.SameText(b), [2]uint32{a.Shingles, b.Shingles}
	if estimate, comparable := hit.Profile.Estimate(a, b); comparable {
		p.Agreement, p.Error = max(estimate.Value, 0), estimate.Error
	}
	return p
}

// AppendExplanation appends the pair as a JSON object: {"agreement", "error", "by", "shingles": [its own, the other's], "shared"}.
func (p Pair) AppendExplanation(dst []byte) []byte {
	by := "sketch"
	if p.SameText {
		by = "fingerprint"
	}
	dst = append(AppendAgreement(append(dst, `{"agreement":`...), p.Agreement), `,"error":`...)
	dst = append(AppendAgreement(dst, p.Error), `,"by":"`+by+`","shingles":[`...)
	dst = append(strconv.AppendUint(dst, uint64(p.Shingles[0]), 10), ',')
	dst = append(strconv.AppendUint(dst, uint64(p.Shingles[1]), 10), ']')
	if p.Shared != nil {
		dst = append(dst, `,"shared":[`...)
		for i, shingle := range p.Shared {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonedit.AppendString(dst, shingle)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// AppendAgreement appends a share as a JSON number with four decimals.
func AppendAgreement(dst []byte, share float64) []byte {
	return strconv.AppendFloat(dst, share, 'f', 4, 64)
}

// AppendExplanation appends, as a JSON object, why the hit of a rank is shown: {"representative", "leader", "folded", "threshold", "measure",
// "window"}. rule is that of its index, nil if it has none; leader, a JSON value, says which hit leads the group and is left out where it
// is nil.
func (v *Views) AppendExplanation(dst []byte, rank int, r *rule.Rule, leader []byte) []byte {
	by, folded := rule.ByRank, v.groups[rank].Folded
	if r != nil {
		by = cmp.Or(r.Choice.By, rule.ByRank)
	}
	dst = append(dst, `{"representative":"`+string(by)+`"`...)
	if leader != nil {
		dst = append(append(dst, `,"leader":`...), leader...)
	}
	dst = strconv.AppendInt(append(dst, `,"folded":`...), int64(len(folded)), 10)
	if hit := v.read.Hit(v.Leader(rank)); hit != nil && hit.Profile != nil {
		dst = strconv.AppendFloat(append(dst, `,"threshold":`...), hit.Profile.Threshold, 'f', -1, 64)
		dst = append(dst, `,"measure":"`+string(cmp.Or(hit.Profile.Measure, rerank.Resemblance))+`"`...)
	}
	return append(strconv.AppendInt(append(dst, `,"window":`...), int64(v.window), 10), '}')
}

// Shared returns up to most shingles that two whole documents' JSON have in common, as text, in the order of the first. It is not nil.
func Shared(r *rule.Rule, a, b []byte, most int) []string {
	shared := []string{}
	textsA, textsB := slices.Concat(r.FieldTexts(a)...), slices.Concat(r.FieldTexts(b)...)
	scheme := r.Sketcher.Scheme()
	set := r.Sketcher.Shingles(textsB...)
	if len(set) == 0 {
		return shared
	}
	listed := map[uint64]bool{}
	add := func(candidate string) (more bool) {
		// A text that is one shingle of the scheme has one alone: whatever else the candidate is, it is told by that.
		if one := r.Sketcher.Shingles(candidate); len(one) == 1 && !listed[one[0]] {
			if _, found := slices.BinarySearch(set, one[0]); found {
				shared, listed[one[0]] = append(shared, cutShort(candidate)), true
			}
		}
		return len(shared) < most
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

// cutShort returns a shingle as it is shown: a word can be as long as its text.
func cutShort(shingle string) string {
	if len(shingle) <= maxShownShingle {
		return shingle
	}
	return strings.ToValidUTF8(shingle[:maxShownShingle], "") + "…"
}

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

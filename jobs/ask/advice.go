package ask

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Judged is a pair that was called the same or different, with what its documents say beside their texts.
type Judged struct {
	Same      bool
	Agreement float64
	A, B      Values
	// Presets says for each preset whether the pair folds under it.
	Presets map[string]bool
}

// Values are the fields of a document that are no texts, by their names, each as one text.
type Values map[string]string

// Differing returns the names of the fields that both documents have and that differ, in order.
func Differing(a, b Values) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if other, has := b[name]; has && other != a[name] {
			names = append(names, name)
		}
	}
	return names
}

// Advice is another rule that would help, and what speaks for it.
type Advice struct {
	// Rule is YAML of an entry of indices.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

const (
	// leastJudged is how many pairs of each verdict must have a field before anything follows from it.
	leastJudged = 4
	// A rule must part at least this share (speaks) of the pairs called different, and at most this share (against) of the others.
	speaks, against = 0.75, 0.1
)

// spans are the time spans that are advised.
var spans = []struct {
	of   time.Duration
	text string
}{
	{time.Hour, "1h"}, {6 * time.Hour, "6h"}, {24 * time.Hour, "1d"}, {3 * 24 * time.Hour, "3d"}, {7 * 24 * time.Hour, "7d"}, {30 * 24 * time.Hour, "30d"}, {365 * 24 * time.Hour, "365d"},
}

// Advise returns the rules that part pairs called different and leave those called the same. It leaves out fields that the rule has conditions on.
func Advise(judged []Judged, conditions []string) (list []Advice) {
	fields := map[string]bool{}
	for _, j := range judged {
		for name := range j.A {
			fields[name] = true
		}
	}
	maps.DeleteFunc(fields, func(name string, _ bool) bool {
		return slices.Contains(conditions, name) || slices.Contains(conditions, name+".keyword")
	})
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		moments := count(judged, func(j Judged) (parted, known bool) { _, known = apart(j, name); return false, known })
		if moments.same+moments.different > 0 { // a moment is rarely the same twice
			list = append(list, adviseSpan(judged, name)...)
			continue
		}
		differ := count(judged, func(j Judged) (parted, known bool) {
			a, hasA := j.A[name]
			b, hasB := j.B[name]
			return a != b, hasA && hasB
		})
		if differ.helps() {
			list = append(list, Advice{"same: [" + quoted(name) + "]", fmt.Sprintf("%d of %d pairs you called different differ in %s; %d of %d same ones do",
				differ.differentParted, differ.different, name, differ.sameParted, differ.same)})
		}
		if equal := differ.turned(); equal.helps() {
			list = append(list, Advice{"different: [" + quoted(name) + "]", fmt.Sprintf("%d of %d pairs you called different have the same %s; %d of %d same ones do",
				equal.differentParted, equal.different, name, equal.sameParted, equal.same)})
		}
	}
	return list
}

// adviseSpan advises the least span of a field that parts no more of the same pairs than may be.
func adviseSpan(judged []Judged, name string) []Advice {
	for _, span := range spans {
		parted := count(judged, func(j Judged) (bool, bool) {
			gap, known := apart(j, name)
			return gap > span.of, known
		})
		if parted.helps() {
			return []Advice{{"within: {field: " + quoted(name) + ", span: " + span.text + "}", fmt.Sprintf(
				"%d of %d pairs you called different lie more than %s apart in %s; %d of %d same ones do",
				parted.differentParted, parted.different, span.text, name, parted.sameParted, parted.same)}}
		}
	}
	return nil
}

// byChance is the highest probability by the sign test at which a preset is advised.
const byChance = 0.01

// AdvisePreset returns the preset that judges the pairs most like the person, if the rule judges them clearly worse even at the threshold that fits.
func AdvisePreset(judged []Judged, threshold float64) (list []Advice) {
	if len(judged) < Fewest {
		return nil
	}
	names := map[string]bool{}
	for _, j := range judged {
		for name := range j.Presets {
			names[name] = true
		}
	}
	highest := 0.0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var own, other score
		better, worse := 0, 0
		for _, j := range judged {
			says, known := j.Presets[name]
			if !known {
				continue
			}
			ownSays := j.Agreement >= threshold
			own.add(ownSays, j.Same)
			other.add(says, j.Same)
			switch {
			case ownSays == says:
			case says == j.Same:
				better++
			default:
				worse++
			}
		}
		// the sign test: the probability that a coin, tossed once for each difference, favours the preset as often or more often
		if own.pairs < Fewest || other.f1() <= max(highest, own.f1()) || tosses(better+worse, worse) > byChance {
			continue
		}
		highest = other.f1()
		list = []Advice{{"preset: " + name, fmt.Sprintf("preset %s judges %d of %d pairs as you do; this rule judges %d, at threshold %v",
			name, other.right, other.pairs, own.right, threshold)}}
	}
	return list
}

// score counts how pairs are judged.
type score struct{ pairs, right, hits, said, same int }

func (s *score) add(says, same bool) {
	s.pairs++
	for at, counts := range map[*int]bool{&s.right: says == same, &s.hits: says && same, &s.said: says, &s.same: same} {
		if counts {
			*at++
		}
	}
}

func (s *score) f1() float64 { return share(2*float64(s.hits), float64(s.said+s.same)) }

// tosses returns the probability that of n tosses of a coin at most k show heads.
func tosses(n, k int) (sum float64) {
	one := math.Pow(0.5, float64(n))
	for i := range k + 1 {
		sum += one
		one *= float64(n-i) / float64(i+1)
	}
	return sum
}

// quoted returns a name as YAML takes it.
func quoted(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// tally counts pairs of each verdict, and those that a rule parts.
type tally struct{ same, sameParted, different, differentParted int }

func count(judged []Judged, parts func(Judged) (parted, known bool)) (t tally) {
	for _, j := range judged {
		parted, known := parts(j)
		if !known {
			continue
		}
		of, with := &t.different, &t.differentParted
		if j.Same {
			of, with = &t.same, &t.sameParted
		}
		*of++
		if parted {
			*with++
		}
	}
	return t
}

// turned returns the tally of the rule that parts the other pairs.
func (t tally) turned() tally {
	return tally{t.same, t.same - t.sameParted, t.different, t.different - t.differentParted}
}

func (t tally) helps() bool {
	return min(t.same, t.different) >= leastJudged && float64(t.differentParted) >= speaks*float64(t.different) &&
		float64(t.sameParted) <= against*float64(t.same)
}

// apart returns the time between the two values of a field, if both are moments.
func apart(j Judged, name string) (time.Duration, bool) {
	a, okA := moment(j.A[name])
	b, okB := moment(j.B[name])
	return a.Sub(b).Abs(), okA && okB
}

func moment(text string) (time.Time, bool) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(form, strings.TrimSpace(text)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

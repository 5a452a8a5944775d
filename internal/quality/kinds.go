package quality

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// The ways to judge a pair that are compared on sets with kinds. The last two take one threshold for all sets, the best one.
var ways = []string{"default", "safe", "4 words", "5 characters"}

const byPreset, byShingles = 2, 2 // the first two ways are presets, the last two exact resemblances

// byOwn is one more way, which has a table of its own: the preset that a set is of the kind for, with its own sketches.
const byOwn = byPreset + byShingles

// verdict is how a pair was judged.
type verdict struct {
	pair
	near    [byPreset]bool
	own     bool
	exactly [byShingles]float32
}

// Kinds is what was measured on a set whose pairs have kinds.
type Kinds struct {
	set      *Set
	verdicts []verdict
	// groups are the verdicts on all pairs of documents that clusters.tsv lists in one subset; a positive pair is of one cluster.
	groups []verdict
}

// MeasureKinds judges the pairs of a set on one side of the split, or of both if subset is empty.
func MeasureKinds(s *Set, subset string) (*Kinds, error) {
	judge, err := newJudge(s)
	if err != nil {
		return nil, err
	}
	k := &Kinds{set: s}
	for _, p := range s.listed {
		if subset == "" || p.subset == subset {
			k.verdicts = append(k.verdicts, judge(p))
		}
	}
	bySubset := map[string][]int{}
	for place, m := range s.groups {
		if m.subset != "" && strings.HasPrefix(m.subset, subset) {
			bySubset[m.subset] = append(bySubset[m.subset], place)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bySubset)) {
		for i, a := range bySubset[name] {
			for _, b := range bySubset[name][i+1:] {
				k.groups = append(k.groups, judge(pair{a: a, b: b, positive: s.groups[a].cluster == s.groups[b].cluster, subset: name}))
			}
		}
	}
	return k, nil
}

// newJudge returns a function that judges a pair in every way. It keeps what it has computed of a document. Exact resemblances are left out
// of a set that is for a preset alone. The conditions of a preset on other fields, such as a host or a date, are taken to be met.
func newJudge(s *Set) (func(pair) verdict, error) {
	standard, err := sketches(s, sketch.DefaultScheme())
	if err != nil {
		return nil, err
	}
	index := config.PresetOf(s.Preset).Start(config.Default().Sketch)
	ownSketches, own := standard, index.Rule(nil).Profile
	if s.Preset != "" {
		if ownSketches, err = sketches(s, index.Scheme()); err != nil {
			return nil, err
		}
	}
	var words, characters [][]uint64
	if s.ForDefault {
		if words, characters, err = referenceSets(s); err != nil {
			return nil, err
		}
	}
	profiles := []rerank.Profile{rerank.Default(), rerank.Safe()}
	return func(p pair) verdict {
		v := verdict{pair: p}
		for i, profile := range profiles {
			v.near[i], _ = profile.NearDuplicates(&standard[p.a], &standard[p.b])
		}
		v.own, _ = own.NearDuplicates(&ownSketches[p.a], &ownSketches[p.b])
		if s.ForDefault {
			v.exactly = [byShingles]float32{float32(sketch.Resemblance(words[p.a], words[p.b])), float32(sketch.Resemblance(characters[p.a], characters[p.b]))}
		}
		return v
	}, nil
}

// sketches returns the sketch of each document. Where tags are what is sketched, each line of a text is one.
func sketches(s *Set, scheme sketch.Scheme) ([]sketch.Sketch, error) {
	sketcher, err := sketch.New(scheme)
	if err != nil {
		return nil, err
	}
	list := make([]sketch.Sketch, len(s.Docs))
	for i, d := range s.Docs {
		texts := []string{d.Text}
		if scheme.Features == sketch.Tags {
			texts = strings.Split(d.Text, "\n")
		}
		list[i], _ = sketcher.Sketch(texts...)
	}
	return list, nil
}

// says reports what a way says of a pair, under the thresholds of the exact resemblances.
func (v *verdict) says(way int, thresholds [byShingles]float32) bool {
	switch {
	case way < byPreset:
		return v.near[way]
	case way == byOwn:
		return v.own
	}
	return v.exactly[way-byPreset] >= thresholds[way-byPreset]
}

// commonThresholds returns for each exact resemblance the one threshold under which the mean over the sets of the share of pairs judged right is greatest.
func commonThresholds(list []*Kinds) (best [byShingles]float32) {
	for which := range best {
		most := -1.0
		for _, step := range steps {
			t, mean := float32(step)/100, 0.0
			for _, k := range list {
				right := 0
				for i := range k.verdicts {
					if v := &k.verdicts[i]; (v.exactly[which] >= t) == v.positive {
						right++
					}
				}
				mean += share(right, len(k.verdicts)) / float64(len(list))
			}
			if mean > most {
				most, best[which] = mean, t
			}
		}
	}
	return best
}

// ReportKinds writes for each set what each way reaches, then the share of pairs that it judges wrongly by kind, length and language.
// Sets that are for another preset than the default have a table of their own, and only those that are for both count in the others.
func ReportKinds(w io.Writer, all []*Kinds) {
	reportPresets(w, all)
	list := slices.DeleteFunc(slices.Clone(all), func(k *Kinds) bool { return !k.set.ForDefault })
	thresholds := commonThresholds(list)
	fmt.Fprintf(w, "exact resemblance of 4 words from %.2f, of 5 characters from %.2f\n\n", thresholds[0], thresholds[1])
	fmt.Fprintln(w, "F1 (precision / recall), or the share judged wrongly where all pairs of a set must fold or none")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	heads := "\t" + strings.Join(ways, "\t") + "\n"
	fmt.Fprint(table, "set\tmust fold\tmust not", heads)
	for _, k := range list {
		scores := scores(k.verdicts, thresholds)
		positive := scores[0].right + scores[0].missed
		fmt.Fprintf(table, "%s\t%d\t%d", k.set.Name, positive, len(k.verdicts)-positive)
		for _, s := range scores {
			if positive > 0 && positive < len(k.verdicts) {
				fmt.Fprintf(table, "\t%s", s)
			} else {
				fmt.Fprintf(table, "\t%.3f", share(s.wrong+s.missed, len(k.verdicts)))
			}
		}
		fmt.Fprintln(table)
	}
	fmt.Fprint(table, "\nadjusted Rand index\tdocuments\tpairs", heads)
	for _, k := range list {
		if len(k.groups) > 0 {
			fmt.Fprintf(table, "%s\t%d\t%d", k.set.Name, k.documents(), len(k.groups))
			for way := range ways {
				fmt.Fprintf(table, "\t%.3f", k.randIndex(way, thresholds))
			}
			fmt.Fprintln(table)
		}
	}
	byKind, byLength, byLanguage := map[string][]verdict{}, map[string][]verdict{}, map[string][]verdict{}
	for _, k := range list {
		for _, v := range k.verdicts {
			byKind[v.kind] = append(byKind[v.kind], v)
			of, _, _ := strings.Cut(v.kind, "/")
			bucket := fmt.Sprintf("%s, %s words", of, lengthOf(v.words))
			byLength[bucket] = append(byLength[bucket], v)
			byLanguage[of+", "+v.language] = append(byLanguage[of+", "+v.language], v)
		}
	}
	reportWrong(table, "share judged wrongly, by kind", heads, byKind, thresholds)
	reportWrong(table, "share judged wrongly, by length", heads, byLength, thresholds)
	reportWrong(table, "share judged wrongly, by language", heads, byLanguage, thresholds)
}

// reportPresets writes what each preset reaches on the sets of its kind, beside the default, then the share of pairs that both judge wrongly.
func reportPresets(w io.Writer, all []*Kinds) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	rows, none := "", [byShingles]float32{}
	fmt.Fprintln(table, "presets, each on its kind\tset\tmust fold\tmust not\tF1 (precision / recall)\tdefault\tadjusted Rand index\tdefault")
	for _, k := range all {
		if k.set.Preset == "" {
			continue
		}
		own, standard := scoreOf(k.verdicts, byOwn, none), scoreOf(k.verdicts, 0, none)
		positive := own.right + own.missed
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s", k.set.Preset, k.set.Name, positive, len(k.verdicts)-positive, own, standard)
		if len(k.groups) > 0 {
			fmt.Fprintf(table, "\t%.3f\t%.3f", k.randIndex(byOwn, none), k.randIndex(0, none))
		}
		fmt.Fprintln(table)
		byKind := map[string][]verdict{}
		for _, v := range k.verdicts {
			byKind[v.kind] = append(byKind[v.kind], v)
		}
		for _, kind := range slices.Sorted(maps.Keys(byKind)) {
			rows += fmt.Sprintf("%s\t%s\t%d", k.set.Name, kind, len(byKind[kind]))
			for _, way := range []int{byOwn, 0} {
				s := scoreOf(byKind[kind], way, none)
				rows += fmt.Sprintf("\t%.3f", share(s.wrong+s.missed, len(byKind[kind])))
			}
			rows += "\n"
		}
	}
	fmt.Fprintf(table, "\nshare judged wrongly\tkind\tpairs\tpreset\tdefault\n%s\n", rows)
}

func reportWrong(w io.Writer, title, heads string, groups map[string][]verdict, thresholds [byShingles]float32) {
	fmt.Fprintf(w, "\n%s\tpairs\t%s", title, heads)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(w, "%s\t%d\t", name, len(groups[name]))
		for _, s := range scores(groups[name], thresholds) {
			fmt.Fprintf(w, "\t%.3f", share(s.wrong+s.missed, len(groups[name])))
		}
		fmt.Fprintln(w)
	}
}

func scores(verdicts []verdict, thresholds [byShingles]float32) (list []Score) {
	for way := range ways {
		list = append(list, scoreOf(verdicts, way, thresholds))
	}
	return list
}

func scoreOf(verdicts []verdict, way int, thresholds [byShingles]float32) (score Score) {
	for i := range verdicts {
		score.add(verdicts[i].says(way, thresholds), verdicts[i].positive)
	}
	return score
}

// lengthOf names the bucket of a length, so that the names sort by length.
func lengthOf(words int) string {
	from := []int{0, 10, 30, 60, 80, 120, 200, 400, 1000}
	at, found := slices.BinarySearch(from, words)
	if !found && at > 0 {
		at--
	}
	return fmt.Sprintf("from %4d", from[at])
}

func (k *Kinds) documents() (n int) {
	for _, m := range k.set.groups {
		if m.subset != "" {
			n++
		}
	}
	return n
}

// randIndex returns the adjusted Rand index (Hubert and Arabie 1985) of the clusters that a way makes, by joining what it says is near, and the labelled
// ones, as the mean over the subsets weighted by their documents.
func (k *Kinds) randIndex(way int, thresholds [byShingles]float32) float64 {
	root := map[int]int{}
	var find func(int) int
	find = func(x int) int {
		if up, ok := root[x]; ok && up != x {
			root[x] = find(up)
			return root[x]
		}
		root[x] = x
		return x
	}
	subsets := map[string][]int{}
	for i := range k.groups {
		v := &k.groups[i]
		if a, b := find(v.a), find(v.b); a != b && v.says(way, thresholds) {
			root[a] = b
		}
	}
	for _, place := range slices.Sorted(maps.Keys(root)) {
		subset := k.set.groups[place].subset
		subsets[subset] = append(subsets[subset], place)
	}
	sum, documents := 0.0, 0
	for _, places := range subsets {
		both, found, labelled := map[string]int{}, map[string]int{}, map[string]int{}
		for _, place := range places {
			f, l := fmt.Sprint(find(place)), k.set.groups[place].cluster
			both[f+" "+l]++
			found[f]++
			labelled[l]++
		}
		sum += float64(len(places)) * adjusted(pairsIn(both), pairsIn(found), pairsIn(labelled), float64(len(places)*(len(places)-1)/2))
		documents += len(places)
	}
	return sum / float64(max(documents, 1))
}

func pairsIn(sizes map[string]int) (n float64) {
	for _, size := range sizes {
		n += float64(size * (size - 1) / 2)
	}
	return n
}

func adjusted(both, found, labelled, all float64) float64 {
	expected := found * labelled / math.Max(all, 1)
	if most := (found + labelled) / 2; most != expected {
		return (both - expected) / (most - expected)
	}
	return 1
}

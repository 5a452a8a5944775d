package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// ruleOf returns a rule with the scheme.
func ruleOf(t testing.TB, s sketch.Scheme, threshold float64, least int) *rule.Rule {
	t.Helper()
	sketcher := expect.Value(sketch.New(s))(t)
	return &rule.Rule{
		Match: "x", Fields: []string{"text"}, Window: 10, Sketcher: sketcher,
		Profile: rerank.Profile{Threshold: threshold, MinShingles: least},
	}
}

// texts returns so many texts, of which many are near-duplicates of others, by edits of every share from none to half.
func texts(r *rand.Rand, n, longest int) []string {
	word := func() string { return fmt.Sprintf("w%d", r.IntN(400)) }
	var list [][]string
	for range n {
		var text []string
		switch {
		case len(list) > 0 && r.IntN(3) > 0:
			share := r.Float64() * r.Float64() / 2
			if r.IntN(4) == 0 {
				share = 0
			}
			for _, w := range list[r.IntN(len(list))] {
				if r.Float64() < share {
					w = word()
				}
				text = append(text, w)
			}
		default:
			for range r.IntN(longest) {
				text = append(text, word())
			}
		}
		list = append(list, text)
	}
	var joined []string
	for _, text := range list {
		joined = append(joined, strings.Join(text, " "))
	}
	return joined
}

// documents makes documents of texts.
func documents(rule *rule.Rule, texts []string) []Document {
	var list []Document
	for i, text := range texts {
		d := Document{ID: fmt.Sprintf("d%05d", i), Host: fmt.Sprintf("h%d", i%7), Shingles: rule.Sketcher.Shingles(text)}
		if s, ok := rule.Sketch([]string{text}); ok {
			d.Sketch = &s
		}
		list = append(list, d)
	}
	return list
}

// clustered returns what a run makes of documents, one line for each.
func clustered(t testing.TB, o Options, list []Document) []string {
	t.Helper()
	return runBy(t, o, list, (*Corpus).Cluster)
}

// filled returns a corpus of documents, in a folder of its own where the options name none.
func filled(t testing.TB, o Options, list []Document) *Corpus {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	c := expect.Value(New(o))(t)
	t.Cleanup(c.Close)
	for _, d := range list {
		expect.OK(t, c.Add(d))
	}
	return c
}

// joined is a corpus that is filled and clustered.
func joined(t testing.TB, o Options, list []Document) *Corpus {
	t.Helper()
	c := filled(t, o, list)
	expect.OK(t, c.Cluster(t.Context()))
	return c
}

func runBy(t testing.TB, o Options, list []Document, join func(*Corpus, context.Context) error) (lines []string) {
	t.Helper()
	c := filled(t, o, list)
	defer c.Close()
	expect.OK(t, join(c, t.Context()))
	expect.OK(t, c.Each(t.Context(), func(members []Member) error {
		for _, m := range members {
			lines = append(lines, fmt.Sprintf("%s %s %d %.4f %v %s", m.Cluster, m.ID, m.Size, m.Agreement, m.First, m.Host))
		}
		return nil
	}))
	expect.Must(t, len(list), len(lines), "documents that came out")
	return lines
}

// brute joins by looking at all pairs.
func brute(near func(a, b Document) bool) func(list []Document, rule *rule.Rule) []string {
	return func(list []Document, rule *rule.Rule) (lines []string) {
		of := make([]int, len(list))
		for i := range of {
			of[i] = i
		}
		for again := true; again; {
			again = false
			for i, a := range list {
				for j, b := range list[:i] {
					a := a
					if a.Sketch == nil || b.Sketch == nil || of[i] == of[j] {
						continue
					}
					if b.Sketch.Fingerprint < a.Sketch.Fingerprint { // of two sets of one size either can be called the smaller
						a, b = b, a
					}
					if near(a, b) {
						of[i], of[j], again = min(of[i], of[j]), min(of[i], of[j]), true
					}
				}
			}
		}
		members := map[int][]Document{}
		for i, d := range list {
			members[of[i]] = append(members[of[i]], d)
		}
		for _, cluster := range members {
			lines = append(lines, linesOf(cluster, rule)...)
		}
		return lines
	}
}

// linesOf returns the lines of one cluster by its definition.
func linesOf(cluster []Document, rule *rule.Rule) (lines []string) {
	if cluster[0].Sketch == nil {
		return []string{"textless " + cluster[0].ID}
	}
	first := slices.MinFunc(cluster, func(a, b Document) int {
		if a.Sketch.Fingerprint != b.Sketch.Fingerprint {
			return map[bool]int{true: -1, false: 1}[a.Sketch.Fingerprint < b.Sketch.Fingerprint]
		}
		return strings.Compare(a.ID, b.ID)
	})
	for _, d := range cluster {
		_, agreement := rule.Profile.NearDuplicates(first.Sketch, d.Sketch)
		if d.Sketch.Fingerprint == first.Sketch.Fingerprint {
			agreement = 1
		}
		lines = append(lines, fmt.Sprintf("%s %s %d %.4f %v %s", rule.ClusterID(first.Sketch.Fingerprint), d.ID, len(cluster),
			min(1, max(0, agreement)), d.ID == first.ID, d.Host))
	}
	return lines
}

// sorted returns the lines sorted, those of documents without text as the oracle writes them.
func sorted(lines []string, list []Document) []string {
	textless := map[string]bool{}
	for _, d := range list {
		textless[d.ID] = d.Sketch == nil
	}
	lines = slices.Clone(lines)
	for i, line := range lines {
		if fields := strings.Fields(line); len(fields) > 2 && textless[fields[1]] {
			lines[i] = "textless " + fields[1]
		}
	}
	slices.Sort(lines)
	return lines
}

func TestBandsAgreeWithBruteForce(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		rule := ruleOf(t, sketch.DefaultScheme(), []float64{0.5, 0.64, 0.8, 0.95}[seed%4], 8)
		rule.Profile.MinWords = []int{0, 30}[seed/4%2]
		rule.Bands, rule.Rows = 96, 1 // two that agree in one position are candidates: none is missed
		list := documents(rule, texts(r, 40, 120))
		oracle := brute(func(a, b Document) bool { near, _ := rule.Profile.NearDuplicates(a.Sketch, b.Sketch); return near })
		want := sorted(oracle(list, rule), list)
		got := sorted(clustered(t, Options{Rule: rule}, list), list)
		expect.Must(t, want, got, "seed %d", seed)
	}
}

// exactly reports near-duplicates by their sets.
func exactly(rule *rule.Rule) func(a, b Document) bool {
	return func(a, b Document) bool {
		p := rule.Profile
		exact := sketch.Resemblance(a.Shingles, b.Shingles)
		if p.Measure == rerank.Containment {
			exact = max(sketch.Containment(a.Shingles, b.Shingles), sketch.Containment(b.Shingles, a.Shingles))
		}
		if a.Sketch.SameText(b.Sketch) || exact == 1 && a.Sketch.SameWords(b.Sketch) {
			return true
		}
		return exact >= p.Threshold && min(len(a.Shingles), len(b.Shingles)) >= p.MinShingles &&
			(p.Measure == rerank.Containment || !a.Sketch.OtherTopics(b.Sketch))
	}
}

func both(f, g func(a, b Document) bool) func(a, b Document) bool {
	return func(a, b Document) bool { return f(a, b) && g(a, b) }
}

// shares reports same texts, and those that have a shingle in common that is in no more than so many texts.
func shares(list []Document, common int) func(a, b Document) bool {
	in, seen := map[uint64]int{}, map[uint64]bool{}
	for _, d := range list {
		if d.Sketch != nil && !seen[d.Sketch.Fingerprint] {
			seen[d.Sketch.Fingerprint] = true
			for _, shingle := range d.Shingles {
				in[shingle]++
			}
		}
	}
	return func(a, b Document) bool {
		return a.Sketch.SameText(b.Sketch) || slices.ContainsFunc(a.Shingles, func(s uint64) bool {
			_, has := slices.BinarySearch(b.Shingles, s)
			return has && in[s] <= common
		})
	}
}

func TestBroderAgreesWithBruteForce(t *testing.T) {
	lists := sketch.DefaultScheme()
	lists.Family = sketch.MSmallest
	sample := sketch.DefaultScheme()
	sample.Family = sketch.ZeroModM
	sample.Modulus = 4
	contained := rerank.Profile{Measure: rerank.Containment}
	for _, test := range []struct {
		name     string
		scheme   sketch.Scheme
		profile  rerank.Profile
		longest  int
		common   int
		bySketch bool
	}{
		{name: "sets", scheme: sketch.DefaultScheme(), longest: 200},
		{name: "contained sets", scheme: sketch.DefaultScheme(), profile: contained, longest: 200},
		{name: "exact lists", scheme: lists, longest: 100},
		{name: "cut lists", scheme: lists, longest: 600, bySketch: true},
		{name: "contained in cut lists", scheme: lists, profile: contained, longest: 600, bySketch: true},
		{name: "samples", scheme: sample, longest: 300, bySketch: true},
		{name: "common shingles count all the same", scheme: sketch.DefaultScheme(), longest: 200, common: 12},
	} {
		t.Run(test.name, func(t *testing.T) {
			for seed := range uint64(max(4, effort.Rounds(8))) { // each of the thresholds once at least
				r := rand.New(rand.NewPCG(seed, 2))
				rule := ruleOf(t, test.scheme, []float64{0.3, 0.5, 0.64, 0.9}[seed%4], 8)
				rule.Profile.Measure = test.profile.Measure
				list := documents(rule, texts(r, 100, test.longest))
				near := exactly(rule)
				if test.bySketch {
					near = func(a, b Document) bool { near, _ := rule.Profile.NearDuplicates(a.Sketch, b.Sketch); return near }
				}
				if test.common > 0 {
					near = both(near, shares(list, test.common))
				}
				want := sorted(brute(near)(list, rule), list)
				got := sorted(clustered(t, Options{Rule: rule, Algorithm: Broder, Common: test.common}, list), list)
				expect.Must(t, want, got, "seed %d", seed)
			}
		})
	}
}

// TestNothingElseMatters holds that neither order nor memory changes a byte.
func TestNothingElseMatters(t *testing.T) {
	lists := sketch.DefaultScheme()
	lists.Family = sketch.MSmallest
	n := 6000
	if testing.Short() {
		n = 1500
	}
	for _, test := range []struct {
		algorithm Algorithm
		scheme    sketch.Scheme
	}{{Bands, sketch.DefaultScheme()}, {Broder, sketch.DefaultScheme()}, {Broder, lists}, {Exact, sketch.DefaultScheme()}} {
		t.Run(string(test.algorithm)+" "+string(test.scheme.Family), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 3))
			rule := ruleOf(t, test.scheme, 0.64, 8)
			list := documents(rule, texts(r, n, 60))
			o := Options{Rule: rule, Algorithm: test.algorithm, Common: 50}
			want := clustered(t, o, list)
			for _, memory := range []int64{1, 1 << 20} {
				o.Memory = memory
				r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
				expect.Must(t, want, clustered(t, o, list), "with %d bytes", memory)
			}
		})
	}
}

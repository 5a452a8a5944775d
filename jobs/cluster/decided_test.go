package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// clustersIn returns the cluster of each document.
func clustersIn(lines []string) map[string]string {
	of := map[string]string{}
	for _, line := range lines {
		words := strings.Fields(line)
		of[words[1]] = words[0]
	}
	return of
}

// TestDecidedPairs: what is the same is joined and what is different never is together, whatever the order, the memory and the way. A cluster without such a pair is
// as it was; one that holds any is in as few parts as it can be.
func TestDecidedPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	scheme := sketch.DefaultScheme()
	parted := 0
	for i := range effort.Rounds(60) {
		rule := ruleOf(t, scheme, 0.3+0.5*r.Float64(), 3)
		rule.Bands, rule.Rows = scheme.Positions, 1 // all pairs are candidates, but by chance
		list := documents(rule, texts(r, 45, 60))
		by := map[string]Document{}
		for _, d := range list {
			by[d.ID] = d
		}
		var pairs []decided.Pair
		for range r.IntN(12) {
			a, b := list[r.IntN(len(list))], list[r.IntN(len(list))]
			if r.IntN(3) == 0 { // of one text, if there is another
				if at := slices.IndexFunc(list, func(d Document) bool {
					return d.ID != a.ID && d.Sketch != nil && a.Sketch != nil && d.Sketch.Fingerprint == a.Sketch.Fingerprint
				}); at >= 0 {
					b = list[at]
				}
			}
			named := decided.Pair{A: a.ID, B: b.ID}
			if a.ID == b.ID || a.Sketch == nil || b.Sketch == nil || slices.ContainsFunc(pairs, func(p decided.Pair) bool { return p.Name() == named.Name() }) {
				continue
			}
			pairs = append(pairs, decided.Pair{
				A: a.ID, B: b.ID, Verdict: []decided.Verdict{decided.Same, decided.Different, decided.Different}[r.IntN(3)], TextA: a.Sketch.Fingerprint, TextB: b.Sketch.Fingerprint,
			})
		}
		stale := []decided.Pair{{A: "d00000", B: "d00001", Verdict: decided.Different, TextA: 1}, {A: "gone", B: "d00002", Verdict: decided.Same}}
		edge := func(a, b Document) bool {
			if a.Sketch == nil || b.Sketch == nil {
				return false
			}
			at := slices.IndexFunc(pairs, func(p decided.Pair) bool { return p.Name() == (&decided.Pair{A: a.ID, B: b.ID}).Name() })
			near, _ := rule.Profile.NearDuplicates(a.Sketch, b.Sketch)
			return at >= 0 && pairs[at].Verdict == decided.Same || near
		}
		o := Options{Rule: rule, Algorithm: Bands, Decided: append(stale, pairs...)}
		lines := clustered(t, o, list)
		slices.Sort(lines)
		for _, memory := range []int64{1 << 10, 1 << 30} {
			shuffled := slices.Clone(list)
			r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			o.Memory = memory
			again := clustered(t, o, shuffled)
			slices.Sort(again)
			expect.Must(t, lines, again, "case %d: in another order, with %d bytes", i, memory)
		}
		got := clustersIn(lines)
		whole := clustersIn(sorted(brute(edge)(list, rule), list)) // as if nothing were different
		apart := map[string]bool{}                                 // the clusters of those that were divided
		for _, p := range pairs {
			if p.Verdict == decided.Different {
				if got[p.A] == got[p.B] {
					t.Fatalf("case %d: %s and %s are different and in %s", i, p.A, p.B, got[p.A])
				}
				apart[whole[p.A]] = apart[whole[p.A]] || whole[p.A] == whole[p.B]
			}
		}
		for _, a := range list {
			for _, b := range list {
				together, before := got[a.ID] == got[b.ID], whole[a.ID] == whole[b.ID]
				switch {
				case a.ID >= b.ID || a.Sketch == nil || b.Sketch == nil:
				case together && !before, before && !together && !apart[whole[a.ID]]:
					t.Fatalf("case %d: %s and %s together: %v, before: %v", i, a.ID, b.ID, together, before)
				case before && !together && edge(a, b):
					parted++
					if !slices.ContainsFunc(pairs, func(p decided.Pair) bool {
						x, y := [2]string{got[p.A], got[p.B]}, [2]string{got[a.ID], got[b.ID]}
						return p.Verdict == decided.Different && (x == y || x == [2]string{y[1], y[0]})
					}) {
						t.Fatalf("case %d: %s and %s are apart, and nothing keeps %s from %s", i, a.ID, b.ID, got[a.ID], got[b.ID])
					}
				}
			}
		}
	}
	if !effort.Race && parted < 20 { // under the race detector there are too few rounds
		t.Errorf("only %d edges were parted", parted)
	}
}

// TestDividedByAgreement: a text between two that are different stays with the one that it is more like, in small clusters and in large ones.
func TestDividedByAgreement(t *testing.T) {
	r := ruleOf(t, sketch.DefaultScheme(), 0.3, 3)
	words := strings.Fields(wordsOf(300))
	edit := func(n int, by string) string {
		text := slices.Clone(words)
		for i := range n {
			text[i*7] = fmt.Sprint(by, i)
		}
		return strings.Join(text, " ")
	}
	for _, copies := range []int{1, mostWhole} {
		all := []string{edit(0, ""), edit(25, "far"), edit(3, "near")}
		for i := range copies { // like the second
			all = append(all, edit(25, "far")+fmt.Sprint(" ", i))
		}
		list := documents(r, all)
		got := clustersIn(clustered(t, Options{Rule: ruleWithBands(r), Algorithm: Bands, Decided: []decided.Pair{{A: "d00000", B: "d00001", Verdict: decided.Different}}}, list))
		if got["d00000"] != got["d00002"] || got["d00000"] == got["d00001"] || got["d00001"] != got["d00003"] || got["d00001"] != got[list[len(list)-1].ID] {
			t.Errorf("with %d copies: %s %s %s %s", copies, got["d00000"], got["d00001"], got["d00002"], got["d00003"])
		}
	}
}

func ruleWithBands(r *rule.Rule) *rule.Rule {
	with := *r
	with.Bands, with.Rows = 48, 2
	return &with
}

func wordsOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "word%d ", i)
	}
	return b.String()
}

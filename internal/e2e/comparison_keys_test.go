package e2e

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/sketch"
)

// profileKey is the key that Solr's TextProfileSignature goes by, as its documentation describes it: the words of a text that
// come more than once, with their counts rounded down.
func profileKey(text string) string {
	counts, most := map[string]int{}, 0
	for _, word := range lowWords(text) {
		if len([]rune(word)) > 2 {
			counts[word]++
			most = max(most, counts[word])
		}
	}
	quant := int(math.Round(float64(most) * 0.01))
	if quant < 2 {
		quant = min(most, 2)
	}
	type entry struct {
		word  string
		count int
	}
	var profile []entry
	for word, count := range counts {
		if count = count / quant * quant; count > 0 {
			profile = append(profile, entry{word, count})
		}
	}
	slices.SortFunc(profile, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.word, b.word))
	})
	return fmt.Sprint(profile)
}

// bitsKey is the kind of key that Fess collapses by: 64 values of min-hash over single words, two bits of each.
func bitsKey(text string) string {
	least := make([]uint64, 64)
	for i := range least {
		least[i] = math.MaxUint64
	}
	for _, word := range lowWords(text) {
		h := fnv.New64a()
		h.Write([]byte(word))
		x := h.Sum64()
		for i := range least {
			y := (x ^ uint64(i+1)*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
			y = (y ^ y>>33) * 0xc4ceb9fe1a85ec53
			least[i] = min(least[i], y^y>>33)
		}
	}
	var b strings.Builder
	for _, v := range least {
		b.WriteByte('0' + byte(v&3))
	}
	return b.String()
}

// lowWords are the runs of letters and digits, in lower case.
func lowWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// TestComparisonKeys is about keys that stand for a text and are equal or not, over the articles of the walk-through, whose
// pairs are labelled: how many of the pairs of versions they find, beside agreement by sketches. The keys are made here after
// what the products publish of them, not by the products.
func TestComparisonKeys(t *testing.T) {
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		group, profile, bits string
		sketch               sketch.Sketch
	}
	var rows []row
	for _, d := range corpus.Documents() {
		r := row{group: d.Group, profile: profileKey(d.Body), bits: bitsKey(d.Body)}
		r.sketch, _ = sketcher.Sketch(d.Title, d.Body)
		rows = append(rows, r)
	}
	found, wrong, pairs := map[string]int{}, map[string]int{}, 0
	for i, a := range rows {
		for _, b := range rows[:i] {
			agreement, ok := a.sketch.Agreement(&b.sketch)
			judged := map[string]bool{"profile": a.profile == b.profile, "bits": a.bits == b.bits, "sketch": ok && agreement >= 0.64}
			if a.group == b.group {
				pairs++
			}
			for by, near := range judged {
				switch {
				case near && a.group == b.group:
					found[by]++
				case near:
					wrong[by]++
				}
			}
		}
	}
	share := func(by string) float64 { return float64(found[by]) / float64(pairs) }
	for _, by := range []string{"profile", "bits", "sketch"} {
		t.Logf("%s: %.1f %% of %d pairs of versions, %d pairs of other texts", by, 100*share(by), pairs, wrong[by])
	}
	want := map[string][2]int{"profile": {129, 9}, "bits": {102, 0}, "sketch": {375, 0}}
	for by, figures := range want {
		if got := [2]int{found[by], wrong[by]}; got != figures {
			t.Errorf("%s: %v pairs, docs/comparison.md says %v", by, got, figures)
		}
	}
}

package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// shingleAtRandom is a text of a few shingles of words that nobody else has.
func shingleAtRandom(r *rand.Rand) string {
	var word [13]byte
	for i := range word {
		word[i] = byte('a' + r.IntN(26))
	}
	word[6] = ' '
	return string(word[:])
}

// forger makes up texts that share no shingle with a page and whose sketch is the page's: to a bed of shingles it adds one after the other
// and keeps those that bring a position to the page's value. It has to compute sketches, or be told agreements, under the page's seed.
func forger(s *sketch.Sketcher, page *sketch.Sketch, r *rand.Rand, asks int) (texts []string) {
	bed := make([]string, 200)
	for i := range bed {
		bed[i] = shingleAtRandom(r)
	}
	before, _ := s.Sketch(bed...)
	kept := map[int]string{}
	for range asks {
		x := shingleAtRandom(r)
		after, _ := s.Sketch(append(bed[:len(bed):len(bed)], x)...)
		for i, value := range after.Payload {
			if value != before.Payload[i] && value == page.Payload[i] {
				kept[i] = x
			}
		}
	}
	for _, x := range kept {
		if !slices.Contains(texts, x) {
			texts = append(texts, x)
		}
	}
	return texts
}

func sketcherOf(t *testing.T, seed string) *sketch.Sketcher {
	t.Helper()
	scheme := sketch.DefaultScheme()
	scheme.Seed = seed
	s, err := sketch.New(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inventedPage is a page of so many random words.
func inventedPage(r *rand.Rand, words int) string {
	var page strings.Builder
	for range words {
		fmt.Fprintf(&page, "w%d ", r.IntN(9000))
	}
	return page.String()
}

// TestAttackFolding counts the pages that a forger who knows all but the seed can fold away by texts that share no shingle with them: those
// without a seed, and none of those with one.
func TestAttackFolding(t *testing.T) {
	victims, asks := 1, 8_000
	if soaking() {
		victims, asks = 5, 150_000
	}
	open, secret := sketcherOf(t, ""), sketcherOf(t, "what nobody knows")
	folds, closest := map[*sketch.Sketcher]int{}, map[*sketch.Sketcher]float64{}
	for i := range victims {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		page := inventedPage(r, 120)
		shown, _ := open.Sketch(page)
		texts := forger(open, &shown, r, asks)
		for _, s := range []*sketch.Sketcher{open, secret} {
			of, _ := s.Sketch(page)
			forged, ok := s.Sketch(texts...)
			if !ok {
				t.Fatal("nothing was forged")
			}
			if near, _ := rerank.Default.NearDuplicates(&forged, &of); near {
				folds[s]++
			}
			agreement, _ := forged.Agreement(&of)
			closest[s] = max(closest[s], agreement)
		}
	}
	t.Logf("%d pages, %d shingles tried for each: %d folded away without a seed (agreement up to %.2f), %d with one (up to %.2f)",
		victims, asks, folds[open], closest[open], folds[secret], closest[secret])
	if closest[open] < 0.05 || soaking() && folds[open] < victims {
		t.Error("the forger can't forge: this measures nothing")
	}
	if folds[secret] > 0 || closest[secret] > 0.05 {
		t.Errorf("%d of %d pages are folded away by what was made up without the seed", folds[secret], victims)
	}
}

package calibrate

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// planted is an index of n documents that have nothing in common, and of pairs of a known resemblance.
func planted(t testing.TB, scheme sketch.Scheme, n, pairs int) (m *memory, exact []float64) {
	t.Helper()
	m = newMemory(t, scheme)
	for i := range n {
		m.add(t, fmt.Sprintf("lone-%d", i), words(fmt.Sprintf("l%dw", i), 60))
	}
	for i := range pairs {
		common := 20 + 80*i/pairs // of 100 words
		shared := words(fmt.Sprintf("s%dw", i), common)
		a, b := shared+words(fmt.Sprintf("a%dw", i), 100-common), shared+words(fmt.Sprintf("b%dw", i), 100-common)
		m.add(t, fmt.Sprintf("a-%d", i), a)
		m.add(t, fmt.Sprintf("b-%d", i), b)
		exact = append(exact, sketch.Resemblance(m.rule.Sketcher.Shingles(a), m.rule.Sketcher.Shingles(b)))
	}
	return m, exact
}

// TestCandidatesAreFound holds what was found by each way against the pairs that were planted.
func TestCandidatesAreFound(t *testing.T) {
	const pairs = 400
	for _, c := range []struct {
		way    string
		scheme sketch.Scheme
		lone   int
	}{
		{ByAll, sketch.DefaultScheme(), 500},
		{ByBands, sketch.DefaultScheme(), 5000},
		{ByBands, sketch.Scheme{Family: sketch.SimHash, Positions: 256}, 3600},
		{ByValues, sketch.Scheme{Family: sketch.MSmallest}, 3600},
	} {
		t.Run(c.way+" "+string(c.scheme.Family), func(t *testing.T) {
			if testing.Short() && c.scheme.Family == sketch.SimHash || effort.Race && c.way == ByValues {
				t.Skip("it takes long")
			}
			m, exact := planted(t, c.scheme, c.lone, pairs)
			r := run(t, m, func(o *Options) {
				if testing.Short() {
					o.Sample = 300 // what is compared at random takes the most time
				}
			})
			if r.Way != c.way || r.Read != c.lone+2*pairs || !r.Whole || r.Documents != r.Read {
				t.Fatalf("%d of %d read, by %s", r.Read, r.Documents, r.Way)
			}
			for _, threshold := range []float64{0.3, 0.5, 0.7} {
				want, found := 0.0, 0.0
				for _, r := range exact {
					if r >= threshold {
						want++
					}
				}
				for bin, n := range r.Candidates.Estimated {
					if float64(bin)/Bins >= threshold-1e-9 {
						found += n
					}
				}
				if math.Abs(found-want) > 0.1*want+10 {
					t.Errorf("about %.0f pairs from %.1f on, planted were %.0f", found, threshold, want)
				}
				at := slices.Index(thresholds[:], threshold)
				if share := want / float64(r.Read); math.Abs(r.Shares[at].Folded-share) > 0.1*share+0.003 {
					t.Errorf("%.4f would fold at %.1f, planted were %.4f", r.Shares[at].Folded, threshold, share)
				}
			}
			// A simhash says so little that its lower levels are full of pairs which chance alone brought there.
			if e := r.Error; e.Pairs == 0 || e.Measured > 1.5*e.Promised && c.scheme.Family != sketch.SimHash {
				t.Errorf("an error of %.4f over %d pairs, and the sketches tell %.4f", e.Measured, e.Pairs, e.Promised)
			}
		})
	}
}

// TestReportIsTheSame reads the same documents in another order, and with another seed.
func TestReportIsTheSame(t *testing.T) {
	m, _ := planted(t, sketch.DefaultScheme(), 150, 100)
	few := func(o *Options) { o.Pairs, o.Sample = 5, 200 }
	first := run(t, m, few)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(m.order), func(i, j int) { m.order[i], m.order[j] = m.order[j], m.order[i] })
	again := run(t, m, few)
	unexported := cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && f.Name() != "" && strings.ToLower(f.Name()[:1]) == f.Name()[:1]
	}, cmp.Ignore())
	expect.By{unexported, cmpopts.EquateApprox(0, 1e-12)}.Same(t, first, again, "")
	other := run(t, m, func(o *Options) { few(o); o.Seed = 2 })
	if cmp.Equal(first.Levels, other.Levels, unexported) {
		t.Error("another seed chose the same pairs")
	}
	if first.Suggestion != other.Suggestion || !cmp.Equal(first.Shares, other.Shares) {
		t.Error("another seed counted otherwise, of documents that were all read")
	}
}

// TestStoredBandsSayTheSame looks every document up, where reading them all tells what there is to find.
func TestStoredBandsSayTheSame(t *testing.T) {
	m, _ := planted(t, sketch.DefaultScheme(), 150, 100)
	for i := range 20 {
		m.add(t, fmt.Sprintf("copy-%d", i), words("the same text ", 50))
	}
	m.rule.Bands, m.rule.Rows = 24, 4
	whole := run(t, m, nil)
	without := run(t, m, func(o *Options) { o.Documents, o.Sample = 100, 50 })
	if without.Way == ByStored || without.Whole {
		t.Errorf("by %s, where no bands are stored", without.Way)
	}
	m.enrich(t)
	looked := run(t, m, func(o *Options) { o.Documents, o.Sample = len(m.order)-1, len(m.order) })
	if looked.Way != ByStored || looked.Read != len(m.order) {
		t.Fatalf("%d read, by %s", looked.Read, looked.Way)
	}
	for i, s := range looked.Shares {
		if want := whole.Shares[i]; s.Threshold >= 0.6 && math.Abs(s.Folded-want.Folded) > 0.01 {
			t.Errorf("%.4f would fold at %.2f by stored bands, %.4f do", s.Folded, s.Threshold, want.Folded)
		}
	}
	for bin := 13; bin < Bins; bin++ {
		if got, want := looked.Candidates.Found[bin], whole.Candidates.Found[bin]; math.Abs(got-want) > 0.1*want+2 {
			t.Errorf("%.0f pairs of bin %d by stored bands, %.0f there are", got, bin, want)
		}
	}
	expect.Same(t, whole.Candidates.Same, looked.Candidates.Same, "pairs of the same text")
}

// TestCopiesCount has ten copies of a text and one that is near it: all but one of the eleven fold.
func TestCopiesCount(t *testing.T) {
	m := newMemory(t, sketch.DefaultScheme())
	for i := range 10 {
		m.add(t, fmt.Sprintf("copy-%d", i), words("w", 100))
	}
	m.add(t, "near", words("w", 98)+"one more")
	m.add(t, "other", words("x", 100))
	r := run(t, m, nil)
	if got := r.Shares[8].Folded; math.Abs(got-10.0/12) > 1e-9 || r.Copies != 9 || r.Candidates.Same != 45 {
		t.Errorf("%v fold, %d copies, %v pairs of the same text", got, r.Copies, r.Candidates.Same)
	}
	at := 0.0
	for bin, n := range r.Candidates.Found {
		if n == 10 {
			at = float64(bin) / Bins
		}
	}
	if at < 0.85 || r.Levels[8].Compared+r.Levels[9].Compared == 0 {
		t.Errorf("the pairs of the near one are at %v: %v", at, r.Candidates.Found)
	}
}

// TestOddIndices have little to say, and are said to: no number of their reports is none.
func TestOddIndices(t *testing.T) {
	for name, fill := range map[string]func(m *memory){
		"empty":    func(*memory) {},
		"one":      func(m *memory) { m.add(t, "1", words("a", 20)) },
		"textless": func(m *memory) { m.add(t, "1", "…"); m.add(t, "2", "") },
		"copies":   func(m *memory) { m.add(t, "1", words("a", 20)); m.add(t, "2", words("a", 20)) },
		"short":    func(m *memory) { m.add(t, "1", "one two"); m.add(t, "2", "one two three") },
	} {
		for _, family := range []sketch.Family{
			sketch.FastSimilarity, sketch.Permutations, sketch.MSmallest, sketch.ZeroModM, sketch.SimHash,
		} {
			for _, measure := range []rerank.Measure{rerank.Resemblance, rerank.Containment} {
				m := newMemory(t, sketch.Scheme{Family: family})
				m.rule.Profile.Measure = measure
				fill(m)
				r := run(t, m, nil)
				if _, err := json.Marshal(r); err != nil {
					t.Errorf("%s, %s, %s: %v", name, family, measure, err)
				}
				if s := r.Suggestion; s.Kind != Few || s.Sure || s.Threshold != m.rule.Profile.Threshold || s.Reason == "" {
					t.Errorf("%s, %s, %s: %+v", name, family, measure, s)
				}
			}
		}
	}
}

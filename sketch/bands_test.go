package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// bandsOf returns the keys of a sketch that must have bands.
func bandsOf(t *testing.T, k *Sketch, bands, rows int) []uint64 {
	t.Helper()
	keys, ok := k.AppendBands(nil, bands, rows)
	if !ok || len(keys) != bands {
		t.Fatalf("%d keys of %d bands of %d rows, %v", len(keys), bands, rows, ok)
	}
	return keys
}

// bandForms are the forms of payload that have bands.
var bandForms = []string{"positions of 8 bits", "positions of 4 bits", "positions of 2 bits", "positions of 1 bit", "sides"}

func TestBandsOfEqualSketches(t *testing.T) {
	for _, form := range bandForms {
		s := newSketcher(t, everyForm[form])
		a, _ := s.Sketch("The quick brown fox jumps over the lazy dog.")
		b, _ := s.Sketch("the QUICK brown fox, jumps over the lazy dog")
		keys := bandsOf(t, &a, 8, 8)
		if !slices.Equal(keys, bandsOf(t, &b, 8, 8)) {
			t.Errorf("%s: equal payloads have other keys", form)
		}
		expect.Same(t, 8, len(slices.Compact(slices.Sorted(slices.Values(keys)))), "%s: keys of the 8 bands of one sketch", form)
		appended, _ := a.AppendBands([]uint64{1, 2}, 8, 8)
		if !slices.Equal(appended[:2], []uint64{1, 2}) || !slices.Equal(appended[2:], keys) {
			t.Errorf("%s: AppendBands does not append", form)
		}
	}
}

// TestBandsAreToldApart: a band of the same bits is another term at another place, and under another scheme.
func TestBandsAreToldApart(t *testing.T) {
	seen := map[uint64]string{}
	for _, scheme := range []uint32{0, 1, 1 << 31} {
		k := Sketch{Scheme: scheme, Bits: 8, Shingles: 1, Payload: make([]byte, 128)}
		for band, key := range bandsOf(t, &k, 32, 4) {
			place := fmt.Sprintf("band %d of scheme %d", band, scheme)
			if other, taken := seen[key]; taken {
				t.Errorf("%s has the key of %s", place, other)
			}
			seen[key] = place
		}
	}
}

// TestBandsUseTheirPositions changes every single bit of a payload: it changes the key of its own band and no other, and none
// where its position is not used.
func TestBandsUseTheirPositions(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, form := range bandForms {
		s := newSketcher(t, everyForm[form])
		k, _ := s.Sketch("one two three four five six seven eight nine ten")
		for _, c := range []struct{ bands, rows int }{{1, 1}, {3, 7}, {5, 9}, {8, 8}, {2, 31}, {1, 64}} {
			want := bandsOf(t, &k, c.bands, c.rows)
			for bit := range 8 * len(k.Payload) {
				if r.IntN(4) != 0 {
					continue
				}
				k.Payload[bit/8] ^= 1 << (bit % 8)
				got := bandsOf(t, &k, c.bands, c.rows)
				k.Payload[bit/8] ^= 1 << (bit % 8)
				for band := range want {
					own := bit/int(k.Bits)/c.rows == band
					if changed := got[band] != want[band]; changed != own {
						t.Fatalf("%s, %+v, bit %d: the key of band %d changes: %v, want %v", form, c, bit, band, changed, own)
					}
				}
			}
		}
	}
}

func TestNoBands(t *testing.T) {
	for _, form := range []string{"all values", "values that are cut", "few values", "ready"} {
		s := newSketcher(t, everyForm[form])
		k, ok := s.Sketch("0123456789abcdef", "one two three four five six seven eight nine ten")
		if keys, has := k.AppendBands([]uint64{7}, 1, 1); !ok || has || !slices.Equal(keys, []uint64{7}) {
			t.Errorf("%s: keys %v, %v of sketch %v", form, keys, has, ok)
		}
	}
	k, _ := newSketcher(t, nil).Sketch("one two three")
	for _, c := range [][2]int{{0, 8}, {-1, 8}, {8, 0}, {8, -1}, {97, 1}, {1, 97}, {12, 9}, {math.MaxInt, math.MaxInt}} {
		if keys, has := k.AppendBands(nil, c[0], c[1]); has || keys != nil {
			t.Errorf("%d bands of %d rows of 96 positions: %d keys", c[0], c[1], len(keys))
		}
	}
	if keys, has := new(Sketch).AppendBands(nil, 1, 1); has || keys != nil {
		t.Error("the zero sketch has bands")
	}
}

// TestBandsBySimulation counts how many random pairs share a key. Independent positions do as [Candidate] says, once the chance
// that 8 bits are equal is added. Those of fast_similarity depend on one another, which moves the share little.
func TestBandsBySimulation(t *testing.T) {
	trials := accuracyTrials()
	for _, c := range []struct{ n, both, bands, rows int }{
		{60, 48, 16, 8}, {60, 36, 16, 8}, {60, 55, 16, 8}, {40, 20, 32, 4},
		{40, 8, 32, 4}, {20, 5, 64, 2}, {30, 29, 3, 32}, {24, 0, 128, 1},
	} {
		sets := setPairCase{c.n, c.n, c.both}
		for _, family := range []Family{Permutations, FastSimilarity} {
			shared := 0.0
			var one, other []uint64
			measure(t, Scheme{Family: family, Positions: 128, Seed: fmt.Sprint(c)}, sets, trials, func(a, b *Sketch) {
				one, _ = a.AppendBands(one[:0], c.bands, c.rows)
				other, _ = b.AppendBands(other[:0], c.bands, c.rows)
				for i := range one {
					if one[i] == other[i] {
						shared++
						break
					}
				}
			})
			r := sets.resemblance()
			got, want := shared/float64(trials), Candidate(r+(1-r)/256, c.bands, c.rows)
			slack := 4.5 * math.Sqrt(want*(1-want)/float64(trials))
			t.Logf("%-16s %+v: resemblance %.3f, share %.4f, Candidate %.4f ± %.4f", family, c, r, got, want, slack/4.5)
			if family == FastSimilarity {
				slack += 0.03
			}
			if math.Abs(got-want) > slack {
				t.Errorf("%s %+v: a share of %.4f has a common key, want %.4f ± %.4f", family, c, got, want, slack)
			}
		}
	}
}

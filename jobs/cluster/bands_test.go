package cluster

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// TestPairs holds the rule of a bucket by its words.
func TestPairs(t *testing.T) {
	for _, texts := range []int{0, 1, 2, 49, 50, 51, 200} {
		var got, want [][2]int
		Pairs(texts, func(a, b int) bool { got = append(got, [2]int{a, b}); return true })
		for a := range texts {
			for b := range texts {
				if a < b && (b < 50 || a == 0) {
					want = append(want, [2]int{a, b})
				}
			}
		}
		expect.Same(t, want, got, "%d texts", texts)
	}
}

// TestBuckets holds that short texts take no place in a bucket of long ones and fold with the same words, and that of more than 50 the rest
// is compared with the first alone.
func TestBuckets(t *testing.T) {
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	rule.Bands, rule.Rows = 1, 4
	at := func(fingerprint uint64, shingles uint32, rest byte) Document {
		s := sketch.Sketch{Scheme: rule.Sketcher.SchemeID(), Form: sketch.Positions, Bits: 8, Shingles: shingles, Fingerprint: fingerprint}
		for i := range 96 {
			s.Payload = append(s.Payload, byte(i))
			if i >= 4 {
				s.Payload[i] += rest
			}
		}
		return Document{ID: fmt.Sprint(fingerprint), Sketch: &s}
	}
	var list []Document
	for i := range uint64(60) {
		list = append(list, at(i, 7, byte(i%59))) // the last has the words of the first
	}
	list = append(list, at(1000, 100, 0), at(1001, 100, 1), at(1002, 100, 1)) // the last two are near-duplicates
	for i := range uint64(50) {
		list = append(list, at(2000+i, 100, byte(10+i)))
	}
	list = append(list, at(3000, 100, 2), at(3001, 100, 2)) // these too, but they are past the first 50, and unlike the first
	list = append(list, at(1<<63, 100, 0))                  // this one is like the first; as a signed number it would be before all
	c, got := joined(t, Options{Rule: rule}, list), map[string][]string{}
	err := c.Each(t.Context(), func(members []Member) error {
		for _, m := range members {
			if m.Size > 1 {
				got[m.Cluster] = append(got[m.Cluster], m.ID)
			}
		}
		return nil
	})
	want := map[string][]string{rule.ClusterID(0): {"0", "59"}, rule.ClusterID(1000): {"1000", fmt.Sprint(uint64(1 << 63))}, rule.ClusterID(1001): {"1001", "1002"}}
	expect.OK(t, err)
	expect.Same(t, want, got, "")
	expect.Same(t, Left{CutBuckets: 1, CutTexts: 56}, c.Left(), "")
}

// TestKeys holds that buckets are made of the keys that are stored in the engines.
func TestKeys(t *testing.T) {
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 1)
	c, stored := filled(t, Options{Rule: rule}, nil), *rule
	stored.Bands, stored.Rows = c.Shape()
	s, _ := rule.Sketcher.Sketch("some words that are to be looked up by bands")
	keys := expect.Value(c.keys(nil, &s, stored.Bands))(t)
	var high []int64
	for _, key := range keys {
		high = append(high, -1-int64(key>>32)) // stored as a negative number
	}
	expect.Same(t, stored.BandKeys(&s), high, "")
}

// TestReadyValues clusters 64-bit values that came ready: no pair is missed.
func TestReadyValues(t *testing.T) {
	for _, threshold := range []float64{0.8, 0.9, 0.95, 0.97, 1} {
		rule := ruleOf(t, sketch.Scheme{Family: sketch.Hamming, Features: sketch.Value64}, threshold, 8)
		r := rand.New(rand.NewPCG(uint64(100*threshold), 11))
		var list []Document
		var values []uint64
		for i := range 400 {
			value := r.Uint64()
			if i > 0 && r.IntN(3) > 0 {
				value = values[r.IntN(i)]
				for range r.IntN(14) {
					value ^= 1 << r.IntN(64)
				}
			}
			values = append(values, value)
			s, _ := rule.Sketcher.Sketch(fmt.Sprintf("%016x", value))
			list = append(list, Document{ID: fmt.Sprint(i), Sketch: &s})
		}
		near := brute(func(a, b Document) bool { near, _ := rule.Profile.NearDuplicates(a.Sketch, b.Sketch); return near })
		expect.Same(t, sorted(near(list, rule), list), sorted(clustered(t, Options{Rule: rule}, list), list), "%v", threshold)
	}
}

// TestElsewhere holds that pairs found elsewhere by the same rule make the same clusters.
func TestElsewhere(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 8))
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	list := documents(rule, texts(r, 800, 100))
	want := clustered(t, Options{Rule: rule}, list)
	stored := *rule
	seek := func(_ context.Context, texts iter.Seq2[*sketch.Sketch, error]) (iter.Seq2[[2]uint64, error], error) {
		buckets := map[[2]int64][]uint64{}
		for s, err := range texts {
			if err != nil {
				return nil, err
			}
			for band, key := range stored.BandKeys(s) {
				at := [2]int64{int64(band), key}
				buckets[at] = append(buckets[at], s.Fingerprint)
			}
		}
		return func(yield func([2]uint64, error) bool) {
			for _, bucket := range buckets {
				slices.Sort(bucket)
				Pairs(len(bucket), func(a, b int) bool { return yield([2]uint64{bucket[a], bucket[b]}, nil) })
			}
		}, nil
	}
	got := runBy(t, Options{Rule: rule}, list, func(c *Corpus, ctx context.Context) error {
		stored.Bands, stored.Rows = c.Shape()
		return c.ClusterBy(ctx, seek)
	})
	expect.Same(t, want, got, "")
}

func TestRefusals(t *testing.T) {
	lists := ruleOf(t, sketch.Scheme{Family: sketch.MSmallest}, 0.64, 8)
	plain := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	for name, o := range map[string]Options{
		"bands of lists": {Rule: lists, Algorithm: Bands},
		"too many bands": {Rule: &rule.Rule{Sketcher: plain.Sketcher, Profile: plain.Profile, Bands: 32, Rows: 8}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	c := filled(t, Options{Rule: plain}, nil)
	s, _ := lists.Sketcher.Sketch("a text of another scheme")
	if err := c.Add(Document{ID: "x", Sketch: &s}); err == nil || !strings.Contains(err.Error(), "another scheme") {
		t.Errorf("a sketch of another scheme was taken: %v", err)
	}
}

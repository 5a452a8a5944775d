package similar_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/similar"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// definedGroups returns the groups of a list by their definition, members in the order of the list, at whatever cost.
func definedGroups(profile rerank.Profile, transitive bool, sketches []*sketch.Sketch) (groups [][]int) {
	near := func(i, j int) bool {
		if sketches[i] == nil || sketches[j] == nil {
			return false
		}
		is, _ := profile.NearDuplicates(sketches[max(i, j)], sketches[min(i, j)])
		return is
	}
	for i := range sketches {
		var joined []int // the groups of which this one is a near-duplicate: for leaders, the first
		for g, members := range groups {
			if near(i, members[0]) || transitive && slices.ContainsFunc(members, func(j int) bool { return near(i, j) }) {
				joined = append(joined, g)
			}
		}
		switch {
		case len(joined) == 0:
			groups = append(groups, []int{i})
			continue
		case transitive: // it joins all these groups to one
			for _, g := range slices.Backward(joined[1:]) {
				groups[joined[0]] = append(groups[joined[0]], groups[g]...)
				groups = slices.Delete(groups, g, g+1)
			}
		}
		groups[joined[0]] = append(groups[joined[0]], i)
		slices.Sort(groups[joined[0]])
	}
	return groups
}

// TestDedupe holds what is kept of random lists to the definition.
func TestDedupe(t *testing.T) {
	seed := effort.Seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	documents := texts(t)
	ids := slices.Sorted(maps.Keys(documents))
	folded := 0
	for round := range effort.Rounds(300) {
		r := likeRule(t, "news", []float64{0.5, 0.64, 0.8}[random.IntN(3)])
		r.Transitive, r.Profile.Keep = random.IntN(2) == 0, random.IntN(3)
		l := &similar.List{Keep: random.IntN(4), Threshold: []float64{0, 0.4, 1}[random.IntN(3)]}
		if random.IntN(3) == 0 {
			l.Measure = rerank.Containment
		}
		var sketches []*sketch.Sketch
		for range random.IntN(60) {
			if random.IntN(20) == 0 { // one without a word
				l.Add(r, nil, nil)
				sketches = append(sketches, nil)
				continue
			}
			_, s := r.Given(documents[ids[random.IntN(min(len(ids), 60))]])
			l.Add(r, nil, s)
			sketches = append(sketches, s)
		}
		profile := r.Profile
		if l.Threshold > 0 {
			profile.Threshold = l.Threshold
		}
		if l.Measure != "" {
			profile.Measure = l.Measure
		}
		keep := max(1, r.Profile.Keep)
		if l.Keep > 0 {
			keep = l.Keep
		}
		kept := []int{}
		groups := map[int][2][]int{}
		for _, members := range definedGroups(profile, r.Transitive, sketches) {
			n := min(keep, len(members))
			kept = append(kept, members[:n]...)
			if n < len(members) {
				groups[members[0]] = [2][]int{members[1:n], members[n:]}
			}
		}
		slices.Sort(kept)
		got := l.Dedupe(r)
		found := map[int][2][]int{}
		for _, g := range got.Groups {
			at := []int{}
			for _, f := range g.Folded {
				at, folded = append(at, f.At), folded+1
				want, _ := profile.Estimate(sketches[f.At], sketches[g.Leader])
				expect.Same(t, fmt.Sprint(max(0, want.Value), want.Error), fmt.Sprint(f.Agreement, f.Error), "seed %d, round %d: %d in %d", seed, round, f.At, g.Leader)
				expect.Same(t, sketches[f.At].SameText(sketches[g.Leader]), f.SameText, "the same text")
			}
			found[g.Leader] = [2][]int{g.Beside, at}
		}
		expect.Must(t, kept, got.Kept, "seed %d, round %d: kept", seed, round)
		expect.Must(t, fmt.Sprint(groups), fmt.Sprint(found), "seed %d, round %d: groups", seed, round)
		expect.Same(t, profile.Threshold, got.Threshold, "the threshold")
	}
	if folded < 20 {
		t.Errorf("only %d were folded", folded)
	}
}

// TestDedupeStored: stored documents come from the first index that has them, and obey decisions. What is not there is said, and not kept.
func TestDedupeStored(t *testing.T) {
	strict, lax := likeRule(t, "strict", 1), likeRule(t, "lax", 0.5)
	all := texts(t)
	c := &cellar{documents: map[string]map[string][]byte{
		"strict": {"1-0": all["1-0"], "1-1": all["1-1"], "dumb": []byte(`{"title":"?!"}`)},
		"lax":    {"1-0": all["2-0"], "2-0": all["2-0"], "2-1": all["2-1"], "9-0": all["9-0"]},
	}}
	indices := []adapters.Index{{Name: "strict"}, {Name: "lax"}}
	dedupe := func(pairs ...decided.Pair) (similar.Deduped, error) {
		l := &similar.List{}
		if pairs != nil {
			l.Decided = decided.NewSet(pairs)
		}
		ids := []string{"1-0", "none", "1-1", "2-0", "1-0", "2-1", "dumb", "9-0", "none"}
		err := l.AddStored(t.Context(), rule.Rules{strict, lax}, c, indices, ids)
		return l.Dedupe(strict), err
	}
	got := expect.Value(dedupe())(t)
	expect.Same(t, []int{0, 2, 3, 6, 7}, got.Kept, "kept")
	expect.Same(t, []string{"none"}, got.Missing, "missing")
	expect.Same(t, 2, len(got.Groups), "groups: %+v", got.Groups)
	expect.Same(t, `"1-0"`, string(got.Groups[0].Folded[0].ID), "the same id folds into itself")

	text := func(id string) uint64 {
		computed, _ := lax.SketchOf(all[id])
		return computed.Fingerprint
	}
	pair := func(a, b string, v decided.Verdict) decided.Pair {
		return decided.Pair{Index: "lax", A: a, B: b, Verdict: v, TextA: text(a), TextB: text(b)}
	}
	got = expect.Value(dedupe(pair("2-0", "2-1", decided.Different), pair("2-0", "9-0", decided.Same)))(t)
	expect.Same(t, []int{0, 2, 3, 5, 6}, got.Kept, "kept, as decided")
	if f := got.Groups[1].Folded[0]; f.At != 7 || !f.Decided {
		t.Errorf("%+v", f)
	}

	c.fails = errors.New("broken")
	if _, err := dedupe(); !errors.Is(err, c.fails) {
		t.Errorf("what may be missing for an error: %v", err)
	}
	l := &similar.List{}
	expect.OK(t, l.AddStored(t.Context(), rule.Rules{strict, lax}, c, indices, []string{"1-0", "2-0"}))
}

// narrow is a store without room for more documents at once than that.
type narrow struct {
	*cellar
	most int
}

// Scan implements adapters.Store.
func (n narrow) Scan(ctx context.Context, index string, r *rule.Rule, s adapters.Selection, yield func(adapters.Page) error) error {
	if len(s.IDs) > n.most {
		n.scans = append(n.scans, s)
		return similar.ErrRoom
	}
	return n.cellar.Scan(ctx, index, r, s, yield)
}

// TestReadsAtOnce: many ids are read at once, and fewer from then on where there is no room for so many.
func TestReadsAtOnce(t *testing.T) {
	r := likeRule(t, "news", 0.7)
	documents, ids := map[string][]byte{}, []string{}
	for i := range 600 {
		id := fmt.Sprint(i)
		documents[id], ids = fmt.Appendf(nil, `{"title":"words of number %d"}`, i), append(ids, id)
	}
	for most, want := range map[int][]int{1000: {250, 250, 100}, 130: {250, 125, 125, 125, 125, 100}, 70: {250, 125, 62, 62, 62, 62, 62, 62, 62, 62, 62, 42}} {
		c := &cellar{documents: map[string]map[string][]byte{"news": documents}}
		l := &similar.List{}
		expect.OK(t, l.AddStored(t.Context(), rule.Rules{r}, narrow{c, most}, []adapters.Index{{Name: "news"}}, ids))
		got := []int{}
		for _, s := range c.scans {
			got = append(got, len(s.IDs))
		}
		expect.Same(t, want, got, "room for %d", most)
		expect.Same(t, 0, len(l.Dedupe(r).Missing), "missing")
	}
}

// TestSimilarReadsFew: no more whole documents are read at once than are asked for and fit, and of partners our fields alone.
func TestSimilarReadsFew(t *testing.T) {
	r := likeRule(t, "news", 0.3)
	all := stored(t, r, texts(t))
	c := &cellar{documents: map[string]map[string][]byte{"news": all}}
	held := int64(0)
	likeness := similar.Likeness{Size: 4, Source: true, Except: similar.Alike{Index: "news", ID: "1-0"}, Partners: []string{"9-0", "9-1"}, Hold: func(n int64) error {
		held += n
		return nil
	}}
	find := func(store adapters.Store) similar.Similar {
		return expect.Value(similar.Find(t.Context(), rule.Rules{r}, store, []adapters.Index{{Name: "news"}}, all["1-0"], likeness))(t)
	}
	want := find(c)
	expect.Same(t, 4, len(want.Alike), "found")
	kept := 0
	for _, a := range want.Alike {
		kept += len(a.Source)
	}
	expect.Same(t, int64(kept), held, "held")
	for _, s := range c.scans {
		if !s.Brief && len(s.IDs) != 4 {
			t.Errorf("read by %+v", s)
		}
	}
	expect.Same(t, want, find(narrow{c, 2}), "read in halves")
	likeness.Hold = func(int64) error { return context.Canceled }
	if _, err := similar.Find(t.Context(), rule.Rules{r}, c, []adapters.Index{{Name: "news"}}, all["1-0"], likeness); !errors.Is(err, context.Canceled) {
		t.Errorf("no room: %v", err)
	}
}

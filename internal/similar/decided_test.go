package similar_test

import (
	"context"
	"slices"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/similar"
)

// TestSimilarObeysDecisions: what is the same comes first, whatever its bands; what is different does not come; and neither counts for another text or index.
func TestSimilarObeysDecisions(t *testing.T) {
	r := likeRule(t, "news", 0.6)
	documents := stored(t, r, texts(t))
	c := &cellar{documents: map[string]map[string][]byte{"news": documents}}
	text := func(id string) uint64 {
		computed, _ := r.SketchOf(documents[id])
		return computed.Fingerprint
	}
	find := func(id string, texts uint64, scan bool) []string {
		pairs := []decided.Pair{
			{Index: "news", A: "1-0", B: "1-1", Verdict: decided.Different, TextA: text("1-0") + texts, TextB: text("1-1")},
			{Index: "news", A: "9-0", B: "1-0", Verdict: decided.Same, TextA: text("9-0"), TextB: text("1-0") + texts},
			{Index: "books", A: "1-0", B: "8-0", Verdict: decided.Same, TextA: text("1-0"), TextB: text("8-0")},
		}
		found := expect.Value(similar.Find(t.Context(), rule.Rules{r}, c, []adapters.Index{{Name: "news"}}, documents[id], similar.Likeness{
			Size: 1000, Scan: scan, Except: similar.Alike{Index: "news", ID: id}, Decided: decided.NewSet(pairs), Partners: []string{"1-1", "9-0"},
		}))(t)
		ids := []string{}
		for i, a := range found.Alike {
			ids = append(ids, a.ID)
			expect.Same(t, i == 0 && texts == 0 && id == "1-0", a.Decided, "%s is said to be decided", a.ID)
		}
		expect.Must(t, len(ids), found.Total, "the total")
		return ids
	}
	for _, scan := range []bool{false, true} {
		plain := find("1-0", 1, scan) // other texts
		if !slices.Contains(plain, "1-1") || slices.Contains(plain, "9-0") {
			t.Fatalf("without decisions: %v", plain)
		}
		want := append([]string{"9-0"}, slices.DeleteFunc(plain, func(id string) bool { return id == "1-1" })...)
		expect.Same(t, want, find("1-0", 0, scan), "scan %v", scan)
	}
}

// TestSimilarInDataStream: a decided pair may lie in two indices of one data stream.
func TestSimilarInDataStream(t *testing.T) {
	r := likeRule(t, "news", 0.6)
	all := stored(t, r, texts(t))
	c := &cellar{documents: map[string]map[string][]byte{"ds-1": {"1-0": all["1-0"]}, "ds-2": {"9-0": all["9-0"], "1-1": all["1-1"]}}}
	pair := func(id string, v decided.Verdict) decided.Pair {
		a, _ := r.SketchOf(all["1-0"])
		b, _ := r.SketchOf(all[id])
		return decided.Pair{Index: "news", A: "1-0", B: id, Verdict: v, TextA: a.Fingerprint, TextB: b.Fingerprint}
	}
	found := expect.Value(similar.Find(t.Context(), rule.Rules{r}, c, []adapters.Index{{Name: "ds-1", As: "news"}, {Name: "ds-2", As: "news"}}, all["1-0"], similar.Likeness{
		Size: 10, Except: similar.Alike{Index: "ds-1", ID: "1-0"}, Partners: []string{"9-0", "1-1"},
		Decided: decided.NewSet([]decided.Pair{pair("9-0", decided.Same), pair("1-1", decided.Different)}),
	}))(t)
	if len(found.Alike) != 1 || found.Alike[0].ID != "9-0" || !found.Alike[0].Decided {
		t.Errorf("found %+v", found.Alike)
	}
}

// routed is a store with a document that has a routing of its own: no short read of ids finds it.
type routed struct {
	*cellar
	id string
}

// Scan implements adapters.Store.
func (c routed) Scan(ctx context.Context, index string, r *rule.Rule, s adapters.Selection, yield func(adapters.Page) error) error {
	if s.Brief && s.IDs != nil {
		s.IDs = slices.DeleteFunc(slices.Clone(s.IDs), func(id string) bool { return id == c.id })
	}
	return c.cellar.Scan(ctx, index, r, s, yield)
}

// TestSimilarRoutedPartner: a partner with a routing of its own is compared if it shares a band.
func TestSimilarRoutedPartner(t *testing.T) {
	r := likeRule(t, "news", 0.6)
	all := stored(t, r, texts(t))
	c := &cellar{documents: map[string]map[string][]byte{"news": all}}
	l := similar.Likeness{Size: 10, Except: similar.Alike{Index: "news", ID: "1-0"}, Partners: []string{"1-1", "1-2"}}
	find := func(store adapters.Store) similar.Similar {
		return expect.Value(similar.Find(t.Context(), rule.Rules{r}, store, []adapters.Index{{Name: "news"}}, all["1-0"], l))(t)
	}
	expect.Same(t, find(c).Alike, find(routed{c, "1-1"}).Alike, "what is found")
}

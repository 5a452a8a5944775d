package similar_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/similar"
	"github.com/neardup/sidecar/sketch"
)

// cellar is a store in memory that can be read alone.
type cellar struct {
	adapters.Store
	documents map[string]map[string][]byte // by index and id
	ours      map[string]rule.Ours         // by their JSON
	scans     []adapters.Selection
	fails     error
}

// Scan implements adapters.Store.
func (c *cellar) Scan(
	_ context.Context, index string, _ *rule.Rule, s adapters.Selection, yield func(adapters.Page) error,
) error {
	c.scans = append(c.scans, s)
	read := 0
	if c.ours == nil {
		c.ours = map[string]rule.Ours{}
	}
	for id, source := range c.documents[index] {
		o, known := c.ours[string(source)]
		if !known {
			o = rule.OursOf(source)
			c.ours[string(source)] = o
		}
		fits := (s.IDs == nil || slices.Contains(s.IDs, id)) && (!s.Marked || o.Sketch != "") &&
			(s.Bands == nil || slices.ContainsFunc(o.Bands, func(key int64) bool { return slices.Contains(s.Bands, key) }))
		if !fits || s.Limit > 0 && read == s.Limit {
			continue
		}
		read++
		if s.Brief && s.Fields == nil {
			source, _ = rule.WithOurs([]byte("{}"), o)
		}
		if err := yield(adapters.Page{Documents: []adapters.Stored{{ID: id, Source: source}}}); err != nil {
			return err
		}
	}
	return c.fails
}

// families is how many texts there are: fewer in a short run.
func families() int { return max(effort.Rounds(100), 40) }

// texts returns real texts, each with versions of it that are edited more and more.
func texts(t *testing.T) map[string][]byte {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	all := map[string][]byte{}
	for i, d := range corpus.Documents()[:families()] {
		words := strings.Fields(d.Body)
		for version := range 6 {
			document := expect.Value(json.Marshal(map[string]any{"title": d.Title, "body": strings.Join(words, " "), "n": i}))(t)
			all[fmt.Sprintf("%d-%d", i, version)] = document
			words = slices.Clone(words)
			for range 1 + len(words)*(1+i%3)/90 {
				words[r.IntN(len(words))] = fmt.Sprint("word", r.IntN(1000))
			}
		}
	}
	return all
}

// likeRule returns a rule with bands for its threshold.
func likeRule(t testing.TB, match string, threshold float64) *rule.Rule {
	r := *adaptertest.Rules(t)[0]
	r.Match, r.Profile.Threshold, r.Profile.MinShingles = match, threshold, 8
	r.Bands, r.Rows = rule.ChooseBands(r.Sketcher.Scheme().Positions, threshold)
	return &r
}

// stored returns documents as they are stored under the rule.
func stored(t *testing.T, r *rule.Rule, documents map[string][]byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for id, d := range documents {
		want, _ := r.OursFor(d, "0")
		source := expect.Value(rule.WithOurs(d, want))(t)
		all[id] = source
	}
	return all
}

// TestSimilar looks up the near-duplicates of many documents, and holds what is found to a comparison with every other.
func TestSimilar(t *testing.T) {
	documents := texts(t)
	for _, threshold := range []float64{0.5, 0.64, 0.8, 0.95} {
		r := likeRule(t, "news", threshold)
		rules, indices := rule.Rules{r}, []adapters.Index{{Name: "news"}, {Name: "none"}}
		c := &cellar{documents: map[string]map[string][]byte{"news": stored(t, r, documents)}}
		sketches := map[string]*sketch.Sketch{}
		for id, d := range documents {
			computed, _ := r.SketchOf(d)
			sketches[id] = &computed.Sketch
		}
		there, found := 0, 0
		for id, d := range documents {
			if !strings.HasSuffix(id, "-2") || testing.Short() && !strings.ContainsAny(id[:1], "12") {
				continue
			}
			want := map[string]float64{}
			for other, s := range sketches {
				if near, agreement := r.Profile.NearDuplicates(sketches[id], s); near && other != id {
					want[other] = agreement
				}
			}
			l := similar.Likeness{Size: 1000, Except: similar.Alike{Index: "news", ID: id}}
			got := expect.Value(similar.Find(t.Context(), rules, c, indices, d, l))(t)
			l.Scan = true
			all, err := similar.Find(t.Context(), rules, c, indices, d, l)
			if err != nil || all.Total != len(want) || len(all.Alike) != len(want) {
				t.Fatalf("%s: a scan finds %d of %d: %v", id, len(all.Alike), len(want), err)
			}
			for _, list := range [][]similar.Alike{got.Alike, all.Alike} {
				if !slices.IsSortedFunc(list, compareAlike) {
					t.Errorf("%s: not in order: %+v", id, list)
				}
				for _, a := range list {
					if agreement, is := want[a.ID]; !is || a.Agreement != agreement || a.Index != "news" || a.Error < 0 || a.Source != nil {
						t.Errorf("%s: %+v is none, or of agreement %v", id, a, agreement)
					}
				}
			}
			there, found = there+len(want), found+len(got.Alike)
		}
		recall := float64(found) / float64(there)
		t.Logf("threshold %v: %d bands of %d, %d of %d pairs found (%.4f)", threshold, r.Bands, r.Rows, found, there, recall)
		if recall < 0.99 || there < 3 {
			t.Errorf("threshold %v: %d of %d found", threshold, found, there)
		}
	}
}

// compareAlike orders as the answer is to be ordered.
func compareAlike(a, b similar.Alike) int {
	switch {
	case a.SameText && !b.SameText, a.SameText == b.SameText && a.Agreement > b.Agreement:
		return -1
	case b.SameText && !a.SameText, a.Agreement < b.Agreement:
		return 1
	}
	return strings.Compare(a.ID, b.ID)
}

// TestSimilarTexts: with the documents come their exact resemblances, and they are the ones that are found without them.
func TestSimilarTexts(t *testing.T) {
	documents := texts(t)
	r := likeRule(t, "news", 0.7)
	c := &cellar{documents: map[string]map[string][]byte{"news": stored(t, r, documents)}}
	shingles := map[string][]uint64{}
	for id, d := range documents {
		shingles[id] = r.Sketcher.Shingles(r.Texts(d)...)
	}
	below := 0
	for id, d := range documents {
		if !strings.HasSuffix(id, "-1") {
			continue
		}
		text := shingles[id]
		find := func(source bool) similar.Similar {
			l := similar.Likeness{Size: 1000, Source: source, Scan: true}
			return expect.Value(similar.Find(t.Context(), rule.Rules{r}, c, []adapters.Index{{Name: "news"}}, d, l))(t)
		}
		bare, got := find(false), find(true)
		if got.Total != bare.Total || len(got.Alike) != len(bare.Alike) {
			t.Fatalf("%s: %d with the documents, %d without", id, len(got.Alike), len(bare.Alike))
		}
		for i, a := range got.Alike {
			exact := sketch.Resemblance(text, shingles[a.ID])
			if string(a.Source) != string(documents[a.ID]) || a.Resemblance == nil || *a.Resemblance != exact {
				t.Errorf("%s: %s of agreement %v, exactly %v", id, a.ID, a.Agreement, exact)
			}
			if a.Agreement < 0.7 || a.ID != bare.Alike[i].ID || a.Agreement != bare.Alike[i].Agreement {
				t.Errorf("%s: %s of agreement %v, without the documents %s of %v", id, a.ID, a.Agreement, bare.Alike[i].ID, bare.Alike[i].Agreement)
			}
			if exact < 0.7 {
				below++
			}
		}
	}
	if below < 3 {
		t.Errorf("%d have an exact resemblance below the threshold", below)
	}
}

// TestSimilarIndices: each index is searched under its own rule, the most alike of all come first, and no more than asked for.
func TestSimilarIndices(t *testing.T) {
	documents := texts(t)
	strict, lax, other := likeRule(t, "strict", 0.95), likeRule(t, "lax", 0.3), likeRule(t, "other", 0.3)
	other.Fields = []string{"body"}
	rules := rule.Rules{strict, lax, other}
	c := &cellar{documents: map[string]map[string][]byte{}}
	var indices []adapters.Index
	for _, rule := range rules {
		c.documents[rule.Match] = stored(t, rule, documents)
		indices = append(indices, adapters.Index{Name: rule.Match})
	}
	indices = append(indices, adapters.Index{Name: "lax-2", As: "lax", Absent: true}, adapters.Index{Name: "foreign"})
	got, err := similar.Find(t.Context(), rules, c, indices, documents["7-0"], similar.Likeness{Size: 7})
	if err != nil || len(got.Alike) != 7 || got.Total < 10 || len(got.Searched) != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	for i, a := range got.Alike[:3] {
		if a.ID != "7-0" || !a.SameText || a.Agreement != 1 || a.Index != []string{"lax", "other", "strict"}[i] {
			t.Errorf("%+v", a)
		}
	}
	for i, s := range got.Searched {
		if s.Threshold != rules[i].Profile.Threshold || s.Recall == nil || *s.Recall < 0.99 || s.Compared == 0 {
			t.Errorf("%+v", s)
		}
	}
	for _, scan := range c.scans {
		if !scan.Brief || scan.Limit == 0 || scan.Bands == nil {
			t.Errorf("read by %+v", scan)
		}
	}
	all, err := similar.Find(t.Context(), rules, c, indices, documents["7-0"], similar.Likeness{Size: 1000, Threshold: 0.99})
	if err != nil || slices.ContainsFunc(all.Alike, func(a similar.Alike) bool { return a.Agreement < 0.99 && !a.SameText }) {
		t.Errorf("%+v %v", all, err)
	}
}

// TestSimilarOdd: what has no text finds nothing; what can't be looked up says what to do; an engine's error is the error.
func TestSimilarOdd(t *testing.T) {
	r := likeRule(t, "news", 0.7)
	c := &cellar{documents: map[string]map[string][]byte{"news": stored(t, r, texts(t))}}
	rules, indices := rule.Rules{r}, []adapters.Index{{Name: "news"}}
	ask := func(document string, l similar.Likeness) (similar.Similar, error) {
		l.Size = 5
		return similar.Find(t.Context(), rules, c, indices, []byte(document), l)
	}
	body := r.Texts(c.documents["news"]["3-0"])
	bare, _ := json.Marshal(map[string]string{"text": strings.Join(body, "\n")})
	if got, err := ask(string(bare), similar.Likeness{}); err != nil || len(got.Alike) == 0 || got.Alike[0].ID != "3-0" {
		t.Errorf("a bare text: %+v %v", got, err)
	}
	for _, document := range []string{`{}`, `{"title":""}`, `{"title":"?!"}`, `{"text":5}`, `[]`, ``, `{"title":5}`, `{"n":1}`, `x`} {
		if got, err := ask(document, similar.Likeness{}); err != nil || got.Total != 0 || got.Alike == nil {
			t.Errorf("%s: %+v %v", document, got, err)
		}
	}
	if _, err := ask(string(bare), similar.Likeness{Source: true, Room: 100}); !errors.Is(err, similar.ErrRoom) {
		t.Errorf("no room: %v", err)
	}
	c.fails = errors.New("broken")
	if _, err := ask(string(bare), similar.Likeness{}); !errors.Is(err, c.fails) {
		t.Errorf("an engine's error: %v", err)
	}
	c.fails, r.Bands = nil, 0
	if _, err := ask(string(bare), similar.Likeness{}); !errors.Is(err, similar.ErrNoBands) || !strings.Contains(err.Error(), "--scan") {
		t.Errorf("without bands: %v", err)
	}
	if got, err := ask(string(bare), similar.Likeness{Scan: true}); err != nil || len(got.Alike) == 0 {
		t.Errorf("without bands, scanned: %+v %v", got, err)
	}
}

// TestBandsRecall: of pairs of real texts whose exact resemblance is at or above the threshold, 99 in 100 share a band.
func TestBandsRecall(t *testing.T) {
	documents := texts(t)
	for _, threshold := range []float64{0.5, 0.64, 0.8, 0.9} {
		rule := likeRule(t, "news", threshold)
		there, shared, others := 0, 0, 0
		for i := range families() {
			var sets [][]uint64
			var keys [][]int64
			for version := range 6 {
				list := rule.Texts(documents[fmt.Sprintf("%d-%d", i, version)])
				s, _ := rule.Sketch(list)
				sets, keys = append(sets, rule.Sketcher.Shingles(list...)), append(keys, rule.BandKeys(&s))
			}
			for a := range sets {
				for b := range a {
					share := slices.ContainsFunc(keys[a], func(key int64) bool { return slices.Contains(keys[b], key) })
					switch near := sketch.Resemblance(sets[a], sets[b]) >= threshold; {
					case near && share:
						there, shared = there+1, shared+1
					case near:
						there++
					case share:
						others++
					}
				}
			}
		}
		t.Logf("threshold %v: %d of %d pairs share a band, and %d that are less alike", threshold, shared, there, others)
		if float64(shared) < 0.99*float64(there) || there < families()*9/10 {
			t.Errorf("threshold %v: %d of %d pairs share a band", threshold, shared, there)
		}
	}
}

// TestCompare holds a comparison to the shingles of both.
func TestCompare(t *testing.T) {
	documents := texts(t)
	rule := likeRule(t, "news", 0.7)
	for i := range 39 {
		a, b := documents[fmt.Sprintf("%d-%d", i, i%6)], documents[fmt.Sprintf("%d-%d", i+i%2, 5)]
		setA, setB := rule.Sketcher.Shingles(rule.Texts(a)...), rule.Sketcher.Shingles(rule.Texts(b)...)
		shared := 0
		for _, x := range setA {
			if _, is := slices.BinarySearch(setB, x); is {
				shared++
			}
		}
		c := similar.Compare(rule, a, b, 0)
		sa, _ := rule.SketchOf(a)
		sb, _ := rule.SketchOf(b)
		near, agreement := rule.Profile.NearDuplicates(&sa.Sketch, &sb.Sketch)
		e := c.Exact
		if c.Folds != near || c.Agreement != agreement || c.Threshold != 0.7 || e.Shared != shared || e.ShinglesA != len(setA) ||
			e.ShinglesB != len(setB) || e.Resemblance != sketch.Resemblance(setA, setB) || e.BInA != sketch.Containment(setB, setA) {
			t.Errorf("%d: %+v %+v", i, c, e)
		}
	}
	if c := similar.Compare(rule, []byte(`{"title":"!"}`), documents["1-0"], 0.2); c.Folds || c.Agreement != 0 || c.Exact.ShinglesB == 0 || c.Threshold != 0.2 {
		t.Errorf("%+v", c)
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

const playgroundAssets = "../../playground/assets"

// modules has the playground's scripts answer cases of one kind.
func modules[Case, Answer any](t *testing.T, kind string, cases []Case) []Answer {
	t.Helper()
	text := must(json.Marshal(map[string][]Case{kind: cases}))(t)
	file := filepath.Join(t.TempDir(), "cases.json")
	check(t, os.WriteFile(file, text, 0o600))
	var answers map[string][]Answer
	out := clients.Run(t, "playground_modules.js", "--assets", playgroundAssets, "--cases", file)
	check(t, json.Unmarshal(out, &answers))
	if len(answers[kind]) != len(cases) {
		t.Fatalf("%d answers to %d cases", len(answers[kind]), len(cases))
	}
	return answers[kind]
}

type foldHit struct {
	Order  int  `json:"order"`
	Pinned bool `json:"pinned,omitempty"`
}

type foldOption struct {
	Threshold  float64 `json:"threshold"`
	Window     int     `json:"window"`
	Keep       int     `json:"keep"`
	Transitive bool    `json:"transitive"`
}

type foldCase struct {
	Hits    []foldHit    `json:"hits"`
	Pairs   [][]float64  `json:"pairs"`
	Options []foldOption `json:"options"`

	hits []rerank.Hit
}

type foldAnswer struct {
	Groups []struct {
		Leader, Representative int
		Kept, Folded           []int
	}
	Group   []int
	Shown   []int
	Nearest []float64
}

// TestPlaygroundFolds holds what the page makes of agreements against rerank.Collapse over the sketches.
func TestPlaygroundFolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 10))
	var cases []foldCase
	for range 100 {
		cases = append(cases, randomFolds(random))
	}
	folded := 0
	for n, answers := range modules[foldCase, []foldAnswer](t, "fold", cases) {
		for i, got := range answers {
			c, o := cases[n], cases[n].Options[i]
			profile := *c.hits[0].Profile
			profile.Threshold, profile.Keep = o.Threshold, o.Keep
			hits := slices.Clone(c.hits)
			for i := range hits {
				if hits[i].Profile != nil {
					hits[i].Profile = &profile
				}
			}
			collapse := rerank.Collapse
			if o.Transitive {
				collapse = rerank.CollapseTransitive
			}
			want := collapse(hits, o.Window)
			for rank := min(o.Window, len(hits)); rank < len(hits); rank++ {
				want.Shown = append(want.Shown, rank)
			}
			if diff := cmp.Diff(want.Shown, got.Shown); diff != "" {
				t.Fatalf("case %d, %+v: shown: %s", n, o, diff)
			}
			if len(got.Groups) != len(want.Groups) {
				t.Fatalf("case %d, %+v: %d groups, want %d", n, o, len(got.Groups), len(want.Groups))
			}
			for g, w := range want.Groups {
				is := rerank.Group{Leader: got.Groups[g].Leader, Representative: got.Groups[g].Representative}
				is.Kept, is.Folded = append(is.Kept, got.Groups[g].Kept...), append(is.Folded, got.Groups[g].Folded...)
				if diff := cmp.Diff(w, is); diff != "" {
					t.Fatalf("case %d, %+v, group %d: %s", n, o, g, diff)
				}
				for _, rank := range append(w.Folded, w.Leader) {
					if got.Group[rank] != g {
						t.Fatalf("case %d, %+v: rank %d is in group %d, want %d", n, o, rank, got.Group[rank], g)
					}
				}
				folded += len(w.Folded)
			}
			c.checkNearest(t, o.Window, got.Nearest)
		}
	}
	if folded < 5000 {
		t.Errorf("only %d hits fold", folded)
	}
}

func (c *foldCase) checkNearest(t *testing.T, window int, got []float64) {
	t.Helper()
	want := make([]float64, min(window, len(c.hits)))
	for _, pair := range c.Pairs {
		if j := int(pair[1]); j < len(want) {
			want[j] = max(want[j], pair[2])
		}
	}
	if !slices.Equal(want, got) {
		t.Fatalf("nearest: %v, want %v", got, want)
	}
}

// randomFolds makes hits whose sketches agree to all degrees, and their pairs as a reply has them.
func randomFolds(random *rand.Rand) foldCase {
	var c foldCase
	p := &rerank.Profile{MinShingles: 8, Chooses: random.IntN(2) == 0}
	n, bases := 1+random.IntN(90), make([][]byte, 1+random.IntN(12))
	for i := range bases {
		bases[i] = make([]byte, 128)
		for k := range bases[i] {
			bases[i][k] = byte(random.Uint32())
		}
	}
	for i := range n {
		k := sketch.Sketch{Scheme: 1, Bits: 8, Shingles: uint32(4 + random.IntN(100)), Fingerprint: uint64(i + 1)}
		if random.IntN(6) == 0 {
			k.Fingerprint = uint64(1000 + random.IntN(5))
		}
		k.Payload = slices.Clone(bases[random.IntN(len(bases))])
		for range random.IntN(110) {
			k.Payload[random.IntN(128)] = byte(random.Uint32())
		}
		hit := rerank.Hit{ID: fmt.Sprint(i), Sketch: &k, Profile: p, Pinned: random.IntN(15) == 0}
		if i > 0 && random.IntN(12) == 0 { // the first has the profile
			hit.Sketch, hit.Profile = nil, nil
		}
		if random.IntN(5) > 0 {
			hit.Traits.Merit = rerank.Merit{Known: true, Number: float64(random.IntN(6))}
		}
		c.hits = append(c.hits, hit)
		c.Hits = append(c.Hits, foldHit{Order: orderOf(hit, i), Pinned: hit.Pinned})
	}
	c.Pairs = pairsBetween(c.hits)
	for range 12 {
		o := foldOption{Threshold: 0.05 + 0.95*random.Float64(), Window: random.IntN(n + 20), Keep: 1 + random.IntN(3), Transitive: random.IntN(2) == 0}
		if len(c.Pairs) > 0 && random.IntN(2) == 0 {
			o.Threshold = c.Pairs[random.IntN(len(c.Pairs))][2] // right on the edge, or beside it
			if random.IntN(2) == 0 {
				o.Threshold = min(1, math.Nextafter(o.Threshold, 2))
			}
		}
		c.Options = append(c.Options, o)
	}
	return c
}

// orderOf is by what the page chooses a group's representative.
func orderOf(hit rerank.Hit, rank int) int {
	merit := hit.Traits.Merit
	switch {
	case hit.Profile == nil || !hit.Profile.Chooses:
		return rank
	case !merit.Known:
		return 1000
	}
	return 100 - int(merit.Number)
}

// pairsBetween are the pairs that can fold at a threshold of at least 0.05, each with the greatest at which they do.
func pairsBetween(hits []rerank.Hit) [][]float64 {
	pairs := [][]float64{}
	for j := range hits {
		for i := range j {
			a, b := hits[i], hits[j]
			if a.Sketch == nil || b.Sketch == nil || b.Pinned {
				continue
			}
			agreement, _ := b.Sketch.Agreement(a.Sketch)
			switch {
			case b.Sketch.SameText(a.Sketch):
				pairs = append(pairs, []float64{float64(i), float64(j), 1, 1})
			case agreement >= 0.05 && min(a.Sketch.Shingles, b.Sketch.Shingles) >= 8:
				pairs = append(pairs, []float64{float64(i), float64(j), agreement})
			}
		}
	}
	return pairs
}

package adaptertest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// maxWindow caps the window in the contract's plan.
const maxWindow = 25

// corpus is the ranked list behind each target, in one engine.
type corpus struct {
	rules rule.Rules
	list  map[string][]Document
}

func (c *corpus) of(target []string) []Document { return c.list[strings.Join(target, ",")] }

// corpora goes through corpora at random until the test fails, with what chooses them. The rules of every other one choose what is shown.
func corpora(t *testing.T, s Subject, rounds int) iter.Seq2[*corpus, *rand.Rand] {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	return func(yield func(*corpus, *rand.Rand) bool) {
		for round := 0; round < effort.Rounds(rounds) && !t.Failed(); round++ {
			c := newCorpus(t, s, random, 60)
			if round%2 == 1 {
				c.choose(random)
			}
			if !yield(c, random) {
				return
			}
		}
	}
}

// newCorpus makes a list of less than most documents for each target: versions of a few texts, some without a sketch, some with
// one of another scheme or of a rule that is gone.
func newCorpus(t testing.TB, s Subject, random *rand.Rand, most int) *corpus {
	t.Helper()
	c := &corpus{rules: Rules(t), list: map[string][]Document{}}
	scheme := sketch.DefaultScheme()
	scheme.Seed += "x"
	foreign, err := sketch.New(scheme)
	if err != nil {
		t.Fatal(err)
	}
	lacking := random.Float64() * random.Float64()
	for _, target := range s.Targets {
		texts := make([][]string, 1+random.IntN(20))
		for i := range texts {
			texts[i] = words(random, random.IntN(60))
		}
		list := make([]Document, random.IntN(most))
		for i := range list {
			d := Document{Index: target[random.IntN(len(target))], ID: fmt.Sprint("id", i)}
			text := append([]string{}, texts[random.IntN(len(texts))]...)
			for range random.IntN(4) * min(len(text), 1) {
				text[random.IntN(len(text))] = words(random, 1)[0]
			}
			title, body := strings.Join(text[:len(text)/2], " "), strings.Join(text[len(text)/2:], " ")
			d.Source = fmt.Appendf(nil, `{"title":%q,"body":%q,"n":%d}`, title, body, i)
			if random.Float64() >= lacking {
				by := *c.rules[0] // where no rule matches, of one that did once
				if rule := c.rules.For(d.Index); rule != nil {
					by = *rule
				}
				if random.IntN(10) == 0 {
					by.Sketcher = foreign
				}
				if sketched, _ := by.SketchOf(d.Source); sketched != nil {
					if d.Source, err = rule.WithOurs(d.Source, rule.Ours{Sketch: sketched.Text}); err != nil {
						t.Fatal(err)
					}
				}
			}
			list[i] = d
		}
		c.list[strings.Join(target, ",")] = list
	}
	return c
}

func words(random *rand.Rand, n int) []string {
	text := make([]string, n)
	for i := range text {
		text[i] = fmt.Sprintf("w%d", random.IntN(5000))
	}
	return text
}

// window returns the largest window of the rules behind a target, 0 if there are none.
func (c *corpus) window(target []string) (window int) {
	for _, index := range target {
		if rule := c.rules.For(index); rule != nil {
			window = max(window, rule.Window)
		}
	}
	return window
}

// plan is what a dialect is told; what the proxy would have learned is made up.
func (c *corpus) plan(random *rand.Rand) adapters.Plan {
	rate, lacking := random.Float64(), random.IntN(2) == 0
	return adapters.Plan{Rules: c.rules, MaxWindow: maxWindow, Scope: func(target string) adapters.Scope {
		scope := c.scope(strings.Split(target, ","))
		scope.Rate, scope.Lacking = rate, lacking
		return scope
	}}
}

// scope returns what the rules behind a target ask for.
func (c *corpus) scope(target []string) (scope adapters.Scope) {
	for _, rule := range c.rules {
		if slices.ContainsFunc(target, func(index string) bool { return c.rules.For(index) == rule }) {
			scope.Add(rule)
		}
	}
	return scope
}

// choose has some of the rules show other members than the leaders, and more of them.
func (c *corpus) choose(random *rand.Rand) {
	for i, r := range c.rules {
		chosen := *r
		chosen.Profile.Keep = random.IntN(4)
		chosen.Transitive = random.IntN(4) == 0
		if random.IntN(3) == 0 {
			chosen.Choice.By = rule.ByLongest
		}
		c.rules[i] = &chosen
	}
}

// hits returns what is compared of the documents. Their labels are the clusters that they store under their rules.
func (c *corpus) hits(target []string) []rerank.Hit {
	documents := c.of(target)
	hits := make([]rerank.Hit, len(documents))
	for i, d := range documents {
		hits[i].ID = d.Index + d.ID
		r := c.rules.For(d.Index)
		if r == nil {
			continue
		}
		hits[i].Label = r.ClusterOf(d.Source)
		computed, stored := r.SketchOf(d.Source)
		if stored == nil && r.Compute {
			stored = computed
		}
		if stored != nil {
			profile := r.Profile
			profile.Chooses = r.Choice.By == rule.ByLongest
			hits[i].Sketch, hits[i].Profile = &stored.Sketch, &profile
			hits[i].Traits.Merit = rerank.Merit{Known: true, Number: float64(stored.Shingles)}
		}
	}
	return hits
}

// collapse returns the collapsed list over a window, by its definition.
func (c *corpus) collapse(target []string, window int) rerank.Collapsed {
	if c.scope(target).Transitive {
		return rerank.CollapseTransitive(c.hits(target), window)
	}
	return rerank.Collapse(c.hits(target), window)
}

// collapsed returns the ranks of the collapsed list.
func (c *corpus) collapsed(target []string, window int) []int {
	ranks := c.collapse(target, window).Shown
	for rank := window; rank < len(c.of(target)); rank++ {
		ranks = append(ranks, rank)
	}
	return ranks
}

package quality

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// planted is a document made of a body under a template. Those with the same body are near-duplicates.
type planted struct {
	text, bare string
	body       int
}

// planter makes documents from real texts: bodies, and legal prose for their templates.
type planter struct {
	*rand.Rand
	bodies, legal [][]string
}

// cut returns n consecutive words from a random place in a text.
func (p *planter) cut(words []string, n int) []string {
	n = min(n, len(words))
	at := p.IntN(len(words) - n + 1)
	return words[at : at+n]
}

// form returns n words of legal prose.
func (p *planter) form(n int) []string { return p.cut(p.legal[p.IntN(len(p.legal))], n) }

// edited returns the words with a share of them replaced.
func (p *planter) edited(words []string, share float64) []string {
	other := p.bodies[p.IntN(len(p.bodies))]
	made := append([]string{}, words...)
	for i := range made {
		if p.Float64() < share {
			made[i] = other[p.IntN(len(other))]
		}
	}
	return made
}

func joined(parts ...[]string) string {
	var all []string
	for _, part := range parts {
		all = append(all, strings.Join(part, " "))
	}
	return strings.Join(all, "\n\n")
}

// templates are functions that put a body into a text of their own.
func (p *planter) templates() (list []func(body []string) string) {
	for _, n := range []int{12, 30, 60, 120, 250} { // disclaimers
		footer := p.form(n)
		list = append(list, func(body []string) string { return joined(body, footer) })
	}
	for _, n := range []int{40, 80} { // mails that quote another one, with the footers of both
		footer := p.form(n)
		list = append(list, func(body []string) string {
			wrote := fmt.Sprintf("On %d May 2024 at %d:%d %s wrote:", 1+p.IntN(31), p.IntN(24), p.IntN(60), body[0])
			return joined(body, footer, []string{wrote}, p.cut(p.bodies[p.IntN(len(p.bodies))], 20), footer)
		})
	}
	for _, every := range []int{9, 12, 16, 25} { // forms with gaps
		form := p.form(150)
		list = append(list, func(body []string) string {
			var all []string
			for i, word := range form {
				if all = append(all, word); i%every == every-1 {
					all = append(all, p.cut(body, 1+p.IntN(3))...)
				}
			}
			return joined(all, body)
		})
	}
	return list
}

// plant makes documents of bodies of 20 to 200 words. A third has a second version, with three words in a hundred replaced.
func (p *planter) plant(templates []func([]string) string, bodies [][]string) (list []planted) {
	add := func(body []string, i int) {
		list = append(list, planted{templates[p.IntN(len(templates))](body), joined(body), i})
	}
	for i, text := range bodies {
		body := p.cut(text, int(math.Exp(3+2.3*p.Float64())))
		if add(body, i); p.IntN(3) == 0 {
			add(p.edited(body, 0.03), i)
		}
	}
	return list
}

// syndicate makes documents of 30 sites with a frame each: 12 articles in 60 copies, shortened, edited, and half of them beside other texts, and 1,000
// articles of their own.
func (p *planter) syndicate() (list []planted) {
	var frames [][]string
	for range 30 {
		frames = append(frames, p.form(40))
	}
	for i := range 12 {
		for range 60 {
			copied := p.edited(p.bodies[i], 0.05*p.Float64())
			copied = copied[:len(copied)-p.IntN(len(copied)/3)]
			text := joined(copied, frames[p.IntN(len(frames))])
			if i%2 == 0 {
				text += joined(p.cut(p.bodies[p.IntN(len(p.bodies))], p.IntN(60)))
			}
			list = append(list, planted{text, joined(copied), i})
		}
	}
	for i := range 1000 {
		list = append(list, planted{joined(p.bodies[100+i], frames[p.IntN(len(frames))]), "", 100 + i})
	}
	return list
}

func textsOf(list []planted) (texts []string) {
	for _, d := range list {
		texts = append(texts, d.text)
	}
	return texts
}

// learnt learns the boilerplate of texts, and returns it as a scheme takes it.
func learnt(t *testing.T, texts []string) (*cluster.Learned, string) {
	t.Helper()
	r := &rule.Rule{Fields: []string{"text"}, Sketcher: sketcherOf(t, ""), Profile: rerank.Default()}
	c := expect.Value(cluster.New(cluster.Options{Rule: r, Dir: t.TempDir(), Memory: 256 << 20}))(t)
	defer c.Close()
	for i, text := range texts {
		s, _ := r.Sketch([]string{text})
		expect.OK(t, c.Add(cluster.Document{ID: fmt.Sprint(i), Sketch: &s}))
	}
	expect.OK(t, c.Cluster(t.Context()))
	l := expect.Value(c.Learn(t.Context(), func(prepare func([]string) cluster.Prepared, use func(string, cluster.Prepared) error) error {
		for i, text := range texts {
			if err := use(fmt.Sprint(i), prepare([]string{text})); err != nil {
				return err
			}
		}
		return nil
	}))(t)
	return l, boilerplate.Lines(l.Passages)
}

func sketcherOf(t *testing.T, lines string) *sketch.Sketcher {
	return expect.Value(sketch.New(sketch.Scheme{Boilerplate: lines}))(t)
}

// judged is the score of pairs of texts by the default rule.
func judged(t *testing.T, texts []string, lines string, pairs func(func(a, b int, positive bool))) (score Score) {
	t.Helper()
	s, profile, sketches := sketcherOf(t, lines), rerank.Default(), make([]sketch.Sketch, len(texts))
	for i, text := range texts {
		s.SketchInto(&sketches[i], text)
	}
	pairs(func(a, b int, positive bool) {
		near, _ := profile.NearDuplicates(&sketches[a], &sketches[b])
		score.add(near, positive)
	})
	return score
}

// TestBoilerplate measures what learned boilerplate is worth: on texts under templates, of which one half is learned from and the other measured;
// on articles in many copies, of which nothing must be learned; and on sets without templates, where nothing must change.
func TestBoilerplate(t *testing.T) {
	folder := os.Getenv("NEARDUP_PRACTICE")
	if folder == "" {
		t.Skip("NEARDUP_PRACTICE names no folder: run make quality PRACTICE=<folder>")
	}
	var sets []*Set
	for _, name := range []string{"mccormick-articles-2500", "bill-sections-val", "wiki-versions-dev"} {
		set, err := Load(filepath.Join(folder, name))
		if err != nil {
			t.Skipf("the texts are made from the sets of the project's own practice folder: %v", err)
		}
		sets = append(sets, set)
	}
	all := func(list []planted) func(func(a, b int, positive bool)) {
		return func(yield func(a, b int, positive bool)) {
			for a := range list {
				for b := range a {
					yield(a, b, list[a].body == list[b].body)
				}
			}
		}
	}
	for seed := range uint64(3) {
		p := &planter{Rand: rand.New(rand.NewPCG(seed, 7))}
		for _, d := range sets[0].Docs {
			p.bodies = append(p.bodies, strings.Fields(d.Text))
		}
		for _, d := range sets[1].Docs {
			if words := strings.Fields(d.Text); len(words) > 250 {
				p.legal = append(p.legal, words)
			}
		}
		p.Shuffle(len(p.bodies), func(i, j int) { p.bodies[i], p.bodies[j] = p.bodies[j], p.bodies[i] })
		templates, half := p.templates(), len(p.bodies)/2
		seen, held := p.plant(templates, p.bodies[:half]), p.plant(templates, p.bodies[half:])
		_, lines := learnt(t, textsOf(seen))
		var bare []string
		for _, d := range held {
			bare = append(bare, d.bare)
		}
		without, with := judged(t, textsOf(held), "", all(held)), judged(t, textsOf(held), lines, all(held))
		ideal := judged(t, bare, "", all(held))
		t.Logf("templates: F1 (precision / recall) %v, with boilerplate %v, of the bodies alone %v", without, with, ideal)
		if with.Precision() < 0.99 || with.Recall() < 0.5*ideal.Recall() {
			t.Error("too little")
		}

		copies := p.syndicate()
		_, lines = learnt(t, textsOf(copies))
		learned, articles := map[uint64]bool{}, 0
		for line := range strings.Lines(lines) {
			for _, window := range sketcherOf(t, "").Windows(line) {
				learned[window] = true
			}
		}
		for i := range 12 {
			for _, window := range sketcherOf(t, "").Windows(joined(p.bodies[i])) {
				if learned[window] {
					articles++
				}
			}
		}
		without, with = judged(t, textsOf(copies), "", all(copies)), judged(t, textsOf(copies), lines, all(copies))
		t.Logf("articles in many copies: %v, with boilerplate %v; %d windows of articles among %d learned", without, with, articles, len(learned))
		if articles > 0 || with.F1() < without.F1() {
			t.Error("articles were learned")
		}
	}
	for _, set := range sets {
		var texts []string
		for _, d := range set.Docs {
			texts = append(texts, d.Text)
		}
		l, lines := learnt(t, texts)
		without, with := judged(t, texts, "", set.Judged), judged(t, texts, lines, set.Judged)
		t.Logf("%s: %v, with boilerplate %v: %d passages in %d of %d documents", set.Name, without, with, l.Found, l.Documents, len(texts))
		if with != without {
			t.Error("judged otherwise")
		}
	}
}

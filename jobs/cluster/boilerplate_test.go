package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

const (
	footer  = "This message is confidential and is for its addressee alone. If you got it by mistake, please delete it at once and tell the sender."
	closing = "You get this letter because you subscribed to it; to end your subscription, answer with an empty mail."
)

// mails are documents in which footer and closing are boilerplate. An article stands in 60 copies, with small edits and under several frames.
func mails(r *rand.Rand) (list []string) {
	words := func(n int) string {
		var all []string
		for range n {
			all = append(all, fmt.Sprintf("w%d", r.IntN(5000)))
		}
		return strings.Join(all, " ")
	}
	article := words(150)
	for i := range 60 {
		copied := strings.Fields(article)
		copied[r.IntN(len(copied))] = "edited"
		list = append(list, words(20)+" "+strings.Join(copied, " ")+" "+words(20))
		body := words(30 + r.IntN(20))
		list = append(list, body+" "+footer)
		switch {
		case i < 20: // the same body under another footer
			list = append(list, body+" "+words(2)+" "+closing+" "+closing)
		case i < 25:
			list = append(list, footer+" "+words(80)+"\n"+strings.ToUpper(footer)+" "+closing)
		case i == 30: // too few
			for range 19 {
				list = append(list, words(20)+" this passage stands in nineteen documents that are otherwise unlike and in no other one")
			}
		}
	}
	return list
}

// learn learns from texts in the way of a command.
func learn(t *testing.T, o Options, texts []string) *Learned {
	t.Helper()
	o.Dir = t.TempDir()
	c := filled(t, o, documents(o.Rule, texts))
	expect.OK(t, c.Cluster(t.Context()))
	return expect.Value(c.Learn(t.Context(), func(prepare func([]string) Prepared, use func(string, Prepared) error) error {
		for i, text := range texts {
			if err := use(fmt.Sprintf("d%05d", i), prepare([]string{text})); err != nil {
				return err
			}
		}
		return nil
	}))(t)
}

// TestLearn: what stands in many otherwise unlike documents is found whole, and nothing else, whatever the memory and the order.
func TestLearn(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 0))
	texts := mails(r)
	rule := ruleOf(t, sketch.Scheme{}, 0.64, 8)
	for _, memory := range []int64{0, 1} {
		l := learn(t, Options{Rule: rule, Memory: memory}, texts)
		slices.SortFunc(l.Passages, func(a, b boilerplate.Passage) int { return a.Documents - b.Documents })
		if len(l.Passages) != 2 || l.Passages[0].Text != closing+" "+closing && l.Passages[0].Text != closing || l.Passages[1].Text != footer {
			t.Fatalf("found %+v", l.Passages)
		}
		if p := l.Passages[1]; p.Documents < 60 || p.Documents > 65 || len(p.IDs) != samples {
			t.Errorf("%+v", p)
		}
		// 65 with footer, and 25 with closing, of which 5 have both.
		expect.Same(t, [2]int{85, 20}, [2]int{l.Documents, l.Least}, "documents with a passage")
		for _, id := range l.Passages[1].IDs {
			var place int
			_, _ = fmt.Sscanf(id, "d%d", &place)
			if !strings.Contains(texts[place], footer) {
				t.Errorf("%s does not have the passage", id)
			}
		}
		// With the passages in a scheme, the clusters are those that the report counts.
		with := rule.Sketcher.Scheme()
		with.Boilerplate = boilerplate.Lines(l.Passages)
		groups := func(scheme sketch.Scheme) (n int) {
			o := Options{Rule: ruleOf(t, scheme, 0.64, 8), Dir: t.TempDir()}
			c := filled(t, o, documents(o.Rule, texts))
			expect.OK(t, c.Cluster(t.Context()))
			expect.OK(t, c.Each(t.Context(), func(members []Member) error {
				if len(members) > 1 {
					n++
				}
				return nil
			}))
			return n
		}
		expect.Same(t, [2]int{groups(rule.Sketcher.Scheme()), groups(with)}, [2]int{l.Before, l.After}, "groups")
		if l.Joined < 30 { // bodies under two footers
			t.Errorf("%+v", l)
		}
	}
	other := slices.Clone(texts)
	r.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	l := learn(t, Options{Rule: rule}, other)
	if len(l.Passages) != 2 || l.Before == 0 {
		t.Errorf("in another order: %+v", l.Passages)
	}
}

// TestLearnWithLittleMemory: of more boilerplate than fits, that in the most documents is learned.
func TestLearnWithLittleMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 0))
	words := func(n int) (text string) {
		for range n {
			text += fmt.Sprintf("w%d ", r.IntN(1_000_000))
		}
		return text
	}
	var list []string
	often, seldom := words(100), words(leastWindows)
	for i := range 100 {
		text := words(700) + often
		if i < 30 {
			text += words(20) + seldom
		}
		list = append(list, text)
	}
	rule := ruleOf(t, sketch.Scheme{}, 0.9, 8)
	enough := learn(t, Options{Rule: rule}, list)
	expect.Same(t, [3]int{2, 20, 100}, [3]int{enough.Found, enough.Least, enough.Documents}, "passages, least, documents")
	little := learn(t, Options{Rule: rule, Memory: 1}, list)
	expect.Same(t, [3]int{1, 40, 100}, [3]int{little.Found, little.Least, little.Documents}, "passages, least, documents")
	expect.Same(t, strings.TrimSpace(often), little.Passages[0].Text, "the passage")
}

// TestLearnNothing: copies of few articles are no boilerplate, nor are texts without repetitions.
func TestLearnNothing(t *testing.T) {
	rule := ruleOf(t, sketch.Scheme{}, 0.64, 8)
	texts := texts(rand.New(rand.NewPCG(effort.Seed(t), 0)), 400, 300)
	if l := learn(t, Options{Rule: rule}, texts); len(l.Passages) != 0 || l.Documents != 0 || l.Before != l.After || l.Apart+l.Freed+l.Joined != 0 {
		t.Errorf("%+v", l)
	}
}

// TestLearnEdges: a passage with a word that is often before or after it is no passage of its own.
func TestLearnEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 0))
	var list []string
	for i := range 120 {
		text := ""
		for range 80 {
			text += fmt.Sprintf("w%d ", r.IntN(1_000_000))
		}
		list = append(list, text+[]string{"the ", "and ", "of "}[i%3]+footer+[]string{" so", " yes", " no", ""}[i%4])
	}
	l := learn(t, Options{Rule: ruleOf(t, sketch.Scheme{}, 0.64, 8)}, list)
	if len(l.Passages) != 1 || l.Passages[0].Text != footer || l.Passages[0].Documents != 120 {
		t.Errorf("%+v", l.Passages)
	}
}

// TestLearnCounts: what falls apart, is freed and joins.
func TestLearnCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 0))
	var list []string
	long := strings.Repeat(footer+" "+closing+" ", 4)
	word := func() string { return fmt.Sprintf("w%d", r.IntN(1_000_000)) }
	for range 40 {
		body := ""
		for range 40 {
			body += word() + " "
		}
		list = append(list, body+long)
	}
	for range 40 {
		body := ""
		for range 300 {
			body += word() + " "
		}
		list = append(list, body+footer+" "+closing+" "+footer+" "+closing)
	}
	l := learn(t, Options{Rule: ruleOf(t, sketch.Scheme{}, 0.25, 8)}, list)
	expect.Same(t, [5]int{1, 0, 1, 40, 0}, [5]int{l.Before, l.After, l.Apart, l.Freed, l.Joined}, "%+v", l)
}

// TestTopOfLongPassages: of passages that are too long for a file together, the report lists those in the file.
func TestTopOfLongPassages(t *testing.T) {
	l := learner{passages: make([]passage, 2*topPassages)}
	for i := range l.passages {
		l.passages[i].Text, l.passages[i].windows = strings.Repeat("x", boilerplate.MostBytes/(topPassages-1)), []uint64{uint64(i)}
	}
	l.choose()
	expect.Same(t, l.learned.Passages, l.learned.Top, "passages and the top of them")
}

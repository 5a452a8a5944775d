package calibrate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs/ask"
	"github.com/neardup/sidecar/rerank"
)

// Candidates are the pairs of an index that a person can be asked about.
type Candidates struct {
	Pairs  []ask.Pair
	Counts ask.Counts
	Reading
	Search

	store adapters.Store
	index string
	rule  *rule.Rule
}

const (
	// perHundredth is how many candidates of each hundredth of agreement are kept.
	perHundredth = 100
	// akin is the agreement from which two documents are of one group.
	akin = 0.3
)

// gathering collects candidates while pairs are compared.
type gathering struct {
	pools  [len(ask.Counts{})]pool
	counts ask.Counts
	groups map[int]int // of docs: another one of the same group
}

// Gather finds the pairs of an index that the threshold decides. The pairs of the answers are among them, whatever else is chosen, if their documents are
// still there and still comparable.
func Gather(ctx context.Context, store adapters.Store, index string, rule *rule.Rule, o Options, answers []ask.Answer) (*Candidates, error) {
	c := newCalibration(store, index, rule, o)
	c.gathering = &gathering{groups: map[int]int{}}
	found := &Candidates{store: store, index: index, rule: rule}
	for _, step := range []func(context.Context) error{c.read, c.compare, func(ctx context.Context) error { return c.fetchAnswered(ctx, answers) }} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("calibrate %s: %w", index, err)
		}
	}
	found.Counts, found.Reading, found.Search = c.gathering.counts, c.report.Reading, c.report.Search
	found.Pairs = c.gathered(answers)
	return found, nil
}

// gather takes two documents whose texts differ. The pair stands for weight pairs of the index.
func (c *calibration) gather(a, b int, value, weight float64) {
	g := c.gathering
	if g == nil || value < ask.Least {
		return
	}
	g.join(a, b, value)
	if !c.decided(a, b, value) {
		return
	}
	at := ask.Hundredth(value)
	g.counts[at] += weight
	c.put(&g.pools[at], perHundredth, a, b, value)
}

// decided reports whether it is the threshold that decides whether two documents fold.
func (c *calibration) decided(a, b int, value float64) bool {
	return c.judgeAt(a, b, value) == rerank.Agrees
}

// join makes one group of those of two documents that are akin.
func (g *gathering) join(a, b int, value float64) {
	if value >= akin {
		g.groups[g.group(a)] = g.group(b)
	}
}

// group returns the document that stands for the group of one.
func (g *gathering) group(i int) int {
	for {
		up, has := g.groups[i]
		if !has || up == i {
			return i
		}
		if top, has := g.groups[up]; has {
			g.groups[i] = top // shortens the way
		}
		i = up
	}
}

// fetchAnswered reads the documents of the answers that were not read.
func (c *calibration) fetchAnswered(ctx context.Context, answers []ask.Answer) error {
	missing := map[string]bool{}
	for _, a := range answers {
		missing[a.A], missing[a.B] = true, true
	}
	for _, d := range c.docs {
		delete(missing, d.id)
	}
	return adapters.ReadByID(ctx, c.store, c.index, c.rule, slices.Sorted(maps.Keys(missing)), nil, func(d adapters.Stored) error {
		if computed, _ := c.rule.SketchOf(d.Source); computed != nil {
			c.docs = append(c.docs, document{id: d.ID, rank: c.rank(d.ID), sketch: computed.Sketch})
		}
		return ctx.Err()
	})
}

// gathered returns the candidates by their priorities, so that agreements stand in no order.
func (c *calibration) gathered(answers []ask.Answer) (pairs []ask.Pair) {
	var list pool
	for i := range c.gathering.pools {
		c.gathering.pools[i].trim(perHundredth)
		list = append(list, c.gathering.pools[i]...)
	}
	places := map[string]int{}
	for i, d := range c.docs {
		places[d.id] = i
	}
	for _, answer := range answers {
		a, hasA := places[answer.A]
		b, hasB := places[answer.B]
		if !hasA || !hasB || a == b {
			continue
		}
		if value := c.value(&c.docs[a].sketch, &c.docs[b].sketch); value >= ask.Least && c.decided(a, b, value) {
			c.gathering.join(a, b, value)
			c.put(&list, len(list)+1, a, b, value)
		}
	}
	list.trim(len(list))
	for _, p := range list {
		a, b := &c.docs[p.a], &c.docs[p.b]
		pairs = append(pairs, ask.Pair{
			A: a.id, B: b.id, Agreement: p.value, Shingles: int(min(a.sketch.Shingles, b.sketch.Shingles)),
			Groups: [2]int{c.gathering.group(p.a), c.gathering.group(p.b)},
		})
	}
	return pairs
}

// Shown is a document as a person sees it.
type Shown struct {
	// Text is what is compared: the texts of the rule's fields, without the tags of HTML. Values are the other fields.
	Text   string
	Values ask.Values
	// Fingerprint is the fingerprint of the text, or 0 if the document has no text.
	Fingerprint uint64
}

// longestValue is how many bytes a value has at most that counts as one of a field that tells documents apart.
const longestValue = 100

// Show reads documents by their ids. What is not there does not come.
func (c *Candidates) Show(ctx context.Context, ids ...string) (map[string]Shown, error) {
	shown := map[string]Shown{}
	err := adapters.ReadByID(ctx, c.store, c.index, c.rule, ids, []string{adapters.AllFields}, func(d adapters.Stored) error {
		var texts []string
		for _, text := range c.rule.Texts(d.Source) {
			texts = append(texts, c.rule.Sketcher.Content(text))
		}
		s := Shown{Text: strings.Join(texts, "\n"), Values: ask.Values{}}
		if computed, _ := c.rule.SketchOf(d.Source); computed != nil {
			s.Fingerprint = computed.Fingerprint
		}
		var members map[string]any
		numbers := json.NewDecoder(bytes.NewReader(d.Source))
		if numbers.UseNumber(); numbers.Decode(&members) == nil {
			c.values(s.Values, "", members)
		}
		delete(s.Values, "id") // of Typesense, which tells every document apart
		shown[d.ID] = s
		return ctx.Err()
	})
	return shown, err
}

// values collects short values of a document outside the rule's fields and our own.
func (c *Candidates) values(into ask.Values, at string, members map[string]any) {
	for name, value := range members {
		path := at + name
		if slices.Contains(c.rule.Fields, path) || slices.Contains(rule.OurFields, path) {
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			c.values(into, path+".", v)
		case string, json.Number, bool:
			if text := fmt.Sprint(v); len(text) <= longestValue {
				into[path] = text
			}
		}
	}
}

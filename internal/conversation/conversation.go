// Package conversation finds the threshold that fits an index. A person judges pairs of its documents, in a terminal or on a page.
//
// A [Conversation] asks, and keeps the answers in a file. Package calibrate finds the pairs in the index. Package ask chooses which to ask and finds the
// threshold. [Page] serves it to a browser.
package conversation

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs/ask"
	"github.com/neardup/sidecar/jobs/calibrate"
)

// Options say what to ask about, and where to keep the answers and the threshold.
type Options struct {
	calibrate.Options
	Engine *upstream.Engine
	Index  adapters.Index
	// Sketch is the section of the configuration that presets start from, and File the configuration.
	Sketch config.Sketch
	File   string
	// Answers is the file of answers. If empty, it is named after the engine and the index.
	Answers string
	// By is who decides, if decisions are stored.
	By string
}

// Conversation is about one index. It is not safe for concurrent use.
type Conversation struct {
	Options
	Found *calibrate.Candidates
	// Earlier is how many answers of earlier runs count. Useless is how many do not: a document is gone, or the pair does not depend on the threshold.
	Earlier int
	Useless int

	rule     *rule.Rule
	entry    int // the rule's entry in indices of the configuration
	session  *ask.Session
	question *Question // the current one, nil for none
	// judged are the pairs whose documents were read. remembered holds, for each pair that this run decided, what was decided before.
	judged     map[[2]string]*ask.Judged
	remembered map[[2]string]decided.Pair
	// written is the threshold that this run wrote into the configuration; 0 for none.
	written float64
}

// Question is a pair with its documents.
type Question struct {
	ask.Pair
	// Number is the number of this question, from 1.
	Number int
	X, Y   calibrate.Shown
}

// readAgain is how many earlier answers are read again for advice, at most.
const readAgain = 200

// unsafeInNames are the characters that are replaced in a file's name.
var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Begin reads the index and the answers of earlier runs.
func Begin(ctx context.Context, o Options) (*Conversation, error) {
	if o.Answers == "" {
		o.Answers = unsafeInNames.ReplaceAllString("answers-"+o.Engine.Config.Name+"-"+o.Index.Name, "_") + ".jsonl"
	}
	c := &Conversation{Options: o, rule: o.Index.Rule(o.Engine.Rules), judged: map[[2]string]*ask.Judged{}, remembered: map[[2]string]decided.Pair{}}
	c.entry = slices.Index(o.Engine.Rules, c.rule)
	answers, err := readAnswers(o.Answers)
	if err != nil {
		return nil, err
	}
	if c.Found, err = calibrate.Gather(ctx, o.Engine.Store, o.Index.Name, c.rule, o.Options, answers); err != nil {
		return nil, o.Engine.Explain(err)
	}
	c.session = ask.New(c.Found.Pairs, c.Found.Counts, c.Present())
	for _, a := range answers {
		if c.session.Answer(a) != nil {
			c.Useless++
		}
	}
	c.Earlier = len(c.session.Answers())
	return c, c.readEarlier(ctx)
}

// readEarlier reads the documents of the last readAgain answers.
func (c *Conversation) readEarlier(ctx context.Context) error {
	answers := c.session.Answers()
	for some := range slices.Chunk(answers[max(0, len(answers)-readAgain):], readAgain/4) {
		var ids []string
		for _, a := range some {
			ids = append(ids, a.A, a.B)
		}
		slices.Sort(ids)
		documents, err := c.Found.Show(ctx, slices.Compact(ids)...)
		if err != nil {
			return c.Engine.Explain(err)
		}
		for _, a := range some {
			x, hasX := documents[a.A]
			y, hasY := documents[a.B]
			if pair, known := c.session.Find(a.A, a.B); known && hasX && hasY {
				c.judged[[2]string{a.A, a.B}] = &ask.Judged{Agreement: pair.Agreement, A: x.Values, B: y.Values}
			}
		}
	}
	return nil
}

// Present returns the threshold in the configuration.
func (c *Conversation) Present() float64 {
	if c.written > 0 {
		return c.written
	}
	return c.rule.Profile.Threshold
}

// Match returns the match of the rule.
func (c *Conversation) Match() string { return c.Engine.Config.Indices[c.entry].Match }

// Next returns the question to answer next, or nil if no pair is left.
func (c *Conversation) Next(ctx context.Context) (*Question, error) {
	for c.question == nil {
		pair, left := c.session.Next()
		if !left {
			return nil, nil
		}
		documents, err := c.Found.Show(ctx, pair.A, pair.B)
		if err != nil {
			return nil, c.Engine.Explain(err)
		}
		x, hasX := documents[pair.A]
		y, hasY := documents[pair.B]
		if !hasX || !hasY {
			c.session.Pass(pair)
			continue
		}
		c.judged[[2]string{pair.A, pair.B}] = &ask.Judged{Agreement: pair.Agreement, A: x.Values, B: y.Values}
		c.question = &Question{Pair: pair, Number: len(c.session.Answers()) + 1, X: x, Y: y}
	}
	return c.question, nil
}

// Answer answers the question that Next returned, and appends the answer to the file. If remember is set, it also stores a decision about the pair:
// always together for same, never together for different.
func (c *Conversation) Answer(ctx context.Context, v ask.Verdict, remember bool) error {
	if c.question == nil {
		return errors.New("there is no question to answer")
	}
	q := c.question
	a := ask.Answer{A: q.A, B: q.B, Verdict: v, At: now()}
	err := c.session.Answer(a)
	if err != nil {
		return err
	}
	if remember && v != ask.Skip {
		var before decided.Pair
		before, err = c.decide(ctx, decided.Pair{A: q.A, B: q.B, Verdict: decided.Verdict(v), TextA: q.X.Fingerprint, TextB: q.Y.Fingerprint})
		if err == nil {
			c.remembered[[2]string{q.A, q.B}] = before
		}
	}
	if err == nil {
		err = appendAnswer(c.Answers, a)
	}
	if err != nil { // the question remains open
		c.session.TakeBack()
		return err
	}
	c.question = nil
	return nil
}

// TakeBack undoes the last answer, of this or an earlier run. If this run stored a decision with it, the earlier decision is stored again. It reports
// false if there is no answer.
func (c *Conversation) TakeBack(ctx context.Context) (bool, error) {
	last, ok := c.session.TakeBack()
	if !ok {
		return false, nil
	}
	c.question = nil
	err := appendAnswer(c.Answers, ask.Answer{A: last.A, B: last.B, Verdict: ask.Undo, At: now()})
	pair := [2]string{last.A, last.B}
	if before, is := c.remembered[pair]; is && err == nil {
		delete(c.remembered, pair)
		_, err = c.decide(ctx, before)
	}
	return true, err
}

// decide stores a decision about a pair of the index, and returns the earlier one; Forgotten if there was none.
func (c *Conversation) decide(ctx context.Context, p decided.Pair) (before decided.Pair, err error) {
	p.Index = decided.Place{Index: c.Index, Rule: c.rule}.PairIndex()
	if before, err = decided.Open(c.Engine.Store.Journal()).Decide(ctx, c.By, p); err != nil {
		return before, fmt.Errorf("the decided pairs: %w", c.Engine.Explain(err))
	}
	return before, nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// Finding returns what follows from the answers.
func (c *Conversation) Finding() ask.Finding { return c.session.Finding() }

// Advice returns other settings of the rule that would help.
func (c *Conversation) Advice(ctx context.Context) ([]ask.Advice, error) {
	var judged []ask.Judged
	var pairs []*ask.Judged
	var answers []ask.Answer
	for _, a := range c.session.Answers() {
		if j := c.judged[[2]string{a.A, a.B}]; j != nil && a.Verdict != ask.Skip {
			j.Same = a.Verdict == ask.Same
			pairs, answers = append(pairs, j), append(answers, a)
		}
	}
	if len(pairs) >= ask.Fewest {
		if err := c.tryPresets(ctx, pairs, answers); err != nil {
			return nil, err
		}
	}
	for _, j := range pairs {
		judged = append(judged, *j)
	}
	conditions := append(slices.Concat(c.rule.Together.Same, c.rule.Together.Different), c.rule.Together.WithinField)
	return append(ask.Advise(judged, conditions), ask.AdvisePreset(judged, c.Finding().Threshold)...), nil
}

// Refusal returns why the threshold can't be written yet, or nil if it can.
func (c *Conversation) Refusal() error {
	f := c.Finding()
	if f.Judged() < ask.Fewest {
		return fmt.Errorf("%s too few to write a threshold: judge at least %d pairs", Counted(f.Judged()), ask.Fewest)
	}
	if _, left := c.session.Next(); left && !f.Settled {
		return errors.New("the threshold is not written, because more answers may change it: go on, or write it into the rule yourself")
	}
	return nil
}

// Counted returns a number of answers with its verb.
func Counted(answers int) string {
	if answers == 1 {
		return "1 answer is"
	}
	return fmt.Sprintf("%d answers are", answers)
}

// YAML returns what to write into the rule: the threshold, and advice as comments.
func (c *Conversation) YAML(advice []ask.Advice) string {
	text := fmt.Sprintf("  threshold: %v\n", c.Finding().Threshold)
	for _, a := range advice {
		text += "  # " + a.Rule + "\n"
	}
	return text
}

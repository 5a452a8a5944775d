// Package cases runs the tests that a configuration has of its own rules: pairs of documents that must be near-duplicates, or must not
// be. Searches judge hits by the same code.
package cases

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Result is how one case ended.
type Result struct {
	// Rule is what the rule matches, Case the number of the case among its own, from 0, and Line its line in the file.
	Rule string `json:"rule"`
	Case int    `json:"case"`
	Line int    `json:"line"`
	// Want is same or different, and OK says that it is so.
	Want string `json:"want"`
	OK   bool   `json:"ok"`
	// Compared says that both documents have a sketch. Agreement is what the rule's measure then says of them.
	Compared  bool    `json:"compared"`
	Agreement float64 `json:"agreement"`
	Threshold float64 `json:"threshold"`
	// Found says in words what was found.
	Found string `json:"found"`
}

// The values of Want.
const (
	same      = "same"
	different = "different"
)

// String returns which case it is, and how it ended.
func (r Result) String() string {
	return fmt.Sprintf("rule %s, cases[%d]: %s", r.Rule, r.Case, r.outcome())
}

func (r Result) outcome() string {
	does := map[bool]string{true: "fold", false: "do not fold"}
	switch wants := r.Want == same; {
	case !r.Compared:
		return "is not judged: " + r.Found
	case r.OK:
		return does[wants] + ": " + r.Found
	case wants:
		return "must fold, and do not: " + r.Found
	}
	return "must not fold, and do: " + r.Found
}

// In returns the place of the case in the configuration file, and how it ended.
func (r Result) In(file string) string { return fmt.Sprintf("%s:%d: %s", file, r.Line, r) }

// Run judges the cases of an engine's rules. With o, which reads the stored documents, it judges all; without, those of texts alone.
func Run(ctx context.Context, e *config.Engine, o *upstream.Engine) (results []Result, err error) {
	rules, err := e.Rules()
	if err != nil {
		return nil, err
	}
	for i, index := range e.Indices {
		if len(index.Cases) == 0 {
			continue
		}
		t := test{index: index, rule: rules[i], engine: o}
		if o != nil {
			t.read(ctx)
		}
		for n, c := range index.Cases {
			documents, wantsSame := c.Documents()
			if o == nil && (documents[0].ID != "" || documents[1].ID != "") {
				continue
			}
			r := t.judge(documents, wantsSame)
			r.Rule, r.Case, r.Line, r.Threshold = index.Match, n, c.Line, index.Threshold
			results = append(results, r)
		}
	}
	return results, nil
}

// Failing returns those that are not as they must be.
func Failing(results []Result) (failing []Result) {
	for _, r := range results {
		if !r.OK {
			failing = append(failing, r)
		}
	}
	return failing
}

// test runs the cases of one rule.
type test struct {
	index  config.Index
	rule   *rule.Rule
	engine *upstream.Engine
	// stored are the documents that were read, by their ids, each in every index that has it. unread says which could not be read everywhere, and why.
	stored   map[string][]document
	unread   map[string]error
	doubting bool
}

// document is a document to judge.
type document struct {
	rule.Seen
	source []byte
	index  string
}

// judge judges two documents.
func (t *test) judge(pair []config.CaseDocument, wantsSame bool) (r Result) {
	if r.Want = different; wantsSame {
		r.Want = same
	}
	var hits [2]rerank.Hit
	var words [2][]string
	judge := rule.NewJudge(rule.Rules{t.rule}, 0, 0)
	judge.Doubting = t.doubting
	for i, named := range pair {
		d, err := t.document(named)
		if err != nil {
			r.Found = err.Error()
			return r
		}
		if hits[i] = judge.Hit(d.Seen); hits[i].Sketch == nil {
			r.Found = t.sketchless(named)
			return r
		}
		for _, text := range t.rule.Readable(d.source) {
			words[i] = append(words[i], sketch.Words(t.rule.Sketcher.Content(text))...)
		}
	}
	profile := hits[1].Profile
	agreement, reason := profile.Judge(hits[1].Sketch, hits[0].Sketch)
	r.Compared, r.Agreement = true, max(0, agreement)
	r.Found = profile.Why(hits[1].Sketch, hits[0].Sketch, agreement, reason)
	switch reason {
	case rerank.TooShort, rerank.OtherNumbers, rerank.OtherTopics:
		r.Found += fmt.Sprintf(" (agreement %.4f, threshold %v)", r.Agreement, profile.Threshold)
	}
	if reason == rerank.TooShort || reason == rerank.OtherNumbers || reason.Near() && !wantsSame {
		if numbers := rule.NumbersApart(words[0], words[1], "in the first", "in the second"); numbers != "" {
			r.Found += "; " + numbers
		}
	}
	near, conditions := reason.Near(), strings.Join(t.index.Conditions(), " and ")
	switch stored := pair[0].ID != "" && pair[1].ID != ""; {
	case !near || conditions == "":
	case !stored: // a text has none of the fields that conditions are about
		r.Found += "; not checked for texts: " + conditions
	case !profile.ConditionsHold(&hits[1], &hits[0]):
		near = false
		r.Found += ", but hits fold " + conditions
	}
	r.OK = near == wantsSame
	return r
}

// sketchless says why a document can't be compared.
func (t *test) sketchless(d config.CaseDocument) string {
	if d.ID == "" {
		return d.String() + " has no word"
	}
	if !t.rule.Compute {
		return d.String() + " has no usable sketch stored, and missing is alone: run sidecar reindex"
	}
	return fmt.Sprintf("%s has no text in %s", d, strings.Join(t.rule.Fields, ", "))
}

// document returns a document of a case, as a search would see it.
func (t *test) document(d config.CaseDocument) (document, error) {
	if d.ID != "" {
		return t.find(d)
	}
	var value any = d.Text
	if t.rule.Sketcher.Scheme().Features == sketch.Tags {
		value = strings.Split(d.Text, "\n")
	}
	source, err := json.Marshal(map[string]any{t.rule.Fields[0]: value})
	if err != nil {
		return document{}, err
	}
	text := document{source: source, Seen: rule.Seen{Index: t.rule.Match}} // a pattern matches itself
	if computed, _ := t.rule.SketchOf(source); computed != nil {
		text.Stored = []byte(computed.Text) // as a write would store it
	}
	return text, nil
}

// find returns a stored document.
func (t *test) find(d config.CaseDocument) (document, error) {
	var found []document
	var in []string
	for _, one := range t.stored[d.ID] {
		if d.Index == "" || d.Index == one.index || d.Index == one.Seen.Index {
			found, in = append(found, one), append(in, one.index)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return document{}, fmt.Errorf("%s is in %s: name one of them, as in {id: …, index: %s}", d, strings.Join(in, " and "), in[0])
	case t.unread[d.ID] != nil:
		return document{}, fmt.Errorf("%s can't be read: %w", d, t.unread[d.ID])
	}
	return document{}, fmt.Errorf("%s is not in %s", d, cmp.Or(d.Index, t.rule.Match))
}

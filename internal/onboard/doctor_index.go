package onboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs"
)

const (
	// sampleSize is how many documents of an index doctor reads.
	sampleSize = 100
	// fullShare is the percentage of an index's field limit from which doctor warns.
	fullShare = 95
)

// sample is what doctor found in some documents of an index.
type sample struct {
	jobs.Findings
	// texts counts the documents that have a text in a field.
	texts map[string]int
}

// index checks one index of a rule. It adds one line if the index is all right, otherwise a line for each problem.
func (p *engineChecks) index(ctx context.Context, key string, index adapters.Index, rule *rule.Rule) {
	s, unread := p.sample(ctx, index, rule) // first: a scan makes documents visible that were just written
	state, err := upstream.Within(ctx, func(ctx context.Context) (adapters.Condition, error) { return p.Store.Condition(ctx, index, rule) })
	if err != nil {
		p.found(stateFail, "index", fmt.Sprintf("%s.credentials must be allowed to read it", p.key), index.Name, "can't be read", "%s: %v", index.Name, err)
		return
	}
	before := len(p.problems)
	if !index.Ready {
		why, hint := splitHint(index.Why)
		if hint == "" && state.Refused != nil {
			hint = "the next line says why"
		}
		p.found(stateFail, "index", cmp.Or(hint, "run: sidecar setup"), index.Name, "not ready: "+why, "%s is not ready: %s", index.Name, why)
	}
	if state.Refused != nil {
		cause := fmt.Sprintf("the engine would not let us %v", state.Refused)
		p.found(stateFail, "rights", fmt.Sprintf("setup and reindex need it: check the index, and the rights of %s.credentials", p.key),
			index.Name, cause, "%s: %s", index.Name, cause)
	}
	if state.Limit > 0 && state.Fields*100 >= state.Limit*fullShare {
		p.found(stateWarn, "fields", "raise that limit: above it the engine refuses new fields, and setup adds one",
			index.Name, "have nearly as many fields as they may have", "%s has %d of the %d fields that it may have", index.Name, state.Fields, state.Limit)
	}
	if unread != nil {
		p.found(stateFail, "index", "reindex would fail in the same way", index.Name, fmt.Sprintf("their documents can't be read: %v", unread),
			"%s: its documents can't be read: %v", index.Name, unread)
		return
	}
	share := p.sketches(index, rule, state, s)
	p.texts(key, index, rule, state, s)
	p.deciding(key, index, state)
	if len(p.problems) == before {
		p.ok("index", "%s is ready: %s", index.Name, share)
	}
	declared := slices.DeleteFunc(slices.Clone(rule.TextFields()), func(field string) bool { return slices.Contains(state.Undeclared, field) })
	better := p.search.index == "" || index.Ready && !p.search.ready
	if better && s.Scanned > 0 && len(declared) > 0 {
		p.search.index, p.search.fields, p.search.ready = index.Name, declared, index.Ready
	}
}

// sample reads some documents of an index.
func (p *engineChecks) sample(ctx context.Context, index adapters.Index, rule *rule.Rule) (sample, error) {
	s := sample{texts: map[string]int{}}
	return upstream.Within(ctx, func(ctx context.Context) (sample, error) {
		return s, p.Store.Scan(ctx, index.Name, rule, adapters.Selection{Random: true, Limit: sampleSize}, func(page adapters.Page) error {
			for _, document := range page.Documents {
				s.Count(rule, document)
				for i, values := range rule.FieldTexts(document.Source) {
					if _, has := rule.Sketcher.Sketch(values...); has {
						s.texts[rule.Fields[i]]++
					}
				}
				if made, _ := rule.SketchOf(document.Source); made != nil && made.Vector != nil {
					s.texts[rule.Vector]++
				}
			}
			return ctx.Err()
		})
	})
}

// sketches checks how many documents have a sketch of their text, and returns the share in words.
func (p *engineChecks) sketches(index adapters.Index, rule *rule.Rule, state adapters.Condition, s sample) string {
	if s.Scanned == 0 {
		return "no documents yet"
	}
	having, of, all := s.Right+s.Stale+s.Emptied+s.Incomparable, s.Scanned, terminal.Count(state.Documents, "document")
	share := fmt.Sprintf("%s, and of %d looked at %s have a sketch", all, of, percent(having, of))
	if state.Sketched >= 0 {
		share = fmt.Sprintf("%s, of which %s have a sketch", all, percent(state.Sketched, state.Documents))
	}
	if wrong := s.Wrong(); wrong > 0 {
		p.found(stateFail, "sketches", "count them with: sidecar verify; mend them with: sidecar reindex",
			index.Name, "documents have the sketch of another text than theirs", "%s: %d of %d documents looked at have the sketch of another text than theirs, such as %s",
			index.Name, wrong, of, strings.Join(s.Examples, " "))
	}
	if s.Incomparable > 0 {
		p.found(stateWarn, "sketches", "replace them with: sidecar reindex",
			index.Name, "documents have a sketch of an older format, another scheme or other fields, which counts as none", "%s: %d of %d documents looked at have a sketch of an older format, another scheme or other fields, which counts as none",
			index.Name, s.Incomparable, of)
	}
	if s.Absent > 0 {
		until := map[bool]string{true: "searches compute them", false: "hits without one stand alone"}[rule.Compute]
		p.found(stateWarn, "sketches", "run: sidecar reindex; until then "+until, index.Name, "documents have no sketch yet", "%s: %s", index.Name, share)
	}
	return share
}

// texts checks whether the rule's fields have texts.
func (p *engineChecks) texts(key string, index adapters.Index, rule *rule.Rule, state adapters.Condition, s sample) {
	if s.Scanned == 0 {
		return
	}
	if len(s.texts) == 0 {
		p.found(stateWarn, "fields", "correct "+key+".fields", index.Name, "none of the fields "+strings.Join(rule.Fields, ", ")+" has a text",
			"%s: none of the fields %s has a text in %s looked at", index.Name, strings.Join(rule.Fields, ", "), terminal.Count(s.Scanned, "document"))
		return
	}
	for _, field := range rule.Fields {
		if s.texts[field] == 0 && slices.Contains(state.Undeclared, field) {
			p.found(stateWarn, "fields", "correct "+key+".fields", index.Name, "the field "+field+" is not declared, and has no text",
				"%s: the field %s is not declared, and has a text in none of %s looked at", index.Name, field, terminal.Count(s.Scanned, "document"))
		}
	}
}

// deciding checks the fields that decide, along with the sketches, which hits fold and which is shown.
func (p *engineChecks) deciding(key string, index adapters.Index, state adapters.Condition) {
	for _, field := range state.Unfit {
		state, hint, why := stateFail, "name another one in "+key+"; this one can't decide", field.Why
		if why == "" {
			state, why = stateWarn, "is not declared"
			hint = "correct its name in " + key + ", or write documents with it; without it nothing folds on that condition"
		}
		cause := fmt.Sprintf("the field %s, which decides what folds or is shown, %s", field.Field, why)
		p.found(state, "fields", hint, index.Name, cause, "%s: %s", index.Name, cause)
	}
}

// percent returns a share in whole percents. Only the whole is 100 %, and only nothing is 0 %.
func percent(part, whole int) string {
	switch {
	case whole == 0 || part >= whole:
		return "100 %"
	case part == 0:
		return "0 %"
	}
	return fmt.Sprintf("%d %%", min(99, max(1, part*100/whole)))
}

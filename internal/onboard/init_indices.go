package onboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

const (
	// maxSurveyed is how many candidates' fields and document counts are read, maxSampled how many candidates' documents.
	maxSurveyed, maxSampled = 300, 40
	// concurrency is how many candidates are surveyed at a time, maxMembers how many indices of one.
	concurrency, maxMembers = 4, 20
)

// candidate is what may become one rule: an index, or several with similar names.
type candidate struct {
	Match   string
	members []adapters.Holding // by name, so the newest is usually the last
	// Documents is how many there are, -1 if the engine does not say.
	Documents int
	fields    []adapters.Field
	texts
	// why says why it is skipped; empty if it is not.
	why string
}

// names returns the names of the newest members.
func (c *candidate) names() []string { return namesOf(c.members[max(0, len(c.members)-maxMembers):]) }

func namesOf(list []adapters.Holding) (names []string) {
	for _, h := range list {
		names = append(names, h.Name)
	}
	return names
}

// searchable returns 1 if a field is searched by words, else 0.
func (c *candidate) searchable() int {
	if slices.ContainsFunc(c.fields, func(f adapters.Field) bool { return f.Kind == adapters.TextKind }) {
		return 1
	}
	return 0
}

// number matches a number in a name, such as a date or a version.
var number = regexp.MustCompile(`[0-9]+([._-][0-9]+)*`)

// serial matches a name in a series: with a date, or with a number as engines append it at a rollover.
var serial = regexp.MustCompile(`(^|[^0-9])(19|20)[0-9]{2}[._-]?[0-9]{2}|-[0-9]{6}$`)

// namePattern returns the pattern of names that differ from this one only in numbers, empty if the name has no numbers or too few letters.
func namePattern(name string) string {
	pattern := number.ReplaceAllString(name, "*")
	letters := strings.Trim(strings.ReplaceAll(pattern, "*", ""), "._-")
	if pattern == name || len(letters) < 2 {
		return ""
	}
	return pattern
}

// groupsOf groups indices with similar names. A single index keeps its name, unless the name is one of a series.
func groupsOf(holdings []adapters.Holding) (list []*candidate) {
	by := map[string][]adapters.Holding{}
	for _, h := range holdings {
		if pattern := namePattern(h.Name); pattern != "" {
			by[pattern] = append(by[pattern], h)
		}
	}
	done := map[string]bool{}
	for _, h := range holdings {
		pattern := namePattern(h.Name)
		members := by[pattern]
		series := len(members) > 1 || !h.Stream && (len(h.Aliases) > 0 || serial.MatchString(h.Name))
		switch {
		case pattern == "" || !series:
			list = append(list, &candidate{Match: h.Name, members: []adapters.Holding{h}})
		case !done[pattern]:
			done[pattern] = true
			list = append(list, &candidate{Match: pattern, members: members})
		}
	}
	return list
}

// inspect finds the indices that rules can be written for.
func (n *survey) inspect(ctx context.Context) error {
	candidates, err := n.list(ctx)
	if ctx.Err() != nil {
		return terminal.ErrInterrupted
	}
	if err != nil {
		return err
	}
	if len(candidates) > maxSampled && n.talk.interactive() {
		n.talk.say("Looking at %d names …", len(candidates))
	}
	const unseen = "not looked at, as there are many: name it with --index"
	for _, c := range candidates[min(len(candidates), maxSurveyed):] {
		c.why = unseen
	}
	if err := n.each(ctx, candidates, n.describe); err != nil {
		return err
	}
	candidates = n.split(candidates)
	slices.SortStableFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(b.searchable()-a.searchable(), cmp.Compare(b.Documents, a.Documents))
	})
	seen := 0
	for _, c := range candidates {
		if c.why != "" {
			continue
		}
		if seen++; seen > maxSampled {
			c.why = unseen
		}
	}
	if err := n.each(ctx, candidates, n.read); err != nil {
		return err
	}
	for _, c := range candidates {
		if c.why = cmp.Or(c.why, c.noRule()); c.why == "" {
			n.candidates = append(n.candidates, c)
		} else {
			n.skipped = append(n.skipped, c)
		}
	}
	return nil
}

// noRule returns why a rule for the candidate would be invalid, empty if it is valid.
func (c *candidate) noRule() string {
	index := c.rule()
	if wrong := config.Flatten(index.Rule(nil).Validate()); len(wrong) > 0 {
		return "no rule can be written for it: " + wrong[0].Error()
	}
	return ""
}

// each calls a function for each candidate that is not skipped, a few at a time. A candidate is skipped if the function fails.
func (n *survey) each(ctx context.Context, list []*candidate, survey func(context.Context, *candidate) error) error {
	var g errgroup.Group
	g.SetLimit(concurrency)
	for _, c := range list {
		if c.why != "" {
			continue
		}
		g.Go(func() error {
			if _, err := upstream.Within(ctx, func(ctx context.Context) (any, error) { return nil, survey(ctx, c) }); err != nil {
				c.why = err.Error()
			}
			return nil
		})
	}
	_ = g.Wait() // none returns an error
	if ctx.Err() != nil {
		return terminal.ErrInterrupted
	}
	return nil
}

// list returns the engine's indices as candidates, or those that the command line names.
func (n *survey) list(ctx context.Context) (list []*candidate, err error) {
	holdings, err := upstream.Within(ctx, n.store.Holdings)
	status := adapters.StatusOf(err)
	switch {
	case err != nil && status >= http.StatusBadRequest && len(n.options.Indices) > 0:
		n.notes = append(n.notes, "the engine does not list its indices: the names of --index are not checked")
		for _, name := range n.options.Indices {
			list = append(list, &candidate{Match: name, members: []adapters.Holding{{Name: name}}})
		}
		return list, nil
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		return nil, fmt.Errorf("%w: these credentials may not list indices: %s of a user who may, or name indices with --index",
			err, toExport(n.engine.Kind))
	case err != nil && n.untested() != "":
		return nil, fmt.Errorf("%w: %s is not tested, and may not support this list: name indices with --index", err, n.product())
	case err != nil:
		return nil, err
	case len(n.options.Indices) > 0:
		return n.wanted(holdings)
	}
	var open []adapters.Holding
	for _, h := range holdings {
		if h.Why != "" {
			n.skipped = append(n.skipped, &candidate{Match: h.Name, members: []adapters.Holding{h}, why: h.Why})
			continue
		}
		open = append(open, h)
	}
	return groupsOf(open), nil
}

// wanted returns the candidates that --index names. An alias stands for its indices.
func (n *survey) wanted(holdings []adapters.Holding) (list []*candidate, err error) {
	for _, name := range n.options.Indices {
		c := &candidate{Match: name}
		var aliased []adapters.Holding
		for _, h := range holdings {
			switch {
			case rule.Matches(name, h.Name):
				c.members = append(c.members, h)
			case slices.Contains(h.Aliases, name):
				aliased = append(aliased, h)
			}
		}
		more := groupsOf(aliased)
		switch {
		case len(c.members) > 0:
			more = []*candidate{c}
		case len(aliased) == 0:
			return nil, fmt.Errorf("--index: the engine has no %s: it has %s", name, few(namesOf(holdings)))
		}
		for _, c := range more {
			if slices.ContainsFunc(list, func(other *candidate) bool { return other.Match == c.Match }) {
				continue
			}
			open := slices.DeleteFunc(slices.Clone(c.members), func(h adapters.Holding) bool { return h.Shut })
			if len(open) > 0 {
				c.members = open
			} else {
				c.why = c.members[0].Why
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// describe reads a candidate's fields and the number of its documents.
func (n *survey) describe(ctx context.Context, c *candidate) error {
	c.Documents = -1
	fields, err := n.store.Fields(ctx, c.names())
	if err != nil {
		return err
	}
	if c.fields = fields; len(candidateFields(fields)) == 0 {
		return errNoText
	}
	if documents, err := n.store.Count(ctx, namesOf(c.members)); err == nil { // otherwise it stays unknown
		c.Documents = documents
	}
	return nil
}

// split splits candidates whose members have similar names and no common field with texts.
func (n *survey) split(list []*candidate) (out []*candidate) {
	for _, c := range list {
		if len(c.members) < 2 || c.members[0].Stream || len(n.options.Indices) > 0 || c.hasCommonField() {
			out = append(out, c)
			continue
		}
		for _, m := range c.members {
			alone := &candidate{Match: m.Name, members: []adapters.Holding{m}, Documents: -1}
			for _, f := range c.fields {
				if !slices.Contains(f.Lacking, m.Name) {
					alone.fields = append(alone.fields, f)
				}
			}
			out = append(out, alone)
		}
	}
	return out
}

// hasCommonField reports whether all members that have a field with texts have one in common.
func (c *candidate) hasCommonField() bool {
	having, some := map[string]int{}, map[string]bool{} // how many members have a field, and which members have any
	for _, f := range candidateFields(c.fields) {
		for _, name := range c.names() {
			if !slices.Contains(f.Lacking, name) {
				having[f.Name]++
				some[name] = true
			}
		}
	}
	return len(some) == 0 || slices.Contains(slices.Collect(maps.Values(having)), len(some))
}

// choose lets the user choose among several candidates if there is a terminal, and sorts them into the order that rules need.
func (n *survey) choose(ctx context.Context) error {
	n.candidates = ordered(n.candidates)
	if !n.talk.interactive() || n.options.Serve || len(n.options.Indices) > 0 || len(n.candidates) < 2 {
		return nil
	}
	n.talk.say("%s at %s has texts in:", n.product(), n.engine.URLs[0])
	n.talk.say("%s", strings.TrimSuffix(listed(n.candidates, true), "\n"))
	for {
		answer, err := n.talk.ask(ctx, "Which of them? Numbers with commas between, or nothing for all: ")
		if err != nil {
			return err
		}
		chosen, err := parseChoice(answer, len(n.candidates))
		if err != nil {
			n.talk.say("%v", err)
			continue
		}
		var kept []*candidate
		for i, c := range n.candidates {
			if chosen[i] {
				kept = append(kept, c)
				continue
			}
			c.why = "not chosen"
			n.skipped = append(n.skipped, c)
		}
		n.candidates = kept
		return nil
	}
}

// ordered returns candidates in an order in which each rule can match: the first match wins, so a pattern comes after every name that it
// matches.
func ordered(list []*candidate) (out []*candidate) {
	left := slices.Clone(list)
	for len(left) > 0 {
		next := max(0, slices.IndexFunc(left, func(c *candidate) bool {
			return !slices.ContainsFunc(left, func(other *candidate) bool {
				return c != other && rule.Matches(c.Match, other.Match)
			})
		}))
		out = append(out, left[next])
		left = slices.Delete(left, next, next+1)
	}
	return out
}

// parseChoice returns which of n candidates an answer names: all of them if it is empty.
func parseChoice(answer string, n int) ([]bool, error) {
	words := strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' })
	chosen := slices.Repeat([]bool{len(words) == 0}, n)
	for _, word := range words {
		i, err := strconv.Atoi(word)
		if err != nil || i < 1 || i > n {
			return nil, fmt.Errorf("%q is none of them: write numbers from 1 to %d, such as 1,2", word, n)
		}
		chosen[i-1] = true
	}
	return chosen, nil
}

// errNoText means that a candidate has nothing to compare.
var errNoText = errors.New("no field holds a text")

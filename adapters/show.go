package adapters

import (
	"cmp"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// Page returns what is needed to find the client's page of a search over the scope, under the controls and the engine's limit.
func (p Plan) Page(from, size int, scope Scope, controls Controls, limit int) rerank.Page {
	return rerank.Page{
		From: from, Size: size, Window: p.Window(scope, controls), Limit: limit, Rate: scope.Rate, Margin: scope.Margin,
		Whole:      scope.Chooses || scope.collapsed(controls),
		Transitive: scope.Transitive,
		Sources:    scope.expand(controls) == rule.ExpandSource,
		Deadline:   p.Deadline,
	}
}

// Window returns how many ranks of a search over the scope are collapsed over.
func (p Plan) Window(scope Scope, controls Controls) int {
	return min(cmp.Or(controls.Window, scope.Window), p.MaxWindow)
}

// Show is what an answer is to show beside its hits.
type Show struct {
	Expand  rule.Expand
	Explain bool
	// Collapsed says that the total is that of the collapsed list.
	Collapsed bool
	// DryRun says that nothing is folded.
	DryRun bool
}

// Show returns what the answer to a search over the scope is to show, under the controls.
func (s Scope) Show(controls Controls) Show {
	show := Show{Expand: s.expand(controls), Collapsed: s.collapsed(controls), DryRun: controls.DryRun || s.DryRun && !controls.On}
	if controls.Explain != nil {
		show.Explain = *controls.Explain
	}
	return show
}

func (s Scope) collapsed(controls Controls) bool {
	if controls.Collapsed != nil {
		return *controls.Collapsed
	}
	return s.CollapsedTotals
}

func (s Scope) expand(controls Controls) rule.Expand {
	expand := s.Expand
	if controls.Expand != nil {
		expand = *controls.Expand
	}
	if controls.Explain != nil && *controls.Explain {
		expand = max(expand, rule.ExpandIDs)
	}
	return expand
}

// NativeUnder returns the rule by whose clusters the engine may collapse a search over the scope, nil where what the controls ask
// for takes query time. It is nil too where such a search fell back of late: fell then says why.
func (s Scope) NativeUnder(c Controls) (r *rule.Rule, fell Reason) {
	r, show := s.Native, s.Show(c)
	switch {
	case r == nil, c.Window > 0, c.Keep > 1, c.Threshold > 0 && c.Threshold != r.Profile.Threshold,
		show.Expand > rule.ExpandOff, show.Explain, show.DryRun:
		return nil, ""
	case s.Fell != "":
		return nil, s.Fell
	}
	return r, ""
}

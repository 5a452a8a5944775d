package adapters

import (
	"cmp"
	"slices"

	"github.com/neardup/sidecar/internal/rule"
)

// Add adds a rule that matches an index of the target.
func (s *Scope) Add(r *rule.Rule) {
	s.DryRun = r.DryRun && (s.DryRun || !s.Configured)
	s.Configured, s.Window, s.VectorWindow = true, max(s.Window, r.Window), max(s.VectorWindow, r.VectorWindow)
	s.Chooses, s.Transitive = s.Chooses || !r.Choice.Ranked(), s.Transitive || r.Transitive
	s.CollapsedTotals, s.CountsGroups = s.CollapsedTotals || r.CollapsedTotals, s.CountsGroups || r.CountsGroups
	s.Expand = max(s.Expand, r.Expand)
	s.Group, s.Clusters = s.Group || r.Group, s.Clusters || r.Clusters
	for _, d := range r.Deciding() {
		if !slices.Contains(s.Deciding, d) {
			s.Deciding = append(s.Deciding, d)
		}
	}
	s.Vectors = s.Vectors || r.Compute && (r.Vectors() || r.Vector != "")
	for _, field := range r.Fields {
		if r.Compute && !slices.Contains(s.Texts, field) {
			s.Texts = append(s.Texts, field)
		}
	}
}

// Under returns the scope with the controls of a search applied. The window is at most maxWindow.
func (s Scope) Under(c Controls, maxWindow int) Scope {
	s.Window = min(cmp.Or(c.Window, s.Window), maxWindow)
	s.DryRun = c.DryRun || s.DryRun && !c.On
	s.Threshold, s.Keep, s.Explains = c.Threshold, c.Keep, c.Explain != nil && *c.Explain
	if c.Collapsed != nil {
		s.CollapsedTotals = *c.Collapsed
	}
	if c.Group != nil {
		s.Group = *c.Group
	}
	if c.CountsGroups != nil {
		s.CountsGroups = *c.CountsGroups
	}
	s.CountsGroups = s.CountsGroups && !s.DryRun
	if c.Expand != nil {
		s.Expand = *c.Expand
	}
	if s.Explains {
		s.Expand = max(s.Expand, rule.ExpandIDs)
	}
	atQueryTime := s.Expand > rule.ExpandOff || s.DryRun || c.Window > 0 || c.Keep > 1
	if s.Native == nil || atQueryTime || c.Threshold > 0 && c.Threshold != s.Native.Profile.Threshold {
		s.Native, s.Fell = nil, ""
	}
	return s
}

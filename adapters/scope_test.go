package adapters

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestScopeOfSeveralRules(t *testing.T) {
	plain := &Rule{Window: 10, DryRun: true}
	chosen := &Rule{Window: 5, VectorWindow: 7, Choice: Choice{By: ByNewest}, DateField: "day", CollapsedTotals: true, Expand: ExpandIDs}
	joined := &Rule{Window: 3, Transitive: true, DateField: "day", Choice: Choice{By: ByOldest}}
	var s Scope
	for i, rule := range []*Rule{plain, chosen, joined} {
		s.Add(rule)
		if s.DryRun != (i == 0) {
			t.Errorf("after %d rules dry run is %t", i+1, s.DryRun)
		}
	}
	want := Scope{
		Configured: true, Window: 10, VectorWindow: 7, Chooses: true, Transitive: true, CollapsedTotals: true,
		Expand: ExpandIDs, Deciding: []Deciding{{"day", true}},
	}
	expect.Same(t, want, s, "")
}

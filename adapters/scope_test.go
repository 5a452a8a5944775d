package adapters

import (
	"reflect"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

func TestScopeOfSeveralRules(t *testing.T) {
	plain := &rule.Rule{Window: 10, DryRun: true}
	chosen := &rule.Rule{Window: 5, VectorWindow: 7, Choice: rule.Choice{By: rule.ByNewest}, DateField: "day", CollapsedTotals: true, Expand: rule.ExpandIDs, Group: true}
	joined := &rule.Rule{Window: 3, Transitive: true, Clusters: true, DateField: "day", Choice: rule.Choice{By: rule.ByOldest}}
	var s Scope
	for i, rule := range []*rule.Rule{plain, chosen, joined} {
		s.Add(rule)
		expect.Same(t, i == 0, s.DryRun, "dry run after %d rules", i+1)
	}
	want := Scope{
		Configured: true, Window: 10, VectorWindow: 7, Chooses: true, Transitive: true, CollapsedTotals: true,
		Expand: rule.ExpandIDs, Group: true, Clusters: true, Deciding: []rule.Deciding{{Field: "day", Date: true}},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

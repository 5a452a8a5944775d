package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/rule"
)

// TestVerifyTellsWhatIsBesideTheSketch, as far as the rule stores it.
func TestVerifyTellsWhatIsBesideTheSketch(t *testing.T) {
	found := Findings{
		Bands: FieldFindings{Absent: 1, Stale: 2}, Cluster: FieldFindings{Absent: 3, Foreign: 4, Stale: 5}, Leftover: 6, Examples: []string{},
	}
	all := VerifyReport{Findings: found, Bands: &found.Bands, Cluster: &found.Cluster}
	for rule, want := range map[*rule.Rule]VerifyReport{{Bands: 32, Clusters: true}: all, {}: {Findings: found}} {
		if got := found.In(Job{Rule: rule}, false); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, found.In(Job{Rule: rule}, false)))
		}
	}
}

package jobs

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestVerifyTellsWhatIsBesideTheSketch, as far as the rule stores it.
func TestVerifyTellsWhatIsBesideTheSketch(t *testing.T) {
	found := Findings{
		Bands: FieldFindings{Absent: 1, Stale: 2}, Cluster: FieldFindings{Absent: 3, Foreign: 4, Stale: 5}, Leftover: 6, Examples: []string{},
	}
	all := VerifyReport{Findings: found, Bands: &found.Bands, Cluster: &found.Cluster}
	for rule, want := range map[*rule.Rule]VerifyReport{{Bands: 32, Clusters: true}: all, {}: {Findings: found}} {
		expect.Same(t, want, found.In(Job{Rule: rule}, false), "")
	}
}

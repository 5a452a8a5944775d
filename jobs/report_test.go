package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
)

// TestVerifyTellsWhatIsBesideTheSketch, as far as the rule stores it.
func TestVerifyTellsWhatIsBesideTheSketch(t *testing.T) {
	found := Findings{BandsAbsent: 1, BandsStale: 2, ClusterAbsent: 3, ClusterForeign: 4, ClusterStale: 5, Leftover: 6}
	all := VerifyReport{Bands: &FieldReport{Absent: 1, Stale: 2}, Cluster: &FieldReport{Absent: 3, Foreign: 4, Stale: 5}, Leftover: 6}
	for rule, want := range map[*adapters.Rule]VerifyReport{{Bands: 32, Clusters: true}: all, {}: {Leftover: 6}} {
		want.Examples = []string{}
		if got := found.In("", "", rule, false); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, found.In("", "", rule, false)))
		}
	}
}

package rule

import (
	"fmt"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// TestStoredInFormat1: a sketch that an earlier build stored counts as absent, and one is computed where the rule says so.
func TestStoredInFormat1(t *testing.T) {
	const stored = "AQjcD0D+AABFcUutXuULfeUEE4LrtIsct+Yu6orrmspQ3D2pLEDvfjNtwevnZqvWWfcnYTKsANCzKM1DwbRk0v2EHpGVyq+34uCkybb08dLuIqfA9E1CxsaR8bRl6ctHwBqDiBixDbILPEGW2cJCCUaD1OUzhxu2tYKkCr6kYTLVLiBG6aYJ6Tt0p+fSo5CwG5A="
	document := fmt.Sprintf(`{"title":"the ferry is back in town","neardup_sketch":%q}`, stored)
	r := Rule{Match: "a", Fields: []string{"title"}, Window: 10, Sketcher: expect.Value(sketch.New(sketch.DefaultScheme()))(t)}
	for _, compute := range []bool{false, true} {
		r.Compute = compute
		j := NewJudge(Rules{&r}, 0, 0)
		hit := j.Hit(Seen{Index: "a", ID: "1", Stored: []byte(stored), Shown: shown{document, nil}})
		if (hit.Sketch != nil) != compute || j.Sketches() != (Sketches{Foreign: 1}) || j.Lacking != 1 {
			t.Errorf("compute: %v: %+v, %+v", compute, hit.Sketch, j.Sketches())
		}
	}
	if _, of := r.SketchOf([]byte(document)); of != nil || !HasSketch([]byte(document)) {
		t.Errorf("it is read as %+v", of)
	}
}

package calibrate

import (
	"fmt"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/jobs/ask"
	"github.com/neardup/sidecar/sketch"
)

// TestGather finds pairs of every agreement that the threshold decides, and none of the same text or too short; what was answered is among them even if
// the reading did not reach it.
func TestGather(t *testing.T) {
	m, exact := planted(t, sketch.DefaultScheme(), 100, 100)
	m.rule.Profile.MinWords = 50
	for i := range 2 {
		m.add(t, fmt.Sprint("copy-", i), words("c", 60))
		m.add(t, fmt.Sprint("short-", i), words("s", 30)+fmt.Sprint("end", i))
	}
	m.put("valued", `{"text": "<p>one <b>two</b></p>", "city": "Rome", "at": {"year": 2024}, "neardup_sketch": "x", "long": "`+words("l", 40)+`"}`)
	for _, documents := range []int{DefaultOptions.Documents, 50} {
		o := DefaultOptions
		o.Documents, o.Sample = documents, 50
		answered := []ask.Answer{{A: "b-90", B: "a-90"}, {A: "a-91", B: "gone"}, {A: "copy-0", B: "copy-1"}}
		c := expect.Value(Gather(t.Context(), m, "news", m.rule, o, answered))(t)
		counted := 0.0
		for _, n := range c.Counts {
			counted += n
		}
		found := map[string]ask.Pair{}
		for _, p := range c.Pairs {
			found[min(p.A, p.B)] = p
			if p.A[1:] != p.B[1:] || p.A[0] == 'c' || p.A[0] == 's' || p.Groups[0] != p.Groups[1] && p.Agreement >= akin {
				t.Errorf("asked would be about %+v", p)
			}
		}
		if p := found["a-90"]; p.Agreement < exact[90]-0.2 || p.Shingles == 0 {
			t.Errorf("what was answered is %+v", p)
		}
		if c.Whole && (len(found) < 85 || len(found) != int(counted)) {
			t.Errorf("%d pairs found of 100, %v counted", len(found), counted)
		}
		shown := expect.Value(c.Show(t.Context(), "valued", "gone"))(t)
		same, _ := m.rule.Sketch([]string{"one two"})
		expect.Same(t, map[string]Shown{"valued": {Text: "one two", Values: ask.Values{"city": "Rome", "at.year": "2024"}, Fingerprint: same.Fingerprint}}, shown, "")
	}
}

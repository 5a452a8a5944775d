package calibrate

import (
	"fmt"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/quality"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// labelled is a labelled set as an index, with the agreement of each judged pair.
type labelled struct {
	*memory
	pairs []judged
}

type judged struct {
	agreement      float64
	same, positive bool
}

func newLabelled(t *testing.T, s *quality.Set) *labelled {
	t.Helper()
	l := &labelled{memory: newMemory(t, sketch.DefaultScheme())}
	sketches := make([]sketch.Sketch, len(s.Docs))
	for i, d := range s.Docs {
		l.add(t, fmt.Sprint(i), d.Text)
		sketches[i], _ = l.rule.Sketcher.Sketch(d.Text)
	}
	s.Judged(func(a, b int, positive bool) {
		agreement, _ := sketches[a].Agreement(&sketches[b])
		if min(sketches[a].Shingles, sketches[b].Shingles) < uint32(l.rule.Profile.MinShingles) {
			agreement = 0
		}
		l.pairs = append(l.pairs, judged{agreement, sketches[a].SameText(&sketches[b]), positive})
	})
	return l
}

// f1 is that of a threshold on the judged pairs.
func (l *labelled) f1(threshold float64) float64 {
	right, said, positive := 0, 0, 0
	for _, p := range l.pairs {
		near := p.same || p.agreement >= threshold
		if near {
			said++
		}
		if p.positive {
			positive++
		}
		if near && p.positive {
			right++
		}
	}
	if said+positive == 0 {
		return 1
	}
	return 2 * float64(right) / float64(said+positive)
}

// TestSuggestionOnLabelledDocuments holds the suggestion to labels that it has not seen: the sample corpus, whose
// near-duplicates are known.
func TestSuggestionOnLabelledDocuments(t *testing.T) {
	set := expect.Value(quality.Own())(t)
	l, best := newLabelled(t, set), 0.0
	for threshold := 5; threshold <= 100; threshold++ {
		best = max(best, l.f1(float64(threshold)/100))
	}
	l.rule.Profile.Threshold = rerank.Default().Threshold
	s := run(t, l.memory, nil).Suggestion
	if suggested := l.f1(s.Threshold); suggested < best-0.005 {
		t.Errorf("F1 %.3f at the suggested threshold of %.2f, %.3f at the best", suggested, s.Threshold, best)
	}
}

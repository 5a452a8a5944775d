package calibrate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/neardup/sidecar/internal/quality"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// labelled is a labelled set as an index, with the agreement of each judged pair.
type labelled struct {
	*memory
	name  string
	pairs []judged
}

type judged struct {
	agreement      float64
	same, positive bool
}

func newLabelled(t *testing.T, s *quality.Set) *labelled {
	t.Helper()
	l := &labelled{memory: newMemory(t, sketch.DefaultScheme()), name: s.Name}
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

func (l *labelled) best() (f1, threshold float64) {
	for t := 5; t <= 100; t++ {
		if one := l.f1(float64(t) / 100); one > f1 {
			f1, threshold = one, float64(t)/100
		}
	}
	return f1, threshold
}

// start are the thresholds from which a suggestion is asked for: those of the presets.
var start = []float64{rerank.Thorough.Threshold, rerank.Default.Threshold, rerank.Safe.Threshold}

// judge reports the suggestions for a set, and returns the F1 of the one that starts from the default.
func (l *labelled) judge(t *testing.T) (suggested, best float64) {
	t.Helper()
	best, at := l.best()
	for _, threshold := range start {
		l.rule.Profile.Threshold = threshold
		r := run(t, l.memory, nil)
		s, e := r.Suggestion, r.Error
		t.Logf("%-24s from %.2f (F1 %.3f): %.2f (F1 %.3f), best %.2f (F1 %.3f), %s: contested %d, now %d, on the sides %d and "+
			"%d, of %d",
			l.name, threshold, l.f1(threshold), s.Threshold, l.f1(s.Threshold), at, best, s.Kind, s.Contested, s.Present, s.Below,
			s.Above, s.Partnered)
		t.Logf("    an error of %.4f over %d pairs, and the sketches tell %.4f", e.Measured, e.Pairs, e.Promised)
		if threshold == rerank.Default.Threshold {
			suggested = l.f1(s.Threshold)
		}
	}
	return suggested, best
}

// TestSuggestionOnLabelledDocuments holds the suggestion to labels that it has not seen: the sample corpus, whose
// near-duplicates are known.
func TestSuggestionOnLabelledDocuments(t *testing.T) {
	set, err := quality.Own()
	if err != nil {
		t.Fatal(err)
	}
	suggested, best := newLabelled(t, set).judge(t)
	if suggested < best-0.005 {
		t.Errorf("F1 %.3f at the suggested threshold, %.3f at the best", suggested, best)
	}
}

// TestSuggestionOnPractice measures it on labelled sets from elsewhere, in the folder that NEARDUP_PRACTICE names.
func TestSuggestionOnPractice(t *testing.T) {
	folder := os.Getenv("NEARDUP_PRACTICE")
	if folder == "" {
		t.Skip("NEARDUP_PRACTICE names no folder")
	}
	folders, err := filepath.Glob(filepath.Join(folder, "*", "meta.json"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no labelled set in %s", folder)
	}
	suggested, best := 0.0, 0.0
	for _, f := range folders {
		set, err := quality.Load(filepath.Dir(f))
		if err != nil {
			t.Fatal(err)
		}
		s, b := newLabelled(t, set).judge(t)
		suggested, best = suggested+s/float64(len(folders)), best+b/float64(len(folders))
	}
	t.Logf("mean F1 %.3f at the suggested thresholds, %.3f at the best of each set", suggested, best)
	if suggested < best-0.05 {
		t.Errorf("mean F1 %.3f at the suggested thresholds, %.3f at the best of each set", suggested, best)
	}
}

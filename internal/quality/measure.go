package quality

import (
	"fmt"
	"io"
	"slices"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

const ownName = "own"

// Own returns the project's own set, the sample corpus of the walk-through: documents of one group are near-duplicates.
func Own() (*Set, error) {
	documents, err := corpus.Load()
	if err != nil {
		return nil, err
	}
	s := &Set{Name: ownName}
	for _, d := range documents {
		s.Docs = append(s.Docs, Document{ID: d.ID, Text: d.Title + "\n" + d.Body})
		s.clusters = append(s.clusters, member{cluster: d.Group, subset: "all"})
	}
	return s, nil
}

// Score is what one way to tell near-duplicates reaches on the judged pairs of a set.
type Score struct{ right, wrong, missed int }

func (s *Score) add(said, positive bool) {
	switch {
	case said && positive:
		s.right++
	case said:
		s.wrong++
	case positive:
		s.missed++
	}
}

// Precision is the share of pairs said to be near-duplicates that are, 1 where none is said to be.
func (s Score) Precision() float64 { return share(s.right, s.right+s.wrong) }

// Recall is the share of near-duplicates that were found, 1 where there are none.
func (s Score) Recall() float64 { return share(s.right, s.right+s.missed) }

// F1 is the harmonic mean of precision and recall, 0 where nothing right was found.
func (s Score) F1() float64 { return share(2*s.right, 2*s.right+s.wrong+s.missed) }

func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

func (s Score) String() string {
	return fmt.Sprintf("%.3f (%.3f / %.3f)", s.F1(), s.Precision(), s.Recall())
}

// steps are the thresholds of the curve, in hundredths.
var steps = func() (list []int) {
	for t := 5; t <= 100; t++ {
		list = append(list, t)
	}
	return list
}()

// Result is what was measured on a set.
type Result struct {
	set                 *Set
	positive, negative  int
	presets             map[string]*Score
	agreement, exact    curve
	lecture, characters curve // exact resemblance of 4-word shingles and of 5-character shingles
}

// curve is a score at each threshold.
type curve []Score

func (c curve) add(value float64, positive bool) {
	for i, t := range steps {
		c[i].add(value >= float64(t)/100, positive)
	}
}

func (c curve) best() (Score, float64) {
	at := 0
	for i := range c {
		if c[i].F1() > c[at].F1() {
			at = i
		}
	}
	return c[at], float64(steps[at]) / 100
}

// sets holds the exact shingle sets of a set's documents under one scheme.
func sets(s *Set, scheme sketch.Scheme) ([][]uint64, error) {
	sketcher, err := sketch.New(scheme)
	if err != nil {
		return nil, err
	}
	list := make([][]uint64, len(s.Docs))
	for i, d := range s.Docs {
		list[i] = sketcher.Shingles(d.Text)
	}
	return list, nil
}

// referenceSets returns the sets of four-word and of five-character shingles of each document, whose exact resemblance others are held against.
func referenceSets(s *Set) (words, characters [][]uint64, err error) {
	if words, err = sets(s, sketch.Scheme{Features: sketch.WordShingles, Words: 4}); err != nil {
		return nil, nil, err
	}
	characters, err = sets(s, sketch.Scheme{Features: sketch.CharacterShingles, Characters: 5})
	return words, characters, err
}

// Measure judges every pair of the set in every way.
func Measure(s *Set) (*Result, error) {
	scheme := sketch.DefaultScheme()
	exact, err := sets(s, scheme)
	if err != nil {
		return nil, err
	}
	lecture, characters, err := referenceSets(s)
	if err != nil {
		return nil, err
	}
	sketches, err := sketches(s, scheme)
	if err != nil {
		return nil, err
	}
	r := &Result{set: s, presets: map[string]*Score{}}
	for _, c := range []*curve{&r.agreement, &r.exact, &r.lecture, &r.characters} {
		*c = make(curve, len(steps))
	}
	for name := range rerank.Presets() {
		r.presets[name] = new(Score)
	}
	s.Judged(func(a, b int, positive bool) {
		if positive {
			r.positive++
		} else {
			r.negative++
		}
		agreement, _ := sketches[a].Agreement(&sketches[b])
		r.agreement.add(agreement, positive)
		r.exact.add(sketch.Resemblance(exact[a], exact[b]), positive)
		r.lecture.add(sketch.Resemblance(lecture[a], lecture[b]), positive)
		r.characters.add(sketch.Resemblance(characters[a], characters[b]), positive)
		for name, profile := range rerank.Presets() {
			near, _ := profile.NearDuplicates(&sketches[a], &sketches[b])
			r.presets[name].add(near, positive)
		}
	})
	return r, nil
}

var names = []string{"default", "safe", "thorough"}

// Report writes what was measured on a set, in the form of the golden files.
func (r *Result) Report(w io.Writer) {
	fmt.Fprintf(w, "%s: %d documents, %d pairs near-duplicate, %d not\nF1 (precision / recall)\n", r.set.Name, len(r.set.Docs), r.positive, r.negative)
	for _, name := range names {
		fmt.Fprintf(w, "  %-9s %s\n", name, r.presets[name])
	}
	for _, c := range []struct {
		name  string
		curve curve
	}{
		{"agreement", r.agreement}, {"exact resemblance, same shingles", r.exact},
		{"exact resemblance, 4 words", r.lecture}, {"exact resemblance, 5 characters", r.characters},
	} {
		best, at := c.curve.best()
		fmt.Fprintf(w, "  best threshold of %-33s %.2f: %s\n", c.name+",", at, best)
	}
	fmt.Fprintln(w, "  agreement along the threshold")
	for t := 30; t <= 95; t += 5 {
		fmt.Fprintf(w, "    %.2f  %s\n", float64(t)/100, r.agreement[slices.Index(steps, t)])
	}
}

// Means writes the means over several sets.
func Means(w io.Writer, results []*Result) {
	mean := func(of func(*Result) float64) (sum float64) {
		for _, r := range results {
			sum += of(r) / float64(len(results))
		}
		return sum
	}
	fmt.Fprintf(w, "means over %d sets of F1\n", len(results))
	for _, name := range names {
		fmt.Fprintf(w, "  %-9s %.3f\n", name, mean(func(r *Result) float64 { return r.presets[name].F1() }))
	}
	best := func(c func(*Result) curve) float64 {
		return mean(func(r *Result) float64 { s, _ := c(r).best(); return s.F1() })
	}
	fmt.Fprintf(w, "  exact resemblance of 4 words at the best threshold of each set      %.3f\n", best(func(r *Result) curve { return r.lecture }))
	fmt.Fprintf(w, "  exact resemblance of 5 characters at the best threshold of each set %.3f\n", best(func(r *Result) curve { return r.characters }))
}

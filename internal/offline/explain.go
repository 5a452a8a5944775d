package offline

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
	"github.com/neardup/sidecar/sketch/content"
)

// side is one of the two texts.
type side struct {
	Name string `json:"name"`
	// HTML says that its text was extracted from HTML.
	HTML     bool `json:"html"`
	Words    int  `json:"words"`
	Shingles int  `json:"shingles"`
	// Sketch is empty for a text without a word.
	Sketch string `json:"sketch"`

	words  []string
	set    []uint64
	sketch *sketch.Sketch
	text   *sketch.Text
}

// estimated is a value as estimated from the sketches, and the exact one.
type estimated struct {
	Estimate float64 `json:"estimate"`
	Error    float64 `json:"error"`
	// Exact is nil for ready values, which are not sets.
	Exact *float64 `json:"exact,omitempty"`
}

// verdict says whether the two are near-duplicates by one profile.
type verdict struct {
	Profile       string `json:"profile"`
	NearDuplicate bool   `json:"near_duplicate"`
	Why           string `json:"why"`
}

// Explanation is the comparison of two texts.
type Explanation struct {
	Scheme      string     `json:"scheme"`
	A           *side      `json:"a"`
	B           *side      `json:"b"`
	SameText    bool       `json:"same_text"`
	Resemblance *estimated `json:"resemblance"`
	AInB        *estimated `json:"containment_a_in_b"`
	BInA        *estimated `json:"containment_b_in_a"`
	Coverage    float64    `json:"coverage"`
	Verdicts    []verdict  `json:"verdicts"`
	// Conditions are those of the rule, which need more than the texts.
	Conditions []string            `json:"rule_asks_too,omitempty"`
	Shared     []documents.Passage `json:"shared"`
	Differing  []documents.Passage `json:"differing"`
	scheme     sketch.Scheme
}

// Explain prints why two texts are near-duplicates or not.
func (g *Comparer) Explain(ctx context.Context, f *Comparison, fileA, fileB string) error {
	e := Explanation{Scheme: fmt.Sprintf("%08x", g.Sketcher.SchemeID()), scheme: g.Sketcher.Scheme()}
	var err error
	if e.A, err = g.side(ctx, fileA); err != nil {
		return err
	}
	if e.B, err = g.side(ctx, fileB); err != nil {
		return err
	}
	e.measure()
	for _, name := range slices.Sorted(maps.Keys(rerank.Presets())) {
		e.judge(name, rerank.Presets()[name])
	}
	_, judged := rerank.Presets()[f.Preset]
	switch {
	case f.Threshold > 0:
		e.judge("--threshold", f.profile(g))
	case f.Preset != "" && !judged:
		e.judge(f.Preset, f.profile(g))
	case g.Index != nil && f.Preset == "":
		e.judge(g.Index.Match, f.profile(g))
		e.Conditions = g.Index.Conditions()
	}
	switch e.scheme.Features {
	case sketch.Tags:
		e.Shared, e.Differing = documents.Passages(e.A.words, e.B.words, 1)
	case sketch.Value64, sketch.Vectors: // they have no words
	default:
		e.Shared, e.Differing = documents.Passages(e.A.words, e.B.words, e.scheme.Words)
	}
	e.Shared, e.Differing = append([]documents.Passage{}, e.Shared...), append([]documents.Passage{}, e.Differing...) // [] in JSON, not null
	if f.JSON {
		return terminal.WriteJSON(g.Out, &e)
	}
	return explanationTemplate.Execute(g.Out, &e)
}

// side reads one file: one text, or a tag in each line.
func (g *Comparer) side(ctx context.Context, file string) (*side, error) {
	src, name, err := Open(file, g.In)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	data, err := io.ReadAll(terminal.UntilDone(ctx, src))
	if err != nil {
		return nil, err
	}
	s, scheme, texts := side{Name: name}, g.Sketcher.Scheme(), []string{string(data)}
	if scheme.Features == sketch.Tags {
		texts = slices.DeleteFunc(strings.Split(texts[0], "\n"), func(tag string) bool { return strings.TrimSpace(tag) == "" })
		for _, tag := range texts {
			s.words = append(s.words, strings.ToLower(strings.TrimSpace(tag)))
		}
	} else {
		s.HTML = scheme.Content != sketch.ContentRaw && content.IsHTML(texts[0])
		s.words = sketch.Words(g.Sketcher.Content(texts[0]))
	}
	s.set, s.text = g.Sketcher.Shingles(texts...), g.Sketcher.Text(texts...)
	s.Words, s.Shingles = len(s.words), len(s.set)
	if k, ok := g.Sketcher.Sketch(texts...); ok {
		s.sketch, s.Sketch = &k, k.String()
	}
	return &s, nil
}

// measure fills in the estimated and the exact values.
func (e *Explanation) measure() {
	a, b := e.A, e.B
	if a.sketch == nil || b.sketch == nil {
		return
	}
	e.SameText = a.sketch.SameText(b.sketch)
	resemblance, coverage := a.text.Compare(b.text)
	e.Coverage = coverage
	sets := e.scheme.Features.Sets()
	value := func(estimate, deviation, exact float64) *estimated {
		v := &estimated{Estimate: max(0, estimate), Error: deviation}
		if sets {
			v.Exact = &exact
		}
		return v
	}
	if agreement, ok := a.sketch.Agreement(b.sketch); ok {
		e.Resemblance = value(agreement, a.sketch.StandardError(b.sketch), resemblance)
	}
	if c, ok := a.sketch.Containment(b.sketch); ok {
		e.AInB = value(c.Value, c.Error, sketch.Containment(a.set, b.set))
	}
	if c, ok := b.sketch.Containment(a.sketch); ok {
		e.BInA = value(c.Value, c.Error, sketch.Containment(b.set, a.set))
	}
}

// judge adds the verdict of a profile, and which of its rules decides.
func (e *Explanation) judge(name string, p rerank.Profile) {
	v := verdict{Profile: name}
	a, b := e.A.sketch, e.B.sketch
	if a == nil || b == nil {
		v.Why = "a text without a word is a near-duplicate of none"
		e.Verdicts = append(e.Verdicts, v)
		return
	}
	agreement, reason := p.Judge(a, b)
	v.NearDuplicate, v.Why = reason.Near(), p.Why(a, b, agreement, reason)
	if reason == rerank.TooShort || reason == rerank.OtherNumbers {
		if numbers := rule.NumbersApart(e.A.words, e.B.words, "in A", "in B"); numbers != "" && e.HasWords() {
			v.Why += "; " + numbers
		}
	}
	e.Verdicts = append(e.Verdicts, v)
}

//go:embed explain.txt
var explanationText string

var explanationTemplate = template.Must(template.New("explanation").Funcs(template.FuncMap{
	"count": terminal.Count,
	"upper": strings.ToUpper,
	"four":  func(exact *float64) string { return fmt.Sprintf("%.4f", *exact) },
	"word": func(near bool) string {
		if near {
			return "near-duplicates"
		}
		return "different"
	},
}).Parse(explanationText))

// HasWords reports whether the two are texts: tags and ready values have no runs of words.
func (e *Explanation) HasWords() bool {
	return e.scheme.Features != sketch.Tags && e.scheme.Features.Sets()
}

package offline

import (
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Comparison says how documents are compared.
type Comparison struct {
	// Docs and pairs are files of documents and of pairs of their ids, - for standard input.
	Docs, Pairs string
	// Preset judges in place of the rule's, and threshold in place of the preset's; empty and 0 for those.
	Preset    string
	Threshold float64
	// NoTexts goes by the sketches alone, as a search does; json prints JSON.
	NoTexts, JSON bool
}

// doubt is how far an agreement may lie from a threshold of one's own for the texts to decide: at 128 positions more than two
// standard errors.
const doubt = 0.1

// profile returns what is judged by: the rule's profile, if there is one, less what the flags say otherwise.
func (f *Comparison) profile(g *Comparer) rerank.Profile {
	i := config.DefaultIndex()
	if g.Index != nil {
		i = *g.Index
	}
	if f.Preset != "" {
		i = config.PresetOf(f.Preset).Start(g.section)
	}
	if f.Threshold > 0 {
		i.Threshold = f.Threshold
	}
	p, known := rerank.Presets()[i.Preset]
	if !known {
		p = rerank.Default()
	}
	p.MinShingles = i.MinShingles
	switch {
	case i.Measure == string(rerank.Containment): // the second look is at the resemblance
		p.Measure, p.Threshold, p.Check = rerank.Containment, i.Threshold, rerank.Check{}
	case i.Threshold != p.Threshold:
		p.Threshold, p.Check = i.Threshold, rerank.Check{From: i.Threshold - doubt, To: i.Threshold + doubt}
	}
	return f.checked(g, p)
}

// checked returns the profile without its second look at doubtful pairs where there is no text to look at.
func (f *Comparison) checked(g *Comparer, p rerank.Profile) rerank.Profile {
	if f.NoTexts || g.Sketcher.Scheme().Features == sketch.Value64 {
		p.Check = rerank.Check{}
	}
	return p
}

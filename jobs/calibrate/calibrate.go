package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Options say how much is read and compared.
type Options struct {
	// Sample is how many documents are compared with one another at random, and how many are looked up where bands are stored.
	Sample int
	// Documents is how many are read at most to find candidates among.
	Documents int
	// Pairs is how many pairs of each level are compared by their texts, Examples how many of these are shown.
	Pairs, Examples int
	// Seed decides what is chosen wherever something is.
	Seed uint64
	// Progress, if set, gets how far the reading is.
	Progress Progress
}

// Progress gets how many documents of how many were read.
type Progress interface{ Read(documents, of int) }

// DefaultOptions are enough for an index of 100,000 documents in some seconds.
var DefaultOptions = Options{Sample: 2000, Documents: 100_000, Pairs: 40, Examples: 3, Seed: 1}

// The ways in which candidates are found.
const (
	// ByAll compares every pair of the documents read.
	ByAll = "all pairs"
	// ByBands compares pairs that share a band, made in memory of the documents read.
	ByBands = "bands in memory"
	// ByStored looks the documents of the sample up in the whole index by the bands that are stored.
	ByStored = "stored bands"
	// ByValues compares pairs that share one of their least values: sketches that are lists of these have no bands.
	ByValues = "shared values"
)

// Report is what was found in one index, as it is reported in JSON.
type Report struct {
	// Engine and Seconds, how long it took, are for the caller to fill in.
	Engine string `json:"engine"`
	Index  string `json:"index"`
	Setting
	Reading
	Search

	Random     Histogram  `json:"random"`
	Candidates Histogram  `json:"candidates"`
	Levels     []Level    `json:"levels"`
	Error      Error      `json:"error"`
	Curve      Curve      `json:"curve"`
	Shares     []Share    `json:"shares"`
	Presets    []Share    `json:"presets"`
	Suggestion Suggestion `json:"suggestion"`
	Notes      []string   `json:"notes"`
	Seconds    float64    `json:"seconds"`
}

// Setting is what the rule says.
type Setting struct {
	Scheme    string  `json:"scheme"`
	Family    string  `json:"family"`
	Positions int     `json:"positions"`
	Measure   string  `json:"measure"`
	Threshold float64 `json:"threshold"`
	// MinShingles is how many shingles both must have to fold by agreement.
	MinShingles int `json:"min_shingles"`
}

// Reading is what was read.
type Reading struct {
	Seed uint64 `json:"seed"`
	// Documents are in the index, Read of them were read, Textless of these have no sketch, Copies have the same text as another
	// one.
	Documents int `json:"documents"`
	Read      int `json:"read"`
	Textless  int `json:"textless"`
	Copies    int `json:"copies"`
	Sample    int `json:"sample"`
	// Whole says that all documents were read, so that nothing is left to chance but the sketches' own error.
	Whole bool `json:"whole"`
}

// Search is how candidates were found.
type Search struct {
	// Way is by Bands of Rows where by bands; Compared is how many pairs were. Capped says that so many were alike that not all of
	// them were compared.
	Way      string `json:"way"`
	Bands    int    `json:"bands,omitempty"`
	Rows     int    `json:"rows,omitempty"`
	Compared int    `json:"compared"`
	Capped   bool   `json:"capped"`
}

// Bins is how many bins a histogram has, each 1/Bins wide; the last one holds 1 too.
const Bins = 20

// Histogram counts pairs by their agreement.
type Histogram struct {
	// Pairs is how many were compared.
	Pairs int `json:"pairs"`
	// Found counts them by their agreement, an agreement below 0 as 0.
	Found [Bins]float64 `json:"found"`
	// Estimated is Found with what bands miss added: each pair counts for as many as there are to one that is found.
	Estimated [Bins]float64 `json:"estimated"`
	// Same is how many more have the same text.
	Same float64 `json:"same_text"`
}

func (h *Histogram) add(value, pairs, weight float64) {
	bin := min(Bins-1, int(max(0, value)*Bins))
	h.Found[bin] += pairs
	h.Estimated[bin] += pairs * weight
}

// document is what is kept of one.
type document struct {
	id     string
	rank   uint64 // a keyed hash of the id: the order of all choices
	sketch sketch.Sketch
	bands  []int64
}

// calibration is one run.
type calibration struct {
	store   adapters.Store
	index   string
	rule    *rule.Rule
	options Options
	report  Report
	// docs are ordered by rank; units are made of them.
	docs      []document
	units     []unit
	pools     [11]pool
	precision Precision
	// looked is how many documents look-ups have read.
	looked int
	// gathering, if set, collects pairs to ask about.
	gathering *gathering
}

// Run calibrates one concrete index: it reads, compares and reports.
func Run(ctx context.Context, store adapters.Store, index string, rule *rule.Rule, o Options) (*Report, error) {
	c := newCalibration(store, index, rule, o)
	for _, step := range []func(context.Context) error{c.read, c.compare, c.compareTexts} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("calibrate %s: %w", index, err)
		}
	}
	c.drawCurve()
	c.countShares()
	c.report.Suggestion = Suggest(c.facts())
	c.report.Presets = append(c.report.Presets, c.shareAt("suggested", c.report.Suggestion.Threshold))
	c.addNotes()
	return &c.report, nil
}

func newCalibration(store adapters.Store, index string, rule *rule.Rule, o Options) *calibration {
	c := calibration{store: store, index: index, rule: ofTexts(rule), options: o}
	scheme := rule.Sketcher.Scheme()
	c.report = Report{
		Index: index, Notes: []string{}, Presets: []Share{}, Reading: Reading{Seed: o.Seed},
		Setting: Setting{
			Scheme: fmt.Sprintf("%08x", rule.Sketcher.SchemeID()), Family: string(scheme.Family), Positions: scheme.Positions,
			Measure:   string(cmp.Or(rule.Profile.Measure, rerank.Resemblance)),
			Threshold: rule.Profile.Threshold, MinShingles: rule.Profile.MinShingles,
		},
	}
	return &c
}

// compare counts random pairs and candidate pairs by their agreement.
func (c *calibration) compare(ctx context.Context) error {
	c.compareRandom()
	if c.report.Way == ByStored {
		return c.lookUp(ctx)
	}
	c.makeUnits()
	c.compareCandidates()
	return ctx.Err()
}

// ofTexts returns the rule with texts deciding alone: theirs is the threshold that is looked for.
func ofTexts(r *rule.Rule) *rule.Rule {
	texts := *r
	texts.Profile.Vector = rerank.Vector{}
	return &texts
}

// value returns what is compared with the threshold.
func (c *calibration) value(a, b *sketch.Sketch) float64 {
	if c.rule.Profile.Measure == rerank.Containment {
		_, value := c.rule.Profile.NearDuplicates(a, b)
		return value
	}
	value, _ := a.Agreement(b)
	return value
}

// addNotes says what has to be known to read the report aright.
func (c *calibration) addNotes() {
	r := &c.report
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	if !r.Whole && r.Way != ByStored {
		note("Of %d documents %d were read, chosen by the engine at random: partners among the others are not seen, so that all shares are too "+
			"small; with bands stored (bands: auto) the whole index is looked up, and --documents reads more.", r.Documents, r.Read)
	}
	if r.Capped {
		note("Some texts have so many that are alike that not every pair of these was compared.")
	}
	if c.rule.Profile.Measure == rerank.Containment {
		note("Bands find documents that resemble each other as wholes: of short texts contained in long ones they miss most.")
	}
	if slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Compared > 0 }) {
		note("Pairs of a level were chosen by their agreement. At low levels it is mostly chance that brought them there, so that their " +
			"exact resemblance lies below it.")
	}
}

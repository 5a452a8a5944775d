package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Index is one entry of indices, a rule. Its preset has the defaults.
type Index struct {
	Match       string   `yaml:"match"`
	Fields      []string `yaml:"fields"`
	Preset      string   `yaml:"preset"`
	Measure     string   `yaml:"measure"`
	Threshold   float64  `yaml:"threshold"`
	MinShingles int      `yaml:"min_shingles"`
	MinWords    int      `yaml:"min_words"`
	Numbers     string   `yaml:"numbers"`
	Window      int      `yaml:"window"`
	Missing     string   `yaml:"missing"`

	Keep           int            `yaml:"keep"`
	Representative Representative `yaml:"representative"`
	DateField      string         `yaml:"date_field"`
	HostField      string         `yaml:"host_field"`
	Within         Within         `yaml:"within"`
	// Same and Different contain the word host_field if a preset uses the field that this key names.
	Same       []string `yaml:"same"`
	Different  []string `yaml:"different"`
	Transitive bool     `yaml:"transitive"`

	Totals string `yaml:"totals"`
	Counts string `yaml:"counts"`
	Expand string `yaml:"expand"`
	Group  bool   `yaml:"group"`
	DryRun bool   `yaml:"dry_run"`

	Bands       string `yaml:"bands"`
	OnDuplicate string `yaml:"on_duplicate"`
	Native      bool   `yaml:"native"`

	// Boilerplate is the file of the Passages that are left out of sketches; empty for none.
	Boilerplate string                `yaml:"boilerplate"`
	Passages    []boilerplate.Passage `yaml:"-"`

	// Sketch is the section sketch, with the values of the preset and then those of the entry over it.
	Sketch Sketch `yaml:"sketch"`

	Vector Vector `yaml:"vector"`

	AdvancedIndex `yaml:"advanced"`

	// Cases are the tests of the rule.
	Cases []Case `yaml:"cases"`
}

// Vector is which vectors decide together with the texts.
type Vector struct {
	// Field is empty for none.
	Field     string  `yaml:"field"`
	Threshold float64 `yaml:"threshold"`
	Combine   string  `yaml:"combine"`
}

// vectorScheme returns the scheme of vectors beside texts.
func vectorScheme(seed Secret) sketch.Scheme {
	return sketch.Scheme{Family: sketch.SimHash, Features: sketch.Vectors, Positions: vectorPositions, Seed: seed.Reveal()}
}

// AdvancedIndex is the section advanced of an entry of indices.
type AdvancedIndex struct {
	VectorWindow int `yaml:"vector_window"`
}

// Representative is which member of a group is shown: a word, or a section.
type Representative struct {
	// By is the word; empty for a section.
	By string `yaml:"-"`

	Field  string   `yaml:"field"`
	Order  string   `yaml:"order"`
	Prefer string   `yaml:"prefer"`
	Values []string `yaml:"values"`
}

// The values of order.
const (
	orderDesc = "desc"
	orderAsc  = "asc"
)

// MarshalYAML implements [yaml.Marshaler].
func (r Representative) MarshalYAML() (any, error) {
	if r.By != "" {
		return r.By, nil
	}
	type section Representative
	return section(r), nil
}

// choice converts the section for [rule.Rule].
func (r Representative) choice() rule.Choice {
	switch {
	case r.By != "":
		return rule.Choice{By: rule.By(r.By)}
	case r.Prefer != "":
		return rule.Choice{By: rule.ByPrefer, Field: r.Prefer, Values: r.Values}
	case r.Field != "":
		return rule.Choice{By: rule.ByField, Field: r.Field, Ascending: r.Order == orderAsc}
	}
	return rule.Choice{}
}

// String describes the choice.
func (r Representative) String() string {
	switch {
	case r.By != "":
		return r.By
	case r.Prefer != "":
		return fmt.Sprintf("by %s: %s", r.Prefer, strings.Join(r.Values, ", then "))
	case r.Order == orderAsc:
		return "the least " + r.Field
	}
	return "the greatest " + r.Field
}

// Within is how far apart the moments of near-duplicates may be.
type Within struct {
	// Field is date_field if it is empty.
	Field string `yaml:"field"`
	Span  Span   `yaml:"span"`
}

// Span is a time span, written as 72h or 3d.
type Span time.Duration

const day = Span(24 * time.Hour)

// UnmarshalText reads a span; it implements [encoding.TextUnmarshaler].
func (s *Span) UnmarshalText(text []byte) error {
	rest, days := strings.TrimSpace(string(text)), int64(0)
	if before, after, has := strings.Cut(rest, "d"); has {
		n, err := strconv.ParseUint(before, 10, 16) // 179 years
		if err != nil {
			return errors.New("is not a span")
		}
		days, rest = int64(n), cmp.Or(after, "0")
	}
	d, err := time.ParseDuration(rest)
	sum := Span(days)*day + Span(d)
	if err != nil || days > 0 && (d < 0 || sum < 0) {
		return errors.New("is not a span")
	}
	*s = sum
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns the span in days if it is a number of whole days, otherwise as Go writes it.
func (s Span) String() string {
	if s >= day && s%day == 0 {
		return fmt.Sprintf("%dd", s/day)
	}
	text := time.Duration(s).String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nothing) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// The values of totals, counts and expand.
const (
	totalsEngine    = "engine"
	totalsCollapsed = "collapsed"
	countsEngine    = "engine"
	countsGroups    = "groups"
	expandOff       = "off"
	expandIDs       = "ids"
	expandSource    = "source"
)

var expands = map[string]rule.Expand{
	expandOff: rule.ExpandOff, expandIDs: rule.ExpandIDs, expandSource: rule.ExpandSource,
}

// The values of on_duplicate, and the words that bands can be.
const (
	onDuplicateIndex = "index"
	onDuplicateTag   = "tag"
	onDuplicateSkip  = "skip"
	bandsOff         = "off"
	bandsAuto        = "auto"
)

var onDuplicates = map[string]rule.OnDuplicate{
	onDuplicateIndex: rule.IndexDuplicates, onDuplicateTag: rule.TagDuplicates, onDuplicateSkip: rule.SkipDuplicates,
}

// bands returns how many bands the sketches have, and how many rows each has; 0 for off. Anything but off, auto and BxR is an error.
func (i Index) bands() (bands, rows int, err error) {
	switch i.Bands {
	case bandsOff, "":
		return 0, 0, nil
	case bandsAuto:
		share := i.Threshold // of equal positions
		if i.Sketch.Features == string(sketch.Vectors) {
			share = sketch.SideShare(share)
		}
		bands, rows = rule.ChooseBands(i.Sketch.Positions, share)
		return bands, rows, nil
	}
	before, after, _ := strings.Cut(i.Bands, "x")
	bands, err = strconv.Atoi(before)
	if err == nil {
		rows, err = strconv.Atoi(after)
	}
	if err != nil || bands < 1 || rows < 1 || bands*rows > i.Sketch.Positions {
		return 0, 0, fmt.Errorf("%q is unknown: use off, auto, or bands and rows such as 32x4, whose product is at most the %d positions of a sketch",
			i.Bands, i.Sketch.Positions)
	}
	return bands, rows, nil
}

// Scheme returns the scheme of the entry's sketches.
func (i Index) Scheme() sketch.Scheme {
	scheme := i.Sketch.Scheme()
	scheme.DropNumbers = i.Numbers == string(rerank.IgnoreNumbers)
	scheme.Boilerplate = boilerplate.Lines(i.Passages)
	return scheme
}

// Rule converts the entry for the packages that work with rules.
func (i Index) Rule(sketcher *sketch.Sketcher) *rule.Rule {
	bands, rows, _ := i.bands() // it was validated
	r := &rule.Rule{
		Bands: bands, Rows: rows, OnDuplicate: onDuplicates[i.OnDuplicate], Native: i.Native,
		Clusters: i.Native || i.OnDuplicate == onDuplicateTag,
		Match:    i.Match, Fields: i.Fields, Sketcher: sketcher, Compute: i.Missing == "compute",
		Window: i.Window, VectorWindow: i.VectorWindow,
		Profile: rerank.Profile{
			Threshold: i.Threshold, MinShingles: i.MinShingles, MinWords: i.MinWords, Numbers: rerank.Numbers(i.Numbers),
			Measure: rerank.Measure(i.Measure), Keep: i.Keep,
		},
		Choice: i.Representative.choice(), DateField: i.DateField,
		Together: rule.Together{
			Within: time.Duration(i.Within.Span).Milliseconds(), WithinField: cmp.Or(i.Within.Field, i.DateField),
			Same: i.Same, Different: i.Different,
		},
		Transitive: i.Transitive, CollapsedTotals: i.Totals == totalsCollapsed, CountsGroups: i.Counts == countsGroups,
		Expand: expands[i.Expand], Group: i.Group, DryRun: i.DryRun,
	}
	if v := i.Vector; v.Field != "" {
		r.Vector, r.Fields = v.Field, slices.Concat(i.Fields, []string{v.Field})
		r.Profile.Vector = rerank.Vector{Combine: rerank.Combine(v.Combine), Threshold: v.Threshold}
		r.VectorSketcher, _ = sketch.New(vectorScheme(i.Sketch.Seed)) // this scheme is always valid
	}
	return r
}

// Rules returns the rules of the engine. Rules with the same scheme share a sketcher.
func (e *Engine) Rules() (rules rule.Rules, err error) {
	made := sketchers{}
	for _, index := range e.Indices {
		sketcher, err := made.of(index.Scheme())
		if err != nil {
			return nil, err
		}
		rules = append(rules, index.Rule(sketcher))
	}
	return rules, nil
}

// PresetRules returns the rules for texts that belong to no index, by the names of their presets. It leaves out presets that need further fields or vectors, and those
// that do not go with the section sketch. If the section has a seed, these rules have another one, made from it: anybody may compare texts by them, and so learns nothing about the sketches
// of the indices.
func (e *Engine) PresetRules() map[string]*rule.Rule {
	section := e.Sketch
	if section.Seed.IsSet() {
		section.Seed = SecretOf("texts of no index\n" + section.Seed.Reveal())
	}
	rules, made := map[string]*rule.Rule{}, sketchers{}
	for _, p := range Presets() {
		index := p.Start(section)
		if len(p.Needs) > 0 || index.Sketch.Features == string(sketch.Vectors) {
			continue
		}
		index.Fields = []string{rule.TextField}
		if sketcher, err := made.of(index.Scheme()); err == nil {
			rules[p.Name] = index.Rule(sketcher)
		}
	}
	return rules
}

// sketchers are those that were made, by the ids of their schemes.
type sketchers map[uint32]*sketch.Sketcher

// of returns the sketcher of a scheme.
func (s sketchers) of(scheme sketch.Scheme) (*sketch.Sketcher, error) {
	id := scheme.ID()
	if s[id] != nil {
		return s[id], nil
	}
	made, err := sketch.New(scheme)
	if err == nil {
		s[id] = made
	}
	return made, err
}

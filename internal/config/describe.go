package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// CheckedConfig is the result of config check, for JSON.
type CheckedConfig struct {
	File string `json:"file"`
	// OK says that there are no errors. Only then are the fields after Errors filled in.
	OK      bool            `json:"ok"`
	Errors  []WrongKey      `json:"errors"`
	Sketch  string          `json:"sketch,omitempty"`
	Engines []checkedEngine `json:"engines,omitempty"`
}

// WrongKey is an error in one key. The key is empty for an error in the file as a whole.
type WrongKey struct {
	Line  int    `json:"line"`
	Key   string `json:"key"`
	Error string `json:"error"`
}

// checkedEngine is the summary of one engine.
type checkedEngine struct {
	Name      string        `json:"name"`
	Kind      string        `json:"kind"`
	Listen    string        `json:"listen"`
	URLs      []string      `json:"urls"`
	OnFailure string        `json:"on_failure"`
	Rules     []checkedRule `json:"rules"`
}

// checkedRule is the summary of one rule. Summary is for people: it says what differs from the defaults.
type checkedRule struct {
	Match     string   `json:"match"`
	Fields    []string `json:"fields"`
	Preset    string   `json:"preset"`
	Threshold float64  `json:"threshold"`
	Window    int      `json:"window"`
	Summary   []string `json:"summary"`
}

// Invalid returns the result of checking a file that has errors.
func Invalid(file string, err error) CheckedConfig {
	found := CheckedConfig{File: file, Errors: []WrongKey{}}
	for _, e := range Flatten(err) {
		if wrong, ok := errors.AsType[*KeyError](e); ok {
			found.Errors = append(found.Errors, WrongKey{wrong.Line, wrong.Key, wrong.Err.Error()})
		}
	}
	return found
}

// Checked returns the result of checking a valid configuration.
func (c *Config) Checked() CheckedConfig {
	found := CheckedConfig{File: c.File, OK: true, Errors: []WrongKey{}, Sketch: c.Sketch.Describe()}
	for _, e := range c.Engines {
		one := checkedEngine{
			Name: e.Name, Kind: e.Kind, Listen: e.Listen, URLs: append([]string{}, e.URLs...), OnFailure: e.OnFailure, Rules: []checkedRule{},
		}
		for _, i := range e.Indices {
			one.Rules = append(one.Rules, checkedRule{
				Match: i.Match, Fields: i.Fields, Preset: i.Preset, Threshold: i.Threshold, Window: i.Window, Summary: i.describe(c.Sketch),
			})
		}
		found.Engines = append(found.Engines, one)
	}
	return found
}

// Describe returns a summary of the configuration, without secrets.
func (c *Config) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ok\nsketch: %s\n", c.File, c.Sketch.Describe())
	for _, e := range c.Engines {
		where, how := "at "+strings.Join(e.URLs, ", "), ""
		if e.Kind == kind.Embedded {
			where = "inside the sidecar"
		}
		switch {
		case e.ListenTLS.ClientCAFile != "":
			how = " by TLS with clients' certificates"
		case e.ListenTLS.CertFile != "":
			how = " by TLS"
		}
		fmt.Fprintf(&b, "engine %s: %s%s in front of %s %s, on failure: %s\n", e.Name, e.Listen, how, e.Kind, where, e.OnFailure)
		for _, i := range e.Indices {
			fmt.Fprintf(&b, "  %s: %s\n", i.Match, strings.Join(i.describe(c.Sketch), "; "))
		}
	}
	return b.String()
}

// summary is a list of phrases.
type summary []string

// addIf adds a phrase if the condition is true.
func (s *summary) addIf(condition bool, format string, args ...any) {
	if condition {
		*s = append(*s, fmt.Sprintf(format, args...))
	}
}

// Describe returns a summary of the scheme: the keys that its family and features use.
func (s Sketch) Describe() string {
	parts := summary{s.Family, "features " + s.Features}
	family, features := sketch.Family(s.Family), sketch.Features(s.Features)
	packed := family == sketch.FastSimilarity || family == sketch.Permutations
	parts.addIf(features == sketch.Auto || features == sketch.WordShingles, "%d words", s.Words)
	parts.addIf(features == sketch.Auto || features == sketch.CharacterShingles, "%d characters", s.Characters)
	parts.addIf(packed, "%d positions of %d bits", s.Positions, s.Bits)
	parts.addIf(!packed && family != sketch.Hamming, "%d positions", s.Positions)
	parts.addIf(family == sketch.ZeroModM, "modulus %d, %d repeats", s.Modulus, s.Repeats)
	parts.addIf(features != sketch.Tags && features.Sets(), "content %s", s.Content)
	parts.addIf(len(s.Keep) > 0 && features.Sets(), "%s kept", strings.Join(s.Keep, " and "))
	parts.addIf(s.Seed.IsSet(), "with a seed")
	parts.addIf(!s.Seed.IsSet(), "without a seed: anyone can craft texts that collide")
	return strings.Join(parts, ", ")
}

// describe returns a summary of the entry: what every entry has, and what differs from the defaults.
func (i Index) describe(section Sketch) []string {
	parts := summary{
		"fields " + strings.Join(i.Fields, ", "), i.Profile(), fmt.Sprintf("window %d", i.Window), "missing: " + i.Missing,
	}
	rule := i.Rule(nil)
	parts.addIf(i.VectorWindow != defaultVectorWindow, "vector_window %d", i.VectorWindow)
	parts.addIf(i.Sketch.Scheme().ID() != section.Scheme().ID(), "own sketch: %s", i.Sketch.Describe())
	parts.addIf(i.Boilerplate != "", "passages of %s left out: %d", i.Boilerplate, len(i.Passages))
	parts.addIf(i.Vector.Field != "", "vectors in %s: %s decide, threshold %v", i.Vector.Field, i.Vector.Combine, i.Vector.Threshold)
	parts.addIf(i.Keep > 1, "%d of a group are shown", i.Keep)
	parts.addIf(!rule.Choice.Ranked(), "shown first: %s", i.Chosen())
	parts = append(parts, i.Conditions()...)
	parts.addIf(i.Transitive, "transitive")
	parts.addIf(rule.CollapsedTotals, "totals: %s", i.Totals)
	parts.addIf(rule.CountsGroups, "counts: %s", i.Counts)
	parts.addIf(i.Expand != expandOff, "folded hits are shown (%s)", i.Expand)
	parts.addIf(i.Group, "each hit says which group it is of")
	parts.addIf(i.DryRun, "dry run: nothing is folded")
	parts.addIf(rule.Bands > 0, "%d bands of %d rows", rule.Bands, rule.Rows)
	parts.addIf(i.OnDuplicate != onDuplicateIndex, "on_duplicate: %s", i.OnDuplicate)
	parts.addIf(i.Native, "native: collapsed by the engine")
	parts.addIf(len(i.Cases) > 0, "cases %d", len(i.Cases))
	parts.addIf(!rule.Choice.Ranked() || i.Transitive || rule.CollapsedTotals, "a search reads the whole window")
	return parts
}

// Chosen says which member of a group is shown.
func (i Index) Chosen() string {
	switch by := i.Representative.By; rule.By(by) {
	case rule.ByNewest, rule.ByOldest:
		return by + " by " + i.DateField
	}
	return i.Representative.String()
}

// Conditions returns what must hold for near-duplicates to fold.
func (i Index) Conditions() []string {
	var list summary
	list.addIf(i.Within.Span > 0, "only within %v by %s", i.Within.Span, cmp.Or(i.Within.Field, i.DateField))
	list.addIf(len(i.Same) > 0, "only with the same %s", strings.Join(i.Same, " and "))
	list.addIf(len(i.Different) > 0, "only with a different %s", strings.Join(i.Different, " and "))
	return list
}

// Profile returns the preset's name, and the values that replace the preset's own.
func (i Index) Profile() string {
	own := PresetOf(i.Preset).Start(i.Sketch)
	measure := replaced(i.Measure, own.Measure) + ", "
	if own.Measure == i.Measure && i.Measure == string(rerank.Resemblance) {
		measure = ""
	}
	return fmt.Sprintf("preset %s: %sthreshold %s, min_shingles %s, min_words %s, numbers %s",
		i.Preset, measure, replaced(i.Threshold, own.Threshold), replaced(i.MinShingles, own.MinShingles), replaced(i.MinWords, own.MinWords),
		replaced(i.Numbers, own.Numbers))
}

// replaced returns a value, and the usual one if that is different.
func replaced[T comparable](value, usual T) string {
	if value == usual {
		return fmt.Sprint(value)
	}
	return fmt.Sprintf("%v in place of %v", value, usual)
}

package config

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// CheckedConfig is what check found, as it is reported in JSON.
type CheckedConfig struct {
	File string `json:"file"`
	// OK says that there are no errors, and that the rest is filled in.
	OK      bool            `json:"ok"`
	Errors  []WrongKey      `json:"errors"`
	Sketch  string          `json:"sketch,omitempty"`
	Engines []checkedEngine `json:"engines,omitempty"`
}

// WrongKey is what is wrong with one key; the key is empty for what is wrong with the whole.
type WrongKey struct {
	Key   string `json:"key"`
	Error string `json:"error"`
}

// checkedEngine is one engine in short.
type checkedEngine struct {
	Name      string        `json:"name"`
	Kind      string        `json:"kind"`
	Listen    string        `json:"listen"`
	URLs      []string      `json:"urls"`
	OnFailure string        `json:"on_failure"`
	Rules     []checkedRule `json:"rules"`
}

// checkedRule is one rule in short: what differs from the defaults is text for people.
type checkedRule struct {
	Match     string   `json:"match"`
	Fields    []string `json:"fields"`
	Preset    string   `json:"preset"`
	Threshold float64  `json:"threshold"`
	Window    int      `json:"window"`
	Summary   []string `json:"summary"`
}

// Checked returns an engine in short.
func (e *Engine) Checked(section Sketch) checkedEngine {
	one := checkedEngine{
		Name: e.Name, Kind: e.Kind, Listen: e.Listen, URLs: []string{}, OnFailure: e.OnFailure, Rules: []checkedRule{},
	}
	for _, url := range e.URLs {
		one.URLs = append(one.URLs, redactURL(url))
	}
	for _, i := range e.Indices {
		one.Rules = append(one.Rules, checkedRule{
			Match: i.Match, Fields: i.Fields, Preset: i.Preset, Threshold: i.Threshold, Window: i.Window, Summary: i.describe(section),
		})
	}
	return one
}

// Describe writes the configuration in short, without secrets.
func (c *Config) Describe(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ok\nsketch: %s\n", c.File, c.Sketch.Describe())
	for _, e := range c.Engines {
		where := "at " + strings.Join(e.URLs, ", ")
		if e.Kind == kind.Embedded {
			where = "inside the sidecar"
		}
		fmt.Fprintf(&b, "engine %s: %s%s in front of %s %s, on failure: %s\n", e.Name, e.Listen, e.ListenTLS.describe(), e.Kind, where, e.OnFailure)
		for _, i := range e.Indices {
			fmt.Fprintf(&b, "  %s: %s\n", i.Match, strings.Join(i.describe(c.Sketch), "; "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Describe returns the scheme in short: what counts under its family and features.
func (s Sketch) Describe() string {
	parts := []string{s.Family, "features " + s.Features}
	add := func(counts bool, format string, args ...any) {
		if counts {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	family, features := sketch.Family(s.Family), sketch.Features(s.Features)
	packed := family == sketch.FastSimilarity || family == sketch.Permutations
	add(features == sketch.Auto || features == sketch.WordShingles, "%d words", s.Words)
	add(features == sketch.Auto || features == sketch.CharacterShingles, "%d characters", s.Characters)
	add(packed, "%d positions of %d bits", s.Positions, s.Bits)
	add(!packed && family != sketch.Hamming, "%d positions", s.Positions)
	add(family == sketch.ZeroModM, "modulus %d, %d repeats", s.Modulus, s.Repeats)
	add(features != sketch.Tags && features != sketch.Value64, "content %s", s.Content)
	add(len(s.Keep) > 0 && features != sketch.Value64, "%s kept", strings.Join(s.Keep, " and "))
	add(s.Seed.IsSet(), "with a seed")
	add(!s.Seed.IsSet(), "without a seed: anyone can craft texts that collide")
	return strings.Join(parts, ", ")
}

// describe returns the entry in short: what every entry has, and what differs from the defaults.
func (i Index) describe(section Sketch) []string {
	parts := []string{
		"fields " + strings.Join(i.Fields, ", "), i.Profile(), fmt.Sprintf("window %d", i.Window), "missing: " + i.Missing,
	}
	add := func(counts bool, format string, args ...any) {
		if counts {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	rule := i.Rule(nil)
	add(i.Sketch.Scheme().ID() != section.Scheme().ID(), "sketch of its own: %s", i.Sketch.Describe())
	add(i.Keep > 1, "%d of a group are shown", i.Keep)
	add(!rule.Choice.Ranked(), "shown first: %s", i.Chosen())
	parts = append(parts, i.Conditions()...)
	add(i.Transitive, "transitive")
	add(rule.CollapsedTotals, "totals: %s", i.Totals)
	add(i.Expand != expandOff, "folded hits are shown (%s)", i.Expand)
	add(i.DryRun, "dry run: nothing is folded")
	add(rule.Bands > 0, "%d bands of %d rows", rule.Bands, rule.Rows)
	add(i.OnDuplicate != onDuplicateIndex, "on_duplicate: %s", i.OnDuplicate)
	add(i.Native, "native: collapsed by the engine")
	add(!rule.Choice.Ranked() || i.Transitive || rule.CollapsedTotals, "a search reads the whole window")
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
func (i Index) Conditions() (list []string) {
	if i.Within.Span > 0 {
		list = append(list, fmt.Sprintf("only within %v by %s", i.Within.Span, cmp.Or(i.Within.Field, i.DateField)))
	}
	if len(i.Same) > 0 {
		list = append(list, "only with the same "+strings.Join(i.Same, " and "))
	}
	if len(i.Different) > 0 {
		list = append(list, "only with a different "+strings.Join(i.Different, " and "))
	}
	return list
}

// Profile returns the preset in short, and what was given in place of its own values.
func (i Index) Profile() string {
	own := PresetOf(i.Preset).Start(i.Sketch)
	text := fmt.Sprintf("preset %s: ", i.Preset)
	switch {
	case i.Measure != own.Measure:
		text += fmt.Sprintf("%s in place of %s, ", i.Measure, own.Measure)
	case i.Measure != string(rerank.Resemblance):
		text += i.Measure + ", "
	}
	text += fmt.Sprintf("threshold %v", i.Threshold)
	if i.Threshold != own.Threshold {
		text += fmt.Sprintf(" in place of %v", own.Threshold)
	}
	text += fmt.Sprintf(", min_shingles %d", i.MinShingles)
	if i.MinShingles != own.MinShingles {
		text += fmt.Sprintf(" in place of %d", own.MinShingles)
	}
	return text
}

// describe says in short how clients connect.
func (t ListenTLS) describe() string {
	switch {
	case t.ClientCAFile != "":
		return " by TLS with clients' certificates"
	case t.CertFile != "":
		return " by TLS"
	}
	return ""
}

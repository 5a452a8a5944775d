package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// entry returns the entry of indices with the keys, below a section sketch.
func entry(t *testing.T, section, keys string) Index {
	t.Helper()
	text := "sketch: {" + section + `}
engines: [{listen: ":1", kind: elasticsearch, urls: ["http://h:1"], indices: [{match: a, fields: [t], ` + keys + "}]}]"
	c := expect.Value(Parse([]byte(text), environment("PRESET", "versions", "BY", "newest", "SPAN", "3d", "KEEP", "2")))(t)
	return c.Engines[0].Indices[0]
}

// TestRuleOfKeys reads entries of indices and holds them to the rules that they become.
func TestRuleOfKeys(t *testing.T) {
	for _, c := range []struct {
		keys   string
		change func(*rule.Rule)
	}{
		{"match: a", func(*rule.Rule) {}},
		{"representative: rank, within: {}, same: [], different: [], keep: 1, transitive: false, totals: engine, counts: engine, expand: off, sketch: {}",
			func(*rule.Rule) {}},
		{"min_words: 0, numbers: decide", func(r *rule.Rule) { r.Profile.MinWords, r.Profile.Numbers = 0, rerank.DecideByNumbers }},
		{"numbers: ignore", func(r *rule.Rule) { r.Profile.Numbers = rerank.IgnoreNumbers }},
		{"measure: containment", func(r *rule.Rule) { r.Profile.Measure = rerank.Containment }},
		{`keep: "${KEEP}"`, func(r *rule.Rule) { r.Profile.Keep = 2 }},
		{"keep: 100", func(r *rule.Rule) { r.Profile.Keep = 100 }},
		{`representative: "${BY}", date_field: a.Date`, func(r *rule.Rule) {
			r.Choice, r.DateField = rule.Choice{By: rule.ByNewest}, "a.Date"
			r.Together.WithinField = "a.Date"
		}},
		{"representative: oldest, date_field: d", func(r *rule.Rule) {
			r.Choice, r.DateField = rule.Choice{By: rule.ByOldest}, "d"
			r.Together.WithinField = "d"
		}},
		{"representative: longest", func(r *rule.Rule) { r.Choice = rule.Choice{By: rule.ByLongest} }},
		{"representative: {field: Votes}", func(r *rule.Rule) { r.Choice = rule.Choice{By: rule.ByField, Field: "Votes"} }},
		{"representative: {field: v, order: asc}", func(r *rule.Rule) {
			r.Choice = rule.Choice{By: rule.ByField, Field: "v", Ascending: true}
		}},
		{"representative: {prefer: Host, values: [B.example, A.example]}", func(r *rule.Rule) {
			r.Choice = rule.Choice{By: rule.ByPrefer, Field: "Host", Values: []string{"B.example", "A.example"}}
		}},
		{`within: {span: "${SPAN}"}, date_field: d`, func(r *rule.Rule) {
			r.DateField, r.Together.Within, r.Together.WithinField = "d", (72 * time.Hour).Milliseconds(), "d"
		}},
		{"within: {span: 90m, field: At}, date_field: d", func(r *rule.Rule) {
			r.DateField, r.Together.Within, r.Together.WithinField = "d", (90 * time.Minute).Milliseconds(), "At"
		}},
		{"same: [Sku, host_field], host_field: H, different: [other]", func(r *rule.Rule) {
			r.Together.Same, r.Together.Different = []string{"Sku", "H"}, []string{"other"}
		}},
		{"transitive: true, totals: collapsed, counts: groups, dry_run: true", func(r *rule.Rule) {
			r.Transitive, r.CollapsedTotals, r.CountsGroups, r.DryRun = true, true, true, true
		}},
		{"group: true", func(r *rule.Rule) { r.Group = true }},
		{"vector: {field: Meaning, combine: either}", func(r *rule.Rule) {
			r.Fields, r.Vector = []string{"t", "Meaning"}, "Meaning"
			r.Profile.Vector = rerank.Vector{Combine: rerank.Either, Threshold: 0.9}
		}},
		{"expand: ids", func(r *rule.Rule) { r.Expand = rule.ExpandIDs }},
		{"expand: source", func(r *rule.Rule) { r.Expand = rule.ExpandSource }},
	} {
		want := &rule.Rule{
			Match: "a", Fields: []string{"t"}, Window: 1000, VectorWindow: 100, Compute: true, Choice: rule.Choice{By: rule.ByRank},
			Profile: rerank.Profile{
				Threshold: rerank.Default().Threshold, MinShingles: rerank.Default().MinShingles, MinWords: 50, Numbers: rerank.CountNumbers,
				Measure: rerank.Resemblance, Keep: 1,
			},
		}
		c.change(want)
		if c.keys == "match: a" {
			c.keys = "missing: compute"
		}
		got := entry(t, "", c.keys).Rule(nil)
		if made := got.VectorSketcher; made != nil {
			expect.Same(t, sketch.Scheme{Family: sketch.SimHash, Features: sketch.Vectors, Positions: 1024}.ID(), made.SchemeID(), "%s", c.keys)
			got.VectorSketcher = nil
		}
		expect.By{cmpopts.EquateEmpty()}.Same(t, want, got, "%s", c.keys)
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", c.keys, err)
		}
	}
}

// TestEveryRuleKey: each key of a rule changes the rule, or the scheme of its sketches, and config check describes it.
func TestEveryRuleKey(t *testing.T) {
	const needed = "match: a, fields: [t]"
	tried := map[string][2]string{ // two entries that differ in the key alone
		"match": {needed, "match: b, fields: [t]"}, "fields": {needed, "match: a, fields: [t, u]"},
		"preset": {"", "preset: thorough"}, "measure": {"", "measure: containment"}, "threshold": {"", "threshold: 0.9"},
		"min_shingles": {"", "min_shingles: 9"}, "min_words": {"", "min_words: 9"}, "numbers": {"", "numbers: decide"}, "window": {"", "window: 9"},
		"missing": {"", "missing: alone"}, "keep": {"", "keep: 9"}, "representative": {"", "representative: longest"},
		"representative.field":  {"representative: {field: v}", "representative: {field: w}"},
		"representative.order":  {"representative: {field: v}", "representative: {field: v, order: asc}"},
		"representative.prefer": {"representative: {prefer: v, values: [x]}", "representative: {prefer: w, values: [x]}"},
		"representative.values": {"representative: {prefer: v, values: [x]}", "representative: {prefer: v, values: [y]}"},
		"date_field":            {"representative: newest, date_field: d", "representative: newest, date_field: e"},
		"host_field":            {"same: [host_field], host_field: h", "same: [host_field], host_field: i"},
		"within.field":          {"within: {span: 3d, field: d}", "within: {span: 3d, field: e}"}, "within.span": {"within: {span: 3d, field: d}", "within: {span: 4d, field: d}"},
		"same": {"", "same: [x]"}, "different": {"", "different: [x]"}, "transitive": {"", "transitive: true"}, "totals": {"", "totals: collapsed"}, "counts": {"", "counts: groups"},
		"expand": {"", "expand: ids"}, "group": {"", "group: true"}, "dry_run": {"", "dry_run: true"}, "bands": {"", "bands: 24x4"}, "on_duplicate": {"bands: auto", "bands: auto, on_duplicate: skip"},
		"native": {"", "native: true"}, "sketch": {"", "sketch: {positions: 64}"}, "advanced.vector_window": {"", "advanced: {vector_window: 9}"},
		"boilerplate":      {"", "boilerplate: testdata/footers.jsonl"},
		"cases":            {"", "cases: [{same: [x, y]}]"},
		"vector.field":     {"", "vector: {field: v}"},
		"vector.threshold": {"vector: {field: v}", "vector: {field: v, threshold: 0.8}"},
		"vector.combine":   {"vector: {field: v}", "vector: {field: v, combine: either}"},
	}
	undescribed := map[string]string{"match": "the summary of a rule stands behind it"}
	for _, key := range ruleKeys(reflect.TypeFor[Index](), "") {
		two, known := tried[key]
		if !known {
			t.Errorf("%s: no entries to try", key)
			continue
		}
		var entries [2]Index
		for i, keys := range two {
			if !strings.HasPrefix(keys, "match: ") {
				keys = strings.TrimSuffix(needed+", "+keys, ", ")
			}
			text := `engines: [{listen: ":1", kind: elasticsearch, urls: ["http://h:1"], indices: [{` + keys + "}]}]"
			entries[i] = expect.Value(Parse([]byte(text), environment()))(t).Engines[0].Indices[0]
		}
		a, b := entries[0], entries[1]
		if reflect.DeepEqual(a.Rule(nil), b.Rule(nil)) && a.Scheme().ID() == b.Scheme().ID() && key != "cases" {
			t.Errorf("%s does not change the rule", key)
		}
		if section := Default().Sketch; undescribed[key] == "" && slices.Equal(a.describe(section), b.describe(section)) {
			t.Errorf("%s is not described: %q", key, b.describe(section))
		}
	}
}

// ruleKeys returns the keys of a section of rules, with those of the sections in it. TestSketchOfARule has those of sketch.
func ruleKeys(section reflect.Type, prefix string) (keys []string) {
	for i := range section.NumField() {
		field := section.Field(i)
		key := prefix + field.Tag.Get("yaml")
		switch {
		case key == prefix+"-":
		case field.Type.Kind() != reflect.Struct || key == "sketch":
			keys = append(keys, key)
		default:
			if _, word := field.Type.FieldByName("By"); word {
				keys = append(keys, key)
			}
			keys = append(keys, ruleKeys(field.Type, key+".")...)
		}
	}
	return keys
}

// TestPresetsOfKinds reads each preset with what it needs, and one with a key of the file over each of its own.
func TestPresetsOfKinds(t *testing.T) {
	for _, p := range Presets() {
		needs := ""
		for _, key := range p.Needs {
			needs += fmt.Sprintf(", %s: My%s", key, key)
		}
		got := entry(t, "", "preset: "+p.Name+needs)
		want := p.Start(Default().Sketch)
		want.Match, want.Fields = "a", []string{"t"}
		for _, key := range p.Needs {
			if key == hostField {
				want.HostField = "My" + key
			} else {
				want.DateField = "My" + key
			}
		}
		for _, list := range [][]string{want.Same, want.Different} {
			for i := range list {
				list[i] = "Myhost_field"
			}
		}
		expect.By{cmpopts.EquateEmpty()}.Same(t, want, got, "%s", p.Name)
		over := entry(t, "", "threshold: 0.5, min_shingles: 2, min_words: 3, numbers: decide, measure: resemblance, representative: rank, same: [x], different: [], expand: off, "+
			"within: {span: 0s}, window: 9, advanced: {vector_window: 7}, sketch: {family: simhash, features: words, positions: 256, content: raw}, preset: "+p.Name)
		usual := DefaultIndex()
		usual.Match, usual.Fields, usual.Preset, usual.Threshold, usual.MinShingles = "a", []string{"t"}, p.Name, 0.5, 2
		usual.MinWords, usual.Numbers, usual.Window = 3, "decide", 9
		usual.Same, usual.VectorWindow, usual.Sketch.Family, usual.Sketch.Features = []string{"x"}, 7, "simhash", "words"
		usual.Sketch.Positions, usual.Sketch.Content = 256, "raw"
		expect.By{cmpopts.EquateEmpty()}.Same(t, usual, over, "%s, and the file's own values", p.Name)
	}
}

// TestSketchOfARule reads entries with schemes of their own, whatever stands before what in the file.
func TestSketchOfARule(t *testing.T) {
	section := sketch.Scheme{
		Family: sketch.FastSimilarity, Features: sketch.Auto, Words: 3, Characters: 6, Positions: 64, Bits: 8, Modulus: 16, Repeats: 4,
		Content: sketch.ContentAll, Keep: sketch.Keep{Case: true, Accents: true}, Seed: "hunter2",
	}
	for _, c := range []struct {
		keys   string
		change func(*sketch.Scheme)
	}{
		{"missing: alone", func(*sketch.Scheme) {}},
		{"sketch: {}", func(*sketch.Scheme) {}},
		{"sketch: {words: 1, advanced: {bits: 4}}", func(s *sketch.Scheme) { s.Words, s.Bits = 1, 4 }},
		{"sketch: {keep: [punctuation]}", func(s *sketch.Scheme) { s.Keep = sketch.Keep{Punctuation: true} }},
		{"sketch: {keep: []}", func(s *sketch.Scheme) { s.Keep = sketch.Keep{} }},
		{`sketch: {seed: ""}`, func(s *sketch.Scheme) { s.Seed = "" }},
		{"preset: goods", func(s *sketch.Scheme) { s.Features = sketch.Tags }},
		{"sketch: {features: value64, family: hamming}, preset: goods", func(s *sketch.Scheme) {
			s.Features, s.Family = sketch.Value64, sketch.Hamming
		}},
	} {
		want := section
		c.change(&want)
		const text = `
engines: [{listen: ":1", kind: typesense, urls: ["http://h:1"], indices: [{match: a, fields: [t], %s}, {match: b, fields: [t]}]}]
sketch: {words: 3, positions: 64, keep: [case, accents], seed: "${S}"}`
		got, err := Parse(fmt.Appendf(nil, text, c.keys), environment("S", "hunter2"))
		if err != nil {
			t.Errorf("%s: %v", c.keys, err)
			continue
		}
		e := got.Engines[0]
		for name, schemes := range map[string][2]sketch.Scheme{
			"the entry": {want, e.Indices[0].Sketch.Scheme()}, "its neighbour": {section, e.Indices[1].Sketch.Scheme()},
			"the section": {section, got.Sketch.Scheme()},
		} {
			expect.Same(t, schemes[0], schemes[1], "%s: %s has ", c.keys, name)
		}
		rules := expect.Value(e.Rules())(t)
		for i, scheme := range []sketch.Scheme{want, section} {
			expect.Same(t, scheme.ID(), rules[i].Sketcher.SchemeID(), "%s: the scheme of rule %d", c.keys, i)
		}
	}
}

func TestSpan(t *testing.T) {
	for _, c := range []struct {
		text string
		span time.Duration
		back string
	}{
		{"72h", 72 * time.Hour, "3d"}, {"3d", 72 * time.Hour, "3d"}, {"1d12h", 36 * time.Hour, "36h"}, {"90m", 90 * time.Minute, "1h30m"}, {"5m", 5 * time.Minute, "5m"},
		{"1h0m20s", time.Hour + 20*time.Second, "1h0m20s"}, {"30s", 30 * time.Second, "30s"}, {"0s", 0, "0s"}, {"0d", 0, "0s"}, {"0", 0, "0s"}, {" 36500d ", 876000 * time.Hour, "36500d"},
		{"10m", 10 * time.Minute, "10m"}, {"250ms", 250 * time.Millisecond, "250ms"}, {"-3h", -3 * time.Hour, "-3h"},
	} {
		var s Span
		if err := s.UnmarshalText([]byte(c.text)); err != nil || time.Duration(s) != c.span || s.String() != c.back {
			t.Errorf("%q: %d %s %v", c.text, int64(s), s, err)
		}
	}
	for _, text := range []string{"", "d", "3", "three days", "-1d", "1.5d", "3d3d", "70000d", "3h1d", "3 d", "1d-30h", "65535d3000000h", "65535d2000000h"} {
		s := Span(7)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != 7 {
			t.Errorf("%q was taken as %v", text, time.Duration(s))
		}
	}
}

// TestBandsOfARule: bands are as many as a sketch has positions for, and what is not so is refused.
func TestBandsOfARule(t *testing.T) {
	i := DefaultIndex()
	i.Sketch.Positions = 128
	for text, good := range map[string]bool{"32x4": true, "128x1": true, "0x4": false, "4x0": false, "-1x4": false, "129x1": false, "64x4": false, "32": false} {
		i.Bands = text
		if bands, rows, err := i.bands(); (err == nil) != good || good != (bands*rows == 128) {
			t.Errorf("%s: %d x %d %v", text, bands, rows, err)
		}
	}
}

// TestRulesThatGoByClusters decide by agreement alone, and only native ones are bound to one hit of a cluster.
func TestRulesThatGoByClusters(t *testing.T) {
	for _, c := range []struct {
		native bool
		on     string
		keep   int
		faults int
	}{{true, onDuplicateIndex, 1, 0}, {true, onDuplicateIndex, 2, 1}, {false, onDuplicateTag, 2, 0}, {false, onDuplicateIndex, 2, 0}} {
		i := DefaultIndex()
		i.Native, i.OnDuplicate, i.Keep = c.native, c.on, c.keep
		var f faults
		i.validateClusters(&f, "rule")
		expect.Same(t, c.faults, len(f), "%+v: %v", c, f)
	}
}

// TestPresetRules: texts of no index go by the section sketch, but never under the seed of an index. Presets that do not fit are left out: value64 goes neither with tags nor with the family of plagiarism.
func TestPresetRules(t *testing.T) {
	all := []string{"chunks", "default", "goods", "logs", "plagiarism", "safe", "thorough"}
	for section, names := range map[string][]string{
		"":                                   all,
		"seed: a":                            all,
		"seed: b, positions: 64":             all,
		"family: hamming, features: value64": {"chunks", "default", "logs", "safe", "thorough"},
	} {
		text := "sketch: {" + section + `}
engines: [{listen: ":1", kind: elasticsearch, urls: ["http://h:1"], indices: [{match: a, fields: [t]}]}]`
		c := expect.Value(Parse([]byte(text), environment()))(t)
		own, rules := expect.Value(c.Engines[0].Rules())(t)[0], c.Engines[0].PresetRules()
		expect.Same(t, names, slices.Sorted(maps.Keys(rules)), "presets with %q", section)
		secret := strings.Contains(section, "seed")
		expect.Same(t, secret, rules["default"].Sketcher.SchemeID() != own.Sketcher.SchemeID(), "another seed with %q", section)
		expect.Same(t, own.Profile, rules["default"].Profile, "the profile")
		expect.Same(t, own.Sketcher.Scheme().Positions, rules["safe"].Sketcher.Scheme().Positions, "the positions with %q", section)
	}
}

package main

import (
	"slices"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// preset is a name for the values that an entry of indices begins with.
type preset struct {
	name string
	// needs are the keys without which it can't do what it is for.
	needs []string
	// set changes what differs from the defaults.
	set func(i *IndexConfig)
}

// The keys that a preset may need, and the words in [IndexConfig.Same] and [IndexConfig.Different] for the field that one of them names.
const (
	hostField = "host_field"
	dateField = "date_field"
)

// presets are what the key preset can name: first how readily hits fold, then kinds of duplicates. docs/presets.md says where the figures
// come from.
var presets = []preset{
	{name: defaultPreset, set: ofProfile("default")},
	{name: "safe", set: ofProfile("safe")},
	{name: "thorough", set: ofProfile("thorough")},
	{name: "mirrors", needs: []string{hostField}, set: func(i *IndexConfig) {
		i.Threshold = 0.8
		i.Different = []string{hostField}
		i.Sketch.Content = string(sketch.ContentUseful)
	}},
	{name: "news", needs: []string{dateField}, set: func(i *IndexConfig) {
		i.Threshold = 0.64
		i.Within.Span = 3 * day
	}},
	{name: "versions", needs: []string{dateField}, set: func(i *IndexConfig) {
		i.Threshold = 0.52
		i.Representative = RepresentativeConfig{By: "newest"}
	}},
	{name: "plagiarism", set: func(i *IndexConfig) {
		i.Measure, i.Threshold, i.MinShingles = string(rerank.Containment), 0.6, 24
		i.Representative = RepresentativeConfig{By: "longest"}
		i.Expand = expandIDs
		i.Window = 300                             // two of these sketches take some fifty times as long to compare
		i.Sketch.Family = string(sketch.MSmallest) // finds an excerpt of a twentieth, where the packed ones need a fifth
	}},
	{name: "soft404", needs: []string{hostField}, set: func(i *IndexConfig) {
		i.Threshold, i.MinShingles = 0.7, 1
		i.Same = []string{hostField}
		i.Sketch.Content = string(sketch.ContentUseful)
	}},
	{name: "goods", set: func(i *IndexConfig) {
		i.Threshold, i.MinShingles = 0.75, 3
		i.Sketch.Features = string(sketch.Tags)
	}},
	{name: "chunks", set: func(i *IndexConfig) {
		i.Measure, i.Threshold = string(rerank.Containment), 0.6
		i.VectorWindow = 200
	}},
}

func ofProfile(name string) func(*IndexConfig) {
	return func(i *IndexConfig) {
		i.Threshold, i.MinShingles = rerank.Presets[name].Threshold, rerank.Presets[name].MinShingles
	}
}

// presetOf returns the preset with the name, or the default one.
func presetOf(name string) preset {
	return presets[max(0, slices.IndexFunc(presets, func(p preset) bool { return p.name == name }))]
}

func presetNames() (names []string) {
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// start returns what an entry of indices with the preset begins with, over the section sketch.
func (p preset) start(section SketchConfig) IndexConfig {
	section.Keep = slices.Clone(section.Keep)
	i := IndexConfig{
		Preset: p.name, Window: defaultWindow, Missing: "compute", VectorWindow: defaultVectorWindow,
		Measure: string(rerank.Resemblance), Keep: 1, Representative: RepresentativeConfig{By: "rank"},
		Totals: totalsEngine, Expand: expandOff, Sketch: section, Bands: bandsOff, OnDuplicate: onDuplicateIndex,
	}
	presets[0].set(&i)
	p.set(&i)
	return i
}

// named puts the field that host_field names in the place of that word.
func (i *IndexConfig) named() {
	if i.HostField == "" {
		return // which validation complains of
	}
	for _, fields := range [][]string{i.Same, i.Different} {
		for n, field := range fields {
			if field == hostField {
				fields[n] = i.HostField
			}
		}
	}
}

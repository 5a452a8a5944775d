package config

import (
	"slices"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Preset is a set of defaults for an entry of indices.
type Preset struct {
	Name string
	// Needs are the keys that an entry with the preset must have.
	Needs []string
}

// The keys that a preset may need, and the words in [Index.Same] and [Index.Different] for the field that one of them names.
const (
	hostField = "host_field"
	dateField = "date_field"
)

// Presets returns all presets: first those that differ in how readily hits fold, then those for a kind of duplicates.
func Presets() []Preset {
	return []Preset{
		{Name: defaultPreset}, {Name: "safe"}, {Name: "thorough"},
		{Name: "mirrors", Needs: []string{hostField}}, {Name: "news", Needs: []string{dateField}}, {Name: "versions", Needs: []string{dateField}},
		{Name: "plagiarism"}, {Name: "soft404", Needs: []string{hostField}}, {Name: "goods"}, {Name: "chunks"}, {Name: "logs"}, {Name: "vectors"},
	}
}

// apply sets the values in which the preset differs from the default one. docs/presets.md says where the numbers are from.
func (p Preset) apply(i *Index) {
	if profile, ok := rerank.Presets()[p.Name]; ok {
		i.Threshold, i.MinShingles, i.MinWords = profile.Threshold, profile.MinShingles, profile.MinWords
	}
	switch p.Name {
	case "mirrors":
		i.Threshold = 0.8
		i.Different = []string{hostField}
		i.Sketch.Content = string(sketch.ContentUseful)
	case "news":
		i.Threshold = 0.64
		i.Within.Span = 3 * day
	case "versions":
		i.Threshold = 0.52
		i.Representative = Representative{By: "newest"}
	case "plagiarism":
		i.Measure, i.Threshold, i.MinShingles, i.MinWords = string(rerank.Containment), 0.6, 24, 0
		i.Representative = Representative{By: "longest"}
		i.Expand = expandIDs
		i.Window = 300 // two of these sketches take about fifty times as long to compare
		i.Sketch.Positions = max(i.Sketch.Positions, 128)
		i.Sketch.Family = string(sketch.MSmallest) // finds an excerpt of a twentieth; the packed families need a fifth
	case "soft404":
		i.Threshold, i.MinShingles, i.MinWords = 0.7, 1, 0
		i.Same = []string{hostField}
		i.Sketch.Content = string(sketch.ContentUseful)
	case "goods":
		i.Threshold, i.MinShingles = 0.75, 3
		i.Sketch.Features = string(sketch.Tags)
	case "chunks":
		i.Measure, i.Threshold = string(rerank.Containment), 0.6
		i.VectorWindow = 200
	case "logs":
		i.Numbers = string(rerank.IgnoreNumbers)
	case "vectors":
		i.Threshold = vectorThreshold
		i.Sketch.Features, i.Sketch.Family, i.Sketch.Positions = string(sketch.Vectors), string(sketch.SimHash), vectorPositions
	}
}

// vectorPositions and vectorThreshold are for vectors, alone or beside texts.
const (
	vectorPositions = 1024
	vectorThreshold = 0.9
)

// PresetOf returns the preset with the name, or the default one.
func PresetOf(name string) Preset {
	all := Presets()
	return all[max(0, slices.IndexFunc(all, func(p Preset) bool { return p.Name == name }))]
}

// PresetNames returns the names of all presets.
func PresetNames() (names []string) {
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// Start returns the defaults of an entry of indices with the preset, given the section sketch.
func (p Preset) Start(section Sketch) Index {
	i := Index{
		Preset: p.Name, Window: DefaultWindow, Missing: "compute", AdvancedIndex: AdvancedIndex{defaultVectorWindow},
		Measure: string(rerank.Resemblance), Numbers: string(rerank.CountNumbers), Keep: 1, Representative: Representative{By: "rank"},
		Totals: totalsEngine, Counts: countsEngine, Expand: expandOff, Sketch: section, Bands: bandsOff, OnDuplicate: onDuplicateIndex, Cases: []Case{},
		Vector: Vector{Threshold: vectorThreshold, Combine: string(rerank.Both)},
	}
	Preset{Name: defaultPreset}.apply(&i)
	p.apply(&i)
	return i
}

// resolveHost replaces the word host_field in same and different by the field that this key names.
func (i *Index) resolveHost() {
	if i.HostField == "" {
		return // an error for validation
	}
	for _, fields := range [][]string{i.Same, i.Different} {
		for n, field := range fields {
			if field == hostField {
				fields[n] = i.HostField
			}
		}
	}
}

package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/sketch"
)

// PresetError says why an entry can't have another preset, and what to do.
type PresetError struct{ Why, Hint string }

func (e *PresetError) Error() string { return e.Why }

func badPreset(why, hint string) error { return &PresetError{why, hint} }

// Under returns the entry with another preset. Which indices and fields it is for stays the same, and so does what it overrides of the
// section sketch; the preset decides what folds.
func (i Index) Under(name string, section Sketch) (Index, error) {
	if !slices.Contains(PresetNames(), name) {
		return i, badPreset(fmt.Sprintf("preset: %.60q is unknown", name), "Use "+Either(PresetNames())+".")
	}
	p := PresetOf(name)
	other := p.Start(section)
	if vectors := string(sketch.Vectors); (other.Sketch.Features == vectors) != (i.Sketch.Features == vectors) {
		return i, badPreset(fmt.Sprintf("preset %s does not fit the rule of %s: one compares texts, the other vectors", name, i.Match), "Choose another preset.")
	}
	other.Match, other.Fields, other.Missing = i.Match, i.Fields, i.Missing
	other.Boilerplate, other.Passages = i.Boilerplate, i.Passages
	other.DateField, other.HostField, other.Cases = i.DateField, i.HostField, i.Cases
	other.Vector = i.Vector
	own := reflect.ValueOf(&other.Sketch).Elem()
	start, entry := reflect.ValueOf(PresetOf(i.Preset).Start(section).Sketch), reflect.ValueOf(i.Sketch)
	for n := range entry.NumField() {
		if !reflect.DeepEqual(start.Field(n).Interface(), entry.Field(n).Interface()) {
			own.Field(n).Set(entry.Field(n))
		}
	}
	other.resolveHost()
	var f faults
	other.validate(&f, "rule")
	other.validateSketch(&f, "rule", &section)
	for _, need := range p.Needs {
		if other.HostField == "" && need == hostField || other.DateField == "" && need == dateField {
			return other, badPreset(fmt.Sprintf("preset %s needs %s", name, need),
				"Add "+need+" to the rule of "+i.Match+" in the configuration.")
		}
	}
	if len(f) > 0 {
		why := errors.Unwrap(f[0]).Error()
		return other, badPreset("preset "+name+" does not fit the rule of "+i.Match+": "+why, "Choose another preset.")
	}
	return other, nil
}

// YAML returns the entry as YAML: the keys that differ from its preset, and always the threshold and the window.
func (i Index) YAML(section Sketch) string {
	start := PresetOf(i.Preset).Start(section)
	start.HostField = i.HostField
	start.resolveHost()
	start.HostField = ""
	entry := diff(reflect.ValueOf(i), reflect.ValueOf(start), "match", "fields", "preset", "threshold", "window")
	return encode(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{entry}})
}

// diff returns the keys of a section that differ from another's, and those that are always shown. A nested section takes one line. Secrets
// and cases are not shown.
func diff(values, from reflect.Value, always ...string) *yaml.Node {
	section := &yaml.Node{Kind: yaml.MappingNode}
	var hidden []string
	for field, value := range values.Fields() {
		key, start := keyOf(field), from.FieldByIndex(field.Index)
		if key == "" || !slices.Contains(always, key) && reflect.DeepEqual(value.Interface(), start.Interface()) {
			continue
		}
		switch value.Interface().(type) {
		case Secret, []Case:
			hidden = append(hidden, key)
			continue
		}
		shown := node(value.Interface())
		if shown.Kind == yaml.MappingNode {
			shown = diff(value, start)
			shown.Style = yaml.FlowStyle
		}
		section.Content = append(section.Content, node(key), shown)
	}
	if len(hidden) > 0 {
		section.LineComment = "# and its " + strings.Join(hidden, ", ")
	}
	return section
}

package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// PresetError says why an entry can't go under another preset, and what to do.
type PresetError struct{ Why, Hint string }

func (e *PresetError) Error() string { return e.Why }

func badPreset(why, hint string) error { return &PresetError{why, hint} }

// Under returns the entry under another preset: what folds is the preset's, which documents and which texts are the entry's, and
// so is what of the section sketch it has of its own.
func (i Index) Under(name string, section Sketch) (Index, error) {
	if !slices.Contains(PresetNames(), name) {
		return i, badPreset(fmt.Sprintf("preset: %.60q is unknown", name), "Use "+Either(PresetNames())+".")
	}
	p := PresetOf(name)
	other := p.Start(section)
	other.Match, other.Fields, other.Missing = i.Match, i.Fields, i.Missing
	other.DateField, other.HostField = i.DateField, i.HostField
	own := reflect.ValueOf(&other.Sketch).Elem()
	was, is := reflect.ValueOf(PresetOf(i.Preset).Start(section).Sketch), reflect.ValueOf(i.Sketch)
	for n := range is.NumField() {
		if !reflect.DeepEqual(was.Field(n).Interface(), is.Field(n).Interface()) {
			own.Field(n).Set(is.Field(n))
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

// YAML returns the entry as YAML: what differs from its preset, and always the threshold and the window.
func (i Index) YAML(section Sketch) string {
	start := PresetOf(i.Preset).Start(section)
	start.HostField = i.HostField
	start.resolveHost()
	start.HostField = ""
	entry := differing(reflect.ValueOf(i), reflect.ValueOf(start), "match", "fields", "preset", "threshold", "window")
	return encode(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{entry}})
}

// differing returns the keys of a section that differ, and those that are always shown. A section in it takes one line. Secrets
// are not shown.
func differing(is, was reflect.Value, always ...string) *yaml.Node {
	section := &yaml.Node{Kind: yaml.MappingNode}
	var hidden []string
	for n, field := range reflect.VisibleFields(is.Type()) {
		key, value := keyOf(field), is.Field(n)
		if key == "" || !slices.Contains(always, key) && reflect.DeepEqual(value.Interface(), was.Field(n).Interface()) {
			continue
		}
		if _, secret := value.Interface().(Secret); secret {
			hidden = append(hidden, key)
			continue
		}
		below := node(value.Interface())
		if below.Kind == yaml.MappingNode {
			below = differing(value, was.Field(n))
			below.Style = yaml.FlowStyle
		}
		section.Content = append(section.Content, node(key), below)
	}
	if len(hidden) > 0 {
		section.LineComment = "# and its " + strings.Join(hidden, ", ")
	}
	return section
}

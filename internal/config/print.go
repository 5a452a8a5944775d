package config

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes the whole configuration as YAML: what the file says, with variables replaced, presets applied and defaults filled
// in. Secrets are hidden; all else, read again, is the same configuration.
func (c *Config) Print(w io.Writer) error {
	text := fmt.Sprintf("# What %s amounts to. Secrets stand here as %s\n", c.File, Hidden) + encode(node(reflect.ValueOf(*c)))
	_, err := io.WriteString(w, text)
	return err
}

// Tree returns the same for JSON: sections as objects with their keys, and each value as a number, a truth value or a text.
func (c *Config) Tree() (tree any) {
	_ = node(reflect.ValueOf(*c)).Decode(&tree) // a tree of ours has nothing that can't be decoded
	return tree
}

// node returns a value of the configuration as YAML. Secrets are hidden.
func node(value reflect.Value) *yaml.Node {
	switch v := value.Interface().(type) {
	case Secret:
		return textNode(v.String())
	case Representative:
		if v.By != "" {
			return textNode(v.By)
		}
	}
	switch value.Kind() {
	case reflect.String:
		return textNode(redactURL(value.String()))
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		if value.Type().Elem().Kind() != reflect.Struct {
			list.Style = yaml.FlowStyle
		}
		for i := range value.Len() {
			list.Content = append(list.Content, node(value.Index(i)))
		}
		return list
	case reflect.Struct:
		section := &yaml.Node{Kind: yaml.MappingNode}
		for field, below := range value.Fields() {
			if key := field.Tag.Get("mapstructure"); key != "" && key != "-" {
				section.Content = append(section.Content, plainNode(key), node(below))
			}
		}
		return section
	}
	return plainNode(fmt.Sprint(value.Interface())) // a number, a truth value, a size or a span
}

func plainNode(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// plainYAML is a text that YAML takes as it is without quotes, but for the words below, which YAML 1.1 takes for something else.
var (
	plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	wordsYAML = regexp.MustCompile(`^(?i:y|yes|n|no|true|false|on|off|null|nan|inf)$`)
)

func textNode(text string) *yaml.Node {
	n := plainNode(strings.ToValidUTF8(text, "\uFFFD"))
	if n.Tag = "!!str"; !plainYAML.MatchString(text) || wordsYAML.MatchString(text) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// Quote returns a text as YAML: as it stands where that is safe, otherwise in double quotes. A dollar sign is doubled, so that
// it is not a variable when it is read again.
func Quote(text string) string { return strings.TrimSuffix(encode(textNode(text)), "\n") }

// encode writes a value, with every dollar sign doubled.
func encode(n *yaml.Node) string {
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	_ = e.Encode(doubled(n)) // nothing of ours can't be written
	return text.String()
}

func doubled(n *yaml.Node) *yaml.Node {
	n.Value = strings.ReplaceAll(n.Value, "$", "$$")
	for _, below := range n.Content {
		doubled(below)
	}
	return n
}

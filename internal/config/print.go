package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns the whole configuration, with variables replaced, presets applied and defaults filled in. Secrets are hidden. Apart from
// those, reading it gives the same configuration.
func (c *Config) YAML() string {
	return fmt.Sprintf("# %s with presets and defaults filled in. Secrets are shown as %s\n%s", c.File, Hidden, encode(node(c)))
}

// Tree returns the same for JSON: sections as objects with their keys, and each value as a number, a truth value or a text.
func (c *Config) Tree() (tree any) {
	_ = node(c).Decode(&tree) // a configuration can always be decoded
	return tree
}

// node returns a value of the configuration as YAML. Secrets are hidden.
func node(value any) *yaml.Node {
	n := &yaml.Node{}
	_ = n.Encode(value) // a configuration can always be encoded
	style(n)
	return n
}

// plainYAML matches text that needs no quotes. The encoder adds them to words that YAML reads as another type.
var plainYAML = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]*$`)

// style hides secrets in URLs, writes short lists on one line, and quotes everything but words.
func style(n *yaml.Node) {
	switch n.Value = redactURL(n.Value); {
	case n.Kind == yaml.SequenceNode && (len(n.Content) == 0 || n.Content[0].Kind == yaml.ScalarNode):
		n.Style = yaml.FlowStyle
	case n.Tag == "!!str" && !plainYAML.MatchString(n.Value):
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		style(child)
	}
}

// Quote returns a text as YAML, in double quotes if it needs them. A dollar sign is doubled, so that it is not read as a variable.
func Quote(text string) string {
	return strings.TrimSuffix(encode(node(strings.ToValidUTF8(text, "\uFFFD"))), "\n")
}

// encode writes a value, with every dollar sign doubled.
func encode(n *yaml.Node) string {
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	_ = e.Encode(escapeDollars(n)) // a configuration can always be encoded
	return text.String()
}

func escapeDollars(n *yaml.Node) *yaml.Node {
	n.Value = strings.ReplaceAll(n.Value, "$", "$$")
	for _, child := range n.Content {
		escapeDollars(child)
	}
	return n
}

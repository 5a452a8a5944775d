package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns the whole configuration: what the file says, with variables replaced, presets applied and defaults filled
// in. Secrets are hidden; all else, read again, is the same configuration.
func (c *Config) YAML() string {
	return fmt.Sprintf("# What %s amounts to. Secrets stand here as %s\n%s", c.File, Hidden, encode(node(c)))
}

// Tree returns the same for JSON: sections as objects with their keys, and each value as a number, a truth value or a text.
func (c *Config) Tree() (tree any) {
	_ = node(c).Decode(&tree) // a tree of ours has nothing that can't be decoded
	return tree
}

// node returns a value of the configuration as YAML. Secrets are hidden.
func node(value any) *yaml.Node {
	n := &yaml.Node{}
	_ = n.Encode(value) // nothing of ours can't be written
	style(n)
	return n
}

// plainYAML is a text that stands without quotes, unless it is one that YAML takes for something else.
var plainYAML = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]*$`)

// style hides what a URL may hide, and has short lists on one line and quotes around all but words.
func style(n *yaml.Node) {
	switch n.Value = redactURL(n.Value); {
	case n.Kind == yaml.SequenceNode && (len(n.Content) == 0 || n.Content[0].Kind == yaml.ScalarNode):
		n.Style = yaml.FlowStyle
	case n.Tag == "!!str" && !plainYAML.MatchString(n.Value):
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, below := range n.Content {
		style(below)
	}
}

// Quote returns a text as YAML: as it stands where that is safe, otherwise in double quotes. A dollar sign is doubled, so that
// it is not a variable when it is read again.
func Quote(text string) string {
	return strings.TrimSuffix(encode(node(strings.ToValidUTF8(text, "\uFFFD"))), "\n")
}

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

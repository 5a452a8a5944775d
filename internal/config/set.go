package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SetThreshold returns the text of a configuration file with another threshold in an entry of indices, by the name of the engine, the place of the entry
// and its match. Nothing else changes. It fails where the entry is another one by now, or written in a way in which that can't be told.
func SetThreshold(text []byte, env Lookup, name string, index int, match string, threshold float64) ([]byte, error) {
	before, err := Parse(text, env)
	if err != nil {
		return nil, err
	}
	engine := slices.IndexFunc(before.Engines, func(e Engine) bool { return e.Name == name })
	if engine < 0 || index >= len(before.Engines[engine].Indices) || before.Engines[engine].Indices[index].Match != match {
		return nil, fmt.Errorf("engines: the file has changed meanwhile: write threshold: %v into the rule for %s yourself", threshold, match)
	}
	unsure := fmt.Errorf("engines[%d].indices[%d].threshold: can't be set without changing more: write threshold: %v there yourself", engine, index, threshold)
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil || len(root.Content) != 1 {
		return nil, unsure
	}
	entry := entryOf(memberOf(entryOf(memberOf(root.Content[0], "engines"), engine), "indices"), index)
	lines := strings.SplitAfter(string(text), "\n")
	value := strconv.FormatFloat(threshold, 'f', -1, 64)
	switch old, matched := memberOf(entry, "threshold"), memberOf(entry, "match"); {
	case old != nil:
		line := []rune(lines[old.Line-1])
		if end := old.Column - 1 + len([]rune(old.Value)); end > len(line) || string(line[old.Column-1:end]) != old.Value {
			return nil, unsure
		}
		lines[old.Line-1] = string(line[:old.Column-1]) + value + string(line[old.Column-1+len([]rune(old.Value)):])
	case matched != nil && entry.Style&yaml.FlowStyle == 0 && strings.HasSuffix(lines[matched.Line-1], "\n"):
		end := "\n"
		if strings.HasSuffix(lines[matched.Line-1], "\r\n") {
			end = "\r\n"
		}
		lines = slices.Insert(lines, matched.Line, strings.Repeat(" ", entry.Content[0].Column-1)+"threshold: "+value+end)
	default:
		return nil, unsure
	}
	changed := []byte(strings.Join(lines, ""))
	after, err := Parse(changed, env)
	if err != nil {
		return nil, unsure
	}
	before.Engines[engine].Indices[index].Threshold = threshold
	forgetLines(before)
	forgetLines(after)
	if !reflect.DeepEqual(before, after) {
		return nil, unsure
	}
	return changed, nil
}

// forgetLines forgets in which lines cases stand.
func forgetLines(c *Config) {
	for _, e := range c.Engines {
		for _, index := range e.Indices {
			for i := range index.Cases {
				index.Cases[i].Line = 0
			}
		}
	}
}

// memberOf returns the value of a key in a mapping, or nil.
func memberOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if strings.EqualFold(n.Content[i].Value, key) {
			return n.Content[i+1]
		}
	}
	return nil
}

// entryOf returns an entry of a list, or nil.
func entryOf(n *yaml.Node, at int) *yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode || at >= len(n.Content) {
		return nil
	}
	return n.Content[at]
}

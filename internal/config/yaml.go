package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// readYAML returns the sections of a configuration file, with their keys in lower case, and the lines of the keys.
func readYAML(text []byte) (map[string]any, keyLines, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, nil, notYAML(text, err)
	}
	for _, top := range root.Content {
		if top.Kind != yaml.MappingNode && top.Tag != "!!null" {
			return nil, nil, &KeyError{Line: top.Line, Err: errors.New(`has no sections here: begin with a section such as "engines:" or "log:"`)}
		}
	}
	// Viper splits keys at its delimiter. No key contains "::"; a key with a dot is unknown like any other.
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(text)); err != nil {
		return nil, nil, notYAML(text, errors.Unwrap(err))
	}
	lines, settings := keyLines{}, v.AllSettings()
	lines.add("", &root)
	for key := range lines {
		if _, has := settings[key]; !has && key != "" && !strings.ContainsAny(key, ".[") {
			settings[key] = nil // an empty section, which viper leaves out
		}
	}
	return settings, lines, nil
}

// keyLines are the lines of keys and list entries, by their full names.
type keyLines map[string]int

// add adds the keys and entries of a node. It does not follow aliases: what they stand for is in the line of the alias.
func (l keyLines) add(at string, n *yaml.Node) {
	for i, child := range n.Content {
		name, line := at, child.Line
		switch n.Kind {
		case yaml.SequenceNode:
			name = fmt.Sprintf("%s[%d]", at, i)
		case yaml.MappingNode:
			if i%2 == 0 {
				continue
			}
			key := n.Content[i-1]
			if key.Tag == "!!merge" {
				break // what it merges belongs to this section
			}
			name, line = strings.TrimPrefix(at+"."+strings.ToLower(key.Value), "."), key.Line
		}
		l[name] = line
		l.add(name, child)
	}
}

// of returns the line of a key, or of the section in which it is missing.
func (l keyLines) of(key string) int {
	for key != "" && l[key] == 0 {
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return max(1, l[key])
}

var (
	parserLine = regexp.MustCompile(`line (\d+): (.*)`)
	tabIndent  = regexp.MustCompile(`(?m)^ *\t`)
	keyTwice   = regexp.MustCompile(`mapping key (".*") already defined at (line \d+)`)
)

// notYAML returns an error of the parser, with its line, and in words of ours if it is a common one.
func notYAML(text []byte, err error) *KeyError {
	line, message := 1, strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: ")
	if found := parserLine.FindStringSubmatch(message); found != nil {
		line, _ = strconv.Atoi(found[1])
		message = found[2]
	}
	tab, twice := tabIndent.FindIndex(text), keyTwice.FindStringSubmatch(message)
	switch {
	case twice != nil:
		message = fmt.Sprintf("the key %s is here twice, first in %s: drop one", twice[1], twice[2])
	case tab != nil:
		line = 1 + bytes.Count(text[:tab[0]], []byte("\n"))
		message = "this line begins with a tab: indent with spaces"
	default:
		message += ": check the quotes, brackets and spaces here and in the line before"
	}
	return &KeyError{Line: line, Err: fmt.Errorf("is not valid YAML: %s", message)}
}

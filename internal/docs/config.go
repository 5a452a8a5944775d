package docs

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// around is what stands around a part of a configuration. What the part says wins.
const around = `admin: ""
engines:
  - listen: 127.0.0.1:9201
    kind: elasticsearch
    urls: ["http://127.0.0.1:9200"]
    indices:
      - match: news-*
        fields: [title, body]
`

// Complete makes a configuration of a part. The path says where it belongs: "indices[]" for entries of indices (the key itself
// may stand above them, or the keys of one entry alone), "engines[].limits" for what stands below, "" for keys of the root.
func Complete(part, path string) (string, error) {
	var read yaml.Node
	if err := yaml.Unmarshal([]byte(part), &read); err != nil {
		return "", err
	}
	if len(read.Content) == 0 {
		return "", errors.New("holds nothing")
	}
	value := read.Content[0]
	var steps []string
	if path != "" {
		steps = strings.Split(path, ".")
	}
	if len(steps) > 0 && strings.TrimSuffix(steps[0], "[]") == "indices" {
		steps = append([]string{"engines[]"}, steps...)
	}
	for i := len(steps) - 1; i >= 0; i-- {
		name, list := strings.CutSuffix(steps[i], "[]")
		if i == len(steps)-1 && value.Kind == yaml.MappingNode && len(value.Content) == 2 && value.Content[0].Value == name {
			value = value.Content[1]
		}
		if list && value.Kind != yaml.SequenceNode {
			value = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{value}}
		}
		value = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: name}, value}}
	}
	if value.Kind != yaml.MappingNode {
		return "", fmt.Errorf("is no part of a configuration at %q: say by the marker where it belongs", path)
	}
	var whole yaml.Node
	if err := yaml.Unmarshal([]byte(around), &whole); err != nil {
		return "", err
	}
	text, err := yaml.Marshal(over(whole.Content[0], value))
	return string(text), err
}

// over lays one value over another: of mappings key by key, of lists entry by entry over the other's first, else as a whole.
func over(below, above *yaml.Node) *yaml.Node {
	switch {
	case above.Kind == yaml.MappingNode && below.Kind == yaml.MappingNode:
		result := &yaml.Node{Kind: yaml.MappingNode}
		for i := 0; i+1 < len(below.Content); i += 2 {
			value := below.Content[i+1]
			if own := child(above, below.Content[i].Value); own != nil {
				value = over(value, own)
			}
			result.Content = append(result.Content, below.Content[i], value)
		}
		for i := 0; i+1 < len(above.Content); i += 2 {
			if child(below, above.Content[i].Value) == nil {
				result.Content = append(result.Content, above.Content[i], above.Content[i+1])
			}
		}
		return result
	case above.Kind == yaml.SequenceNode && below.Kind == yaml.SequenceNode && len(below.Content) > 0:
		result := &yaml.Node{Kind: yaml.SequenceNode}
		for _, entry := range above.Content {
			result.Content = append(result.Content, over(below.Content[0], entry))
		}
		return result
	}
	return above
}

// child returns the value of a key, or nil.
func child(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

var (
	absolute = regexp.MustCompile(`/(?:etc|run|var|usr)/[A-Za-z0-9_./-]+`)
	variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// Files moves the files that a configuration names below a folder, and returns where each of them is to be.
func Files(config, folder string) (moved string, files []string) {
	moved = absolute.ReplaceAllStringFunc(config, func(path string) string {
		file := filepath.Join(folder, filepath.FromSlash(path))
		files = append(files, file)
		return file
	})
	return moved, files
}

// Variables returns the environment variables without which a configuration is not whole.
func Variables(config string) (names []string) {
	for _, m := range variable.FindAllStringSubmatch(config, -1) {
		names = append(names, m[1])
	}
	return names
}

package config

import (
	"os"
	"slices"
	"strings"
)

// Names returns the names of the engines and the patterns of the indices in a configuration file, for completing command lines. The file need not
// be valid, nor its variables be set: a name that holds one is left out.
func Names(file string) (engines, indices []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil
	}
	v, err := readYAML(text)
	if err != nil {
		return nil, nil
	}
	add := func(list *[]string, value any) bool {
		name, ok := value.(string)
		ok = ok && name != "" && !strings.Contains(name, "$")
		if ok && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
		return ok
	}
	for _, engine := range sections(v.AllSettings()["engines"]) {
		if !add(&engines, engine["name"]) {
			add(&engines, engine["kind"])
		}
		for _, index := range sections(engine["indices"]) {
			add(&indices, index["match"])
		}
	}
	return engines, indices
}

// sections returns those entries of a list that have keys.
func sections(list any) (all []map[string]any) {
	entries, _ := list.([]any)
	for _, entry := range entries {
		if section, ok := entry.(map[string]any); ok {
			all = append(all, section)
		}
	}
	return all
}

package config

import (
	"os"
	"slices"
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
	c, _ := decode(v, func(string) (string, bool) { return "", false })
	for _, e := range c.Engines {
		engines = append(engines, e.Name)
		for _, i := range e.Indices {
			indices = append(indices, i.Match)
		}
	}
	return distinct(engines), distinct(indices)
}

// distinct returns the names of a list, each once.
func distinct(list []string) []string {
	var names []string
	for _, name := range list {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

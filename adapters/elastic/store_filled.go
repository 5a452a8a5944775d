package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/neardup/sidecar/adapters"
)

// Filled says, for an operator, how the mapping of an index fills fields of ours with what is not in them: a line each. Searches read such values,
// and no document shows them.
func (s *Store) Filled(ctx context.Context, index string) ([]string, error) {
	is, err := s.shape(ctx, index)
	if err != nil {
		return nil, err
	}
	var mapping struct {
		Runtime map[string]json.RawMessage
	}
	if err := json.Unmarshal(is.Mappings, &mapping); err != nil {
		return nil, fmt.Errorf("the mapping of %s is not understood: %w", index, err)
	}
	found := filled("", is.Mappings)
	for _, name := range slices.Sorted(maps.Keys(mapping.Runtime)) {
		if adapters.Our(name) {
			found = append(found, name+" is a runtime field")
		}
	}
	return found, nil
}

// filled returns how a field and those below it fill ours.
func filled(path string, field json.RawMessage) (found []string) {
	var f struct {
		Type, Path string
		CopyTo     json.RawMessage `json:"copy_to"`
		Properties map[string]json.RawMessage
	}
	if json.Unmarshal(field, &f) != nil {
		return nil
	}
	var one string
	var targets []string
	if json.Unmarshal(f.CopyTo, &one) == nil {
		targets = []string{one}
	} else {
		_ = json.Unmarshal(f.CopyTo, &targets) // the engine shows one name or several
	}
	for _, target := range targets {
		if adapters.Our(target) {
			found = append(found, path+" is copied to "+target+" (copy_to)")
		}
	}
	if f.Type == "alias" && adapters.Our(path) {
		found = append(found, path+" is an alias of "+f.Path)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		below := name
		if path != "" {
			below = path + "." + name
		}
		found = append(found, filled(below, f.Properties[name])...)
	}
	return found
}

package elastic

import (
	"context"
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
	var found []string
	eachField("", is.Mappings, func(path string, field mapped) {
		for _, target := range namesWithin(field.CopyTo) {
			if adapters.Our(target) {
				found = append(found, path+" is copied to "+target+" (copy_to)")
			}
		}
		if field.Type == "alias" && adapters.Our(path) {
			found = append(found, path+" is an alias of "+field.Path)
		}
		for _, name := range slices.Sorted(maps.Keys(field.Runtime)) {
			if adapters.Our(name) {
				found = append(found, name+" is a runtime field")
			}
		}
	})
	return found, nil
}

package typesense

import (
	"context"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// Listed returns the collections that a store's key may see, with how many documents each holds.
func Listed(ctx context.Context, st adapters.Store) ([]adapters.Listed, error) {
	s, ok := st.(*store)
	if !ok {
		return nil, errForeign
	}
	all, err := s.collections(ctx, "")
	if err != nil {
		return nil, err
	}
	var list []adapters.Listed
	for _, c := range all {
		if strings.HasPrefix(c.Name, ".") && s.rules.For(c.Name) == nil {
			continue
		}
		list = append(list, adapters.Listed{Index: adapters.Index{Name: c.Name}, Documents: c.NumDocuments})
	}
	slices.SortFunc(list, func(a, b adapters.Listed) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

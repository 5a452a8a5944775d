package collapse

import (
	"context"
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
)

// countGroups reads the client's facets over the documents that are shown of the window, where they are to count groups. Where nothing folds, those over all
// hits are the same.
func (s *search) countGroups(ctx context.Context) error {
	if s.asked.Counting == nil || s.counts() == adapters.CountsExact && s.found.Stats().Folded == 0 {
		return nil
	}
	shown := slices.Sorted(slices.Values(s.found.Shown)) // another representative than the first-ranked can be anywhere
	listing, err := s.read(ctx, &adapters.Reading{Ranks: shown, Known: s.compared, Sources: true, Counts: true})
	if alone, is := errors.AsType[adapters.Alone](err); is && alone.Reason == adapters.ReasonUncountable && s.asked.Size > 0 {
		s.special.uncounted, err = true, nil // the page is as good without
	}
	s.special.counted = listing
	return err
}

// counts returns what facets count by group: the groups of the whole list if all of it was compared.
func (s *search) counts() adapters.Counts {
	if s.special.uncounted {
		return adapters.CountsEngine
	}
	total := s.total()
	if s.found.Stats().Ended && (len(s.compared) < s.page.Window || total >= 0 && total <= s.page.Window && !s.counted.AtLeast) {
		return adapters.CountsExact
	}
	return adapters.CountsWindow
}

// withCounts returns the result that the client gets with what was counted by group.
func (s *search) withCounts(result adapters.Pieces) (adapters.Pieces, error) {
	if s.special.counted == nil {
		return result, nil
	}
	counted, err := s.asked.Counting.WithCounts(result.Bytes(), s.special.counted)
	return adapters.Pieces{counted}, err
}

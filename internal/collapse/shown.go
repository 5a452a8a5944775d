package collapse

import (
	"context"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// readPageHits reads the hits of the page as the client wants them, once their ranks are known. They are not judged again: their ids
// alone are compared with the first reading, to see whether the list moved.
func (s *search) readPageHits(ctx context.Context, page []int) error {
	if err := s.decideOnOwnPage(); err != nil {
		return err
	}
	r := adapters.Reading{Ranks: page, Sources: true, Known: s.compared, Texts: s.special.texts.beside, Frame: s.wantsFrame()}
	if s.asked.Ways.Scattered && s.asked.Scope.Expand == rule.ExpandSource {
		r.Ranks = s.withFolded(page)
	}
	r.From, r.To = r.Ranks[0], r.Ranks[len(r.Ranks)-1]+1
	listing, err := s.read(ctx, &r)
	if err != nil {
		return err
	}
	if err = s.keep(ctx, &r, listing); err != nil {
		return err
	}
	hits, err := s.unmoved(&r, page, listing)
	if err != nil {
		return err
	}
	return s.found.Add(hits)
}

// unmoved returns those hits of a reading that are of the page; none if one that was judged is not there any more, for then the list has moved.
func (s *search) unmoved(r *adapters.Reading, page []int, l *adapters.Listing) (shown []rerank.Hit, err error) {
	hits := make([]rerank.Hit, len(l.Hits))
	for i := range hits {
		hits[i].ID = l.Hits[i].ID
	}
	if !s.found.Agrees(r.Ranks, hits) {
		if s.special.moved = true; s.needsPoint(adapters.ErrMoved) {
			return nil, adapters.ErrMoved // it is not read again but in a point in time
		}
		return nil, nil
	}
	for i, rank := range r.Ranks[:min(len(hits), len(r.Ranks))] {
		if _, of := slices.BinarySearch(page, rank); of {
			shown = append(shown, hits[i])
		}
	}
	return shown, nil
}

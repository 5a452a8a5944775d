package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
)

// needsPoint reports whether the search is to go on in a point in time: the list moved while it was read, or the engine's limit cuts the page short.
func (s *search) needsPoint(err error) bool {
	return s.asked.Point != nil && !s.special.pointed && s.all.Single && !s.all.Plan.Late() &&
		(errors.Is(err, adapters.ErrMoved) || err == nil && s.found.Stats().Limited)
}

// inPoint answers the search in a point in time. Where that fails it goes on without: with the result that is cut short, or, where the list
// moved, with what is read next.
func (s *search) inPoint(ctx context.Context, short adapters.Pieces, cause error) (adapters.Pieces, adapters.Outcome, error) {
	s.special.pointed = true
	pointed, giveBack, err := s.open(ctx)
	if pointed != nil {
		var result adapters.Pieces
		result, err = pointed.answerCollapsed(ctx)
		_, _ = s.all.exchange(ctx, giveBack) // the engine gives it up by itself after a while
		if err == nil {
			s.all.reply = pointed.all.reply
			return result, pointed.outcome(), nil
		}
		s.special.uncollapsed, s.rounds = pointed.special.uncollapsed, pointed.rounds
	}
	refused, isRefused := errors.AsType[*Refused](err)
	switch {
	case cause == nil && (pointed != nil || err == nil || adapters.IsLate(err)):
		return short, s.outcome(), nil
	case adapters.IsLate(err), isRefused && refused.Reply.Status >= 429, pointed == nil && err != nil:
		return s.leave(ctx, err)
	case pointed != nil: // it is gone, or not for us
		s.frame = nil // what was read is of another list
	case !s.special.moved:
		return s.leave(ctx, cause)
	default:
		s.special.atOnce = true
	}
	result, err := s.answerCollapsed(ctx)
	if err != nil {
		return s.leave(ctx, err)
	}
	return result, s.outcome(), nil
}

// open opens a point in time and returns the search in it, begun anew, and the request that gives it back; nil where the engine grants none.
func (s *search) open(ctx context.Context) (pointed *search, giveBack *adapters.Request, err error) {
	replies, err := s.all.exchange(ctx, s.asked.Point.Open())
	if err != nil {
		return nil, nil, err
	}
	if s.rounds++; replies[0].Status >= 300 {
		return nil, nil, nil
	}
	in, giveBack := s.asked.Point.In(replies[0])
	if in == nil {
		return nil, nil, nil
	}
	all := *s.all.Searches
	all.List = []adapters.Search{in}
	pointed = (&conversation{Searches: &all, exchange: s.all.exchange}).newSearch(in)
	pointed.special.pointed, pointed.special.native = true, s.special.native
	pointed.special.uncollapsed, pointed.rounds = s.special.uncollapsed, s.rounds
	return pointed, giveBack, nil
}

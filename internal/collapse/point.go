package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// opens returns the request that opens a point in time, where the search is to go on in one: the list moved while it was read, or the engine's
// limit cuts the page short. It is nil for all others.
func (s *search) opens(err error) *adapters.Request {
	pointed, ok := s.Search.(adapters.Pointed)
	moved := errors.Is(err, adapters.ErrMoved) || errors.Is(err, rerank.ErrUnsettled)
	if !ok || s.pointed || s.alone == nil || s.plan.Struck() || !moved && (err != nil || !s.pager.Stats().Limited) {
		return nil
	}
	return pointed.Open()
}

// inPoint answers the search in a point in time. Where the engine grants none it goes on as it was: with the result that is cut short, or,
// where the list moved, without.
func (s *search) inPoint(ctx context.Context, short []byte, cause error) ([]byte, adapters.Outcome, error) {
	c := s.alone
	open, outcome := s.opens(cause), s.outcome()
	s.pointed = true
	replies, err := c.send(ctx, open)
	if err == nil {
		s.read.rounds++
		outcome.Rounds++
	}
	var in *adapters.Searches
	if err == nil && replies[0].Status < 300 {
		in, c.giveBack = s.Search.(adapters.Pointed).In(replies[0])
	}
	began := in != nil
	if began {
		point := &conversation{Searches: in, send: c.send}
		t := newSearch(in, 0, point, nil)
		t.native, t.read.own, t.read.ownFrom, t.read.rounds = s.native, s.read.own, s.read.ownFrom, s.read.rounds
		t.begin(s.asked.From, s.asked.Size)
		var result []byte
		if result, err = t.collapse(ctx); err == nil {
			c.reply = point.reply
			return result, t.outcome(), nil
		}
		s.read.own, s.read.ownFrom, s.read.rounds = t.read.own, t.read.ownFrom, t.read.rounds
	}
	refused, isRefused := errors.AsType[*Refused](err)
	switch {
	case cause == nil && (err == nil || began || adapters.IsLate(err)):
		return short, outcome, nil
	case adapters.IsLate(err), isRefused && refused.Reply.Status >= 429, err != nil && !began:
		return s.leave(ctx, err)
	case began:
		s.read.frame = nil // what was read is of another list
		s.again()
	case s.pager.Moved() == 0:
		return s.leave(ctx, cause)
	}
	result, err := s.collapse(ctx)
	if err != nil {
		return s.leave(ctx, err)
	}
	return result, s.outcome(), nil
}

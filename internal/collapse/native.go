package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// natively has the engine collapse the search. The result is nil where the search goes on at query time.
func (s *search) natively(ctx context.Context) (result adapters.Pieces, o adapters.Outcome, err error) {
	scope := &s.asked.Scope
	if s.special.native.Fell = scope.Fell; scope.Fell == "" && scope.Costly && s.asked.Counting != nil {
		s.special.native.Fell = adapters.ReasonNativeRefused
	}
	if s.special.native.Fell != "" { // a moment ago
		return nil, o, nil
	}
	var replies []*adapters.Reply
	var page *adapters.NativePage
	requests, err := s.asked.Native.Natively()
	if err == nil {
		s.special.native.Tried = true
		if replies, err = s.ask(ctx, requests...); err != nil && !errors.Is(err, adapters.ErrWidened) {
			return s.leave(ctx, err)
		}
	}
	if err == nil {
		page, err = s.asked.Native.NativePage(replies)
	}
	if err != nil {
		s.fall(err)
		return nil, o, nil
	}
	return adapters.Pieces{page.Result}, adapters.Outcome{
		Target: s.asked.Target, Raw: page.Raw, Stats: rerank.Stats{Folded: page.Raw - page.Shown}, Exact: page.Exact, Rounds: 1, Counts: s.asked.Counted(page.Counts),
		NativeOutcome: adapters.NativeOutcome{Native: true},
	}, nil
}

// fall notes why the search goes on at query time.
func (s *search) fall(err error) {
	_, declined := errors.AsType[*adapters.Declined](err)
	alone, isAlone := errors.AsType[adapters.Alone](err)
	switch n := &s.special.native; {
	case errors.Is(err, adapters.ErrUnclustered):
		n.Fell, n.Unfit = adapters.ReasonUnclustered, true
	case declined || errors.Is(err, adapters.ErrWidened): // at query time it is seen whose fault that is
		n.Fell, n.Costly = adapters.ReasonNativeRefused, s.asked.Counting != nil
		n.Unfit = !n.Costly
	case errors.Is(err, adapters.ErrMoved):
		n.Fell = adapters.ReasonMoved
	case isAlone:
		n.Fell = alone.Reason
	default:
		n.Fell = adapters.ReasonNotUnderstood
	}
}

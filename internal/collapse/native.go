package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
)

// natively has the engine collapse the search. It returns nil where the search goes on at query time.
func (s *search) natively(ctx context.Context) (*adapters.NativePage, error) {
	if s.native.Fell = s.asked.Scope.Fell; s.native.Fell != "" { // a moment ago
		return nil, nil
	}
	queries, err := s.asked.Native.Natively()
	if err != nil {
		s.fall(err)
		return nil, nil
	}
	s.native.Tried = true
	results, err := s.engine.ask(ctx, queries)
	if err != nil && !errors.Is(err, adapters.ErrWidened) {
		return nil, err
	}
	var page *adapters.NativePage
	if err == nil {
		page, err = s.asked.Native.NativePage(results)
	}
	if err != nil {
		s.fall(err)
		return nil, nil
	}
	return page, nil
}

// fall notes why the search goes on at query time.
func (s *search) fall(err error) {
	_, declined := errors.AsType[*adapters.Declined](err)
	alone, isAlone := errors.AsType[adapters.Alone](err)
	switch n := &s.native; {
	case errors.Is(err, adapters.ErrUnclustered):
		n.Fell, n.Unfit = adapters.ReasonUnclustered, true
	case declined || errors.Is(err, adapters.ErrWidened): // at query time it is seen whose fault that is
		n.Fell, n.Unfit = adapters.ReasonNativeRefused, true
	case errors.Is(err, adapters.ErrMoved):
		n.Fell = adapters.ReasonMoved
	case isAlone:
		n.Fell = alone.Reason
	default:
		n.Fell = adapters.ReasonNotUnderstood
	}
}

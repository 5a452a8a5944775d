package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// native is what came of having the engine collapse a search by the ids of clusters.
type native struct {
	tried bool
	fell  adapters.Reason // why the search went on at query time, where it was to be native
	unfit bool            // that it did for what is stored
}

// natively has the engine collapse the search. It returns nil where the search goes on at query time.
func (s *search) natively(ctx context.Context) (*adapters.NativePage, error) {
	if s.asked.Native == nil {
		return nil, nil
	}
	queries, fell, err := s.asked.Native.Natively()
	if err != nil {
		s.native.fall(err)
		return nil, nil
	}
	if s.native.fell = fell; len(queries) == 0 {
		return nil, nil
	}
	s.native.tried = true
	results, err := s.engine.ask(ctx, queries)
	if err != nil && !errors.Is(err, adapters.ErrWidened) {
		return nil, err
	}
	var page *adapters.NativePage
	if err == nil {
		page, err = s.asked.Native.NativePage(results)
	}
	if err != nil {
		s.native.fall(err)
		return nil, nil
	}
	return page, nil
}

// nativeOutcome returns what was done with a search that the engine collapsed.
func (s *search) nativeOutcome(page *adapters.NativePage) adapters.Outcome {
	return adapters.Outcome{
		Target: s.asked.Target, Raw: page.Raw, Stats: rerank.Stats{Folded: page.Raw - page.Shown}, Exact: page.Exact, Rounds: 1, Native: true,
	}
}

// fall notes why the search goes on at query time.
func (n *native) fall(err error) {
	_, declined := errors.AsType[*adapters.Declined](err)
	alone, isAlone := errors.AsType[adapters.Alone](err)
	switch {
	case errors.Is(err, adapters.ErrUnclustered):
		n.fell, n.unfit = adapters.ReasonUnclustered, true
	case declined || errors.Is(err, adapters.ErrWidened): // at query time it is seen whose fault that is
		n.fell, n.unfit = adapters.ReasonNativeRefused, true
	case errors.Is(err, adapters.ErrMoved):
		n.fell = adapters.ReasonMoved
	case isAlone:
		n.fell = alone.Reason
	default:
		n.fell = adapters.ReasonNotUnderstood
	}
}

// tell puts into the outcome of a search that was collapsed at query time why it was.
func (n *native) tell(o *adapters.Outcome) {
	o.Fell, o.Tried, o.Unfit = n.fell, n.tried, n.unfit
	if n.tried {
		o.Rounds++
	}
}

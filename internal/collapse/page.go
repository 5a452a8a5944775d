package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// paged reads the list until the page is known, and renders it.
func (s *search) paged(ctx context.Context) ([]byte, error) {
	for {
		span, more, err := s.next()
		switch {
		case err != nil:
			return nil, err
		case more:
			err = s.readSpan(ctx, span)
		case s.read.frame == nil: // no hit of the page was read in a reading that shows what stands beside it
			err = s.readFrame(ctx)
		case s.show.DryRun:
			return s.Clean(s.read.asSent), nil
		default:
			return s.rendered()
		}
		if err != nil {
			return nil, err
		}
	}
}

// next returns the ranks to read next, and false when the page is known.
func (s *search) next() (span rerank.Span, more bool, err error) {
	span, more = s.pager.Next()
	if known := !more || span.Ranks != nil; known && s.near != nil && !s.decide() {
		s.again()
		span, more = s.pager.Next()
	}
	if s.show.DryRun && span.Ranks != nil { // no hit of the page is shown
		more = false
	}
	if _, err := s.pager.Ranks(); !more && err != nil {
		return span, false, adapters.NotUnderstood(err)
	}
	if s.near != nil && s.near.unfolded {
		more = false
	}
	return span, more, nil
}

// readSpan reads ranks and hands them to the pager. Where the list moved meanwhile, or the page turned out to be another one, it hands over
// nothing, and the ranks are read again.
func (s *search) readSpan(ctx context.Context, span rerank.Span) error {
	judged := s.pager.Judged(span)
	r := adapters.Reading{
		From: span.From, To: span.To, Ranks: span.Ranks, Sources: !span.SketchOnly, Judged: judged,
		Texts: s.texts.wanted(span), Frame: !span.SketchOnly && s.read.frame == nil && !s.leads(),
	}
	listing, err := s.look(ctx, &r)
	if err != nil || listing == nil {
		return err
	}
	if !s.leads() {
		s.read.total = listing.Total
	}
	if s.near != nil && judged {
		s.near.length, s.near.full = listing.Total, listing.Full
	}
	if s.holdsOwnPage(span) {
		s.read.own, s.read.ownFrom = listing, s.page.From
	}
	seen, hits, err := s.judged(ctx, span, listing, r.Texts)
	if err != nil || seen.Hits == nil {
		return err
	}
	if judged && span.Ranks == nil {
		s.read.judged = seen
	}
	if !span.SketchOnly {
		if s.read.sources = listing; s.read.frame == nil {
			s.read.frame = listing
		}
	}
	if span.Ranks != nil {
		s.pager.Pick(span, hits)
	} else {
		s.pager.Take(span, hits)
	}
	return nil
}

// readFrame reads what stands beside the hits alone.
func (s *search) readFrame(ctx context.Context) error {
	if s.leads() {
		_, err := s.look(ctx, nil)
		return err
	}
	listing, err := s.look(ctx, &adapters.Reading{From: s.page.From, To: s.page.From, Frame: true})
	if err == nil && listing != nil {
		s.read.frame, s.read.total = listing, listing.Total
	}
	return err
}

// leads reports whether the client's own search is asked beside the first reading: where only the engine's reply tells which page it is,
// where it is the answer (a dry run), and for nearest neighbours, whose total and facets follow from their number.
func (s *search) leads() bool { return s.asked.Unseen != "" || s.near != nil || s.show.DryRun }

// look makes a reading, with the client's own search beside it if that is still to be asked. It returns no listing where the page begins
// anew because of what the engine says. Without a reading it asks for the client's own search alone.
func (s *search) look(ctx context.Context, r *adapters.Reading) (*adapters.Listing, error) {
	var ahead, queries []adapters.Query
	var err error
	own := adapters.Reading{Own: true, AsSent: s.asked.Unseen != "" || s.show.DryRun, Sources: true, Frame: true}
	if s.leads() && s.read.frame == nil {
		if ahead, err = s.Queries(own); err != nil {
			return nil, adapters.NotUnderstood(err)
		}
	}
	if r != nil {
		if s.near != nil {
			r.Neighbours = s.near.Raised
		}
		if queries, err = s.Queries(*r); err != nil {
			return nil, adapters.NotUnderstood(err)
		}
	}
	results, err := s.engine.ask(ctx, append(ahead, queries...))
	if err != nil {
		return nil, err
	}
	s.rounds++
	if len(ahead) > 0 {
		other, err := s.takeOwn(own, results[:len(ahead)])
		if other || err != nil {
			return nil, err
		}
	}
	if r == nil {
		return nil, nil
	}
	listing, err := s.Listing(*r, results[len(ahead):])
	if err != nil {
		return nil, s.unread(err)
	}
	return listing, nil
}

// takeOwn takes the results of the client's own search. other says that it shows another page than was taken for the client's, with
// which the page begins anew.
func (s *search) takeOwn(r adapters.Reading, results []adapters.QueryResult) (other bool, err error) {
	listing, err := s.Listing(r, results)
	if _, alone := errors.AsType[adapters.Alone](err); r.AsSent && (err == nil || alone) {
		s.read.asSent = results[0].Raw()
	}
	if err != nil {
		return false, portError(err)
	}
	s.read.frame, s.read.total = listing, listing.Total
	if s.near != nil {
		s.near.own = listing
	}
	if !r.AsSent {
		s.read.own, s.read.ownFrom = listing, 0
	}
	if s.asked.Unseen == "" || listing.From == s.page.From && listing.Size == s.page.Size {
		return false, nil
	}
	s.begin(listing.From, listing.Size)
	return true, nil
}

// unread returns what becomes of a search a reading of which failed: nil where it begins anew, in smaller pieces.
func (s *search) unread(err error) error {
	declined, isDeclined := errors.AsType[*adapters.Declined](err)
	if n, ok := s.Search.(adapters.Narrower); ok && isDeclined && declined.Most > 0 {
		if narrowed := n.Narrowed(declined.Most); narrowed != nil {
			s.Search = narrowed
			s.again()
			return nil
		}
	}
	if s.asked.Unseen != "" && s.read.asSent != nil && !errors.Is(err, adapters.ErrMoved) {
		return adapters.Alone{Reason: s.asked.Unseen} // what only the engine sees of the search may be in the way
	}
	return portError(err)
}

// portError returns an error of the dialect as one of the port's.
func portError(err error) error {
	_, alone := errors.AsType[adapters.Alone](err)
	_, declined := errors.AsType[*adapters.Declined](err)
	if alone || declined || errors.Is(err, adapters.ErrWidened) {
		return err
	}
	return adapters.NotUnderstood(err)
}

// holdsOwnPage reports whether a reading of the span is the first to hold the client's own page whole.
func (s *search) holdsOwnPage(span rerank.Span) bool {
	return s.read.own == nil && s.read.frame == nil && !s.leads() && !span.SketchOnly && span.Ranks == nil && span.From == 0 &&
		span.To >= s.page.From+s.page.Size
}

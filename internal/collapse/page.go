package collapse

import (
	"context"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// collapse reads the list until the page is known, and renders it.
func (s *search) collapse(ctx context.Context) ([]byte, error) {
	for {
		span, more, err := s.next()
		switch {
		case err != nil:
			return nil, err
		case more:
			err = s.readSpan(ctx, span)
		case s.read.frame == nil: // no reading so far brought what the reply has beside its hits
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
	if s.rounds == maxRounds {
		return nil, adapters.NotUnderstood(errEndless)
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

// judged returns what is compared of the hits of a reading. It returns no hits where the ranks are to be read anew, with all their texts.
func (s *search) judged(ctx context.Context, span rerank.Span, l *adapters.Listing, texts bool) (h sighted, hits []rerank.Hit, err error) {
	h.Hits = l.Hits
	if !s.pager.Judged(span) { // the page's own hits, whose sketches are known
		return h, unjudged(l), nil
	}
	hits, missing, err := s.judgeAll(&h)
	if err != nil || len(missing) == 0 || texts {
		return h, hits, err
	}
	if same, err := s.readTexts(ctx, span, &h, missing); !same || err != nil {
		return sighted{}, nil, err
	}
	hits, _, err = s.judgeAll(&h)
	return h, hits, err
}

// judgeAll judges hits, and returns which of them lack a sketch that could be computed from their text.
func (s *search) judgeAll(h *sighted) (hits []rerank.Hit, missing []int, err error) {
	s.judge.Reset()
	hits = make([]rerank.Hit, h.Len())
	for i := range hits {
		if i%adapters.BetweenLooks == 0 && s.plan.Struck() {
			return nil, nil, adapters.ErrLate
		}
		unread := s.judge.Unread
		if hits[i] = s.judge.Hit(h.seen(i)); s.judge.Unread > unread {
			missing = append(missing, i)
		}
	}
	if s.judge.Lacking > 0 && s.plan.Struck() { // sketches may not have been computed
		return nil, nil, adapters.ErrLate
	}
	return hits, missing, nil
}

// rendered returns the result that the client gets, once the page is known.
func (s *search) rendered() ([]byte, error) {
	page := &adapters.ShownPage{Frame: s.read.frame.Hits, Total: -1}
	if s.show.Collapsed {
		page.Total, _ = s.total()
	}
	var err error
	if page.Hits, err = s.pageHits(); err != nil {
		return nil, err
	}
	result, err := s.Render(page)
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	return result, nil
}

// pageHits returns the page's hits, with what is folded into them where that is to be shown.
func (s *search) pageHits() ([]adapters.PageHit, error) {
	var ranks []int
	var err error
	unfolded := s.near != nil && s.near.unfolded
	if unfolded {
		ranks = s.ownRanks()
	} else if ranks, err = s.ranks(); err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	var views *adapters.Views
	if s.show.Expand > adapters.ExpandOff {
		views = adapters.NewViews(s.pager.Groups(), s.hit, s.pager.Stats().Ended, s.page.Window)
	}
	hits := make([]adapters.PageHit, len(ranks))
	for i, rank := range ranks {
		if s.show.Explain && s.plan.Struck() {
			return nil, adapters.ErrLate
		}
		place := s.source(rank)
		if unfolded {
			place = adapters.Place{Hits: s.near.own.Hits, At: i}
		}
		if place.Hits == nil {
			return nil, adapters.NotUnderstood(adapters.ErrMoved)
		}
		if hits[i].Place = place; views != nil {
			hits[i].Group = s.group(rank, s.judge.Rule(place.Hits.Seen(place.At).Index), views)
		}
	}
	return hits, nil
}

// ranks returns the engine's ranks of the page's hits.
func (s *search) ranks() ([]int, error) {
	ranks, err := s.pager.Ranks()
	if s.near != nil && s.near.own != nil {
		ranks = ranks[:min(len(ranks), max(s.near.own.Total-s.page.From, 0))]
	}
	return ranks, err
}

// source returns the place of a rank's hit in the listing of hits as the client wants them, nowhere if it is not in there.
func (s *search) source(rank int) adapters.Place {
	at, ok := s.pager.At(rank)
	if !ok || s.read.sources == nil || at >= s.read.sources.Hits.Len() {
		return adapters.Place{}
	}
	return adapters.Place{Hits: s.read.sources.Hits, At: at}
}

// readFrame reads only what the reply has beside its hits.
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

// unjudged returns the hits of a listing where only which documents they are matters.
func unjudged(l *adapters.Listing) []rerank.Hit {
	hits := make([]rerank.Hit, l.Hits.Len())
	for i := range hits {
		hits[i] = identityOf(l.Hits.Seen(i))
	}
	return hits
}

// identityOf returns what tells a hit from all others.
func identityOf(seen adapters.Seen) rerank.Hit {
	if seen.Key != "" {
		return rerank.Hit{ID: seen.Key}
	}
	return adapters.Unjudged(seen.Index, seen.ID)
}

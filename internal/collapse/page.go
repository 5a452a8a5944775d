package collapse

import (
	"context"
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// maxRounds bounds how often one search may ask the engine, whatever its dialect says.
const maxRounds = 64

var (
	errEndless = errors.New("the search does not end")
	errNoFrame = errors.New("a reply without what stands beside its hits")
)

// errAnew: what was read shows that the page is to be read in another way, from its beginning.
var errAnew = errors.New("the page is read anew")

// anew begins the same page again.
func (s *search) anew() error {
	s.begin(s.page.From, s.page.Size)
	return errAnew
}

// collapse reads the list until the page is known, and renders it.
func (s *search) collapse(ctx context.Context) (adapters.Pieces, error) {
	s.recallCursor()
	for {
		found, err := rerank.FindPage(s.page, func(known *rerank.Found, span rerank.Span) ([]rerank.Hit, error) {
			s.found = known
			return s.readSpan(ctx, span)
		})
		if err == nil {
			s.found = found
			err = s.decide()
		}
		if err == nil && s.asked.Short != "" && found.Stats().Limited {
			err = adapters.Alone{Reason: s.asked.Short, Searched: true}
		}
		if (err == nil || errors.Is(err, errOwnPage)) && s.read.frame == nil { // no reading so far brought what the reply has beside its hits
			err = s.readFrame(ctx)
		}
		switch {
		case errors.Is(err, errAnew):
		case err != nil && !errors.Is(err, errOwnPage):
			return nil, err
		case s.show.DryRun:
			s.remember()
			return adapters.Pieces{s.Clean(s.read.asSent)}, nil
		default:
			return s.rendered()
		}
	}
}

// readSpan reads ranks and judges their hits.
func (s *search) readSpan(ctx context.Context, span rerank.Span) ([]rerank.Hit, error) {
	if span.Ranks != nil { // the page is known
		if err := s.decide(); err != nil {
			return nil, err
		}
	}
	r := s.reading(span)
	listing, err := s.look(ctx, &r)
	if err != nil {
		return nil, err
	}
	s.keep(&r, listing)
	if s.walk.unknown() {
		return nil, s.findBefore(ctx, &r, listing)
	}
	if span.Ranks != nil {
		return s.picked(&r, span.Ranks, unjudged(listing))
	}
	hits, err := s.judged(ctx, &r, listing.Hits)
	if errors.Is(err, errOthers) {
		return s.readSpan(ctx, span) // with all texts at once
	}
	return hits, err
}

// reading returns how a span is read.
func (s *search) reading(span rerank.Span) adapters.Reading {
	r := adapters.Reading{
		To: span.To, Ranks: span.Ranks, Sources: span.Sources, Judged: span.Ranks == nil,
		Texts: s.texts.wanted(span), Frame: s.read.frame == nil && !s.leads(),
	}
	if span.Ranks != nil {
		r.Known = s.read.judged
		if s.asked.Ways.Scattered && s.show.Expand == adapters.ExpandSource {
			r.Ranks = s.withFolded(span.Ranks)
		}
		r.From, r.To = r.Ranks[0], r.Ranks[len(r.Ranks)-1]+1
	}
	return r
}

// keep keeps what a listing says beside its hits.
func (s *search) keep(r *adapters.Reading, l *adapters.Listing) {
	if !s.leads() && l.Total >= 0 {
		s.read.total, s.read.atLeast = l.Total, l.AtLeast
	}
	if s.near != nil && r.Judged {
		s.near.length, s.near.full = l.Total, l.Full
	}
	if l.HitBytes > 0 {
		s.read.hitBytes = l.HitBytes
	}
	if s.read.own == nil && s.read.frame == nil && !s.leads() && r.Sources && r.Ranks == nil && r.From == 0 && r.To >= s.page.From+s.page.Size {
		s.read.own, s.read.ownFrom = l, s.page.From
	}
	if r.Frame && l.Framed {
		s.read.frame = l
	}
	if r.Sources {
		s.read.sources = make(map[int]adapters.Place, l.Hits.Len())
		for at := range l.Hits.Len() {
			rank := r.From + at
			if r.Ranks != nil {
				rank = r.Ranks[at]
			}
			s.read.sources[rank] = adapters.Place{Hits: l.Hits, At: at}
		}
	}
}

// look makes a reading.
func (s *search) look(ctx context.Context, r *adapters.Reading) (*adapters.Listing, error) {
	if listing := s.walk.atHand(r); listing != nil {
		return listing, nil
	}
	if s.near != nil {
		r.Neighbours = s.near.Raised
	}
	reader, err := s.Read(*r)
	if err != nil {
		return nil, s.unread(err)
	}
	for results := []adapters.QueryResult(nil); ; {
		queries, err := reader.Queries(results)
		if err != nil {
			return nil, s.unread(err)
		}
		if len(queries) == 0 {
			listing, err := reader.Listing(results)
			if err != nil {
				return nil, s.unread(err)
			}
			return listing, nil
		}
		more, err := s.askWithOwn(ctx, queries)
		if err != nil {
			return nil, err
		}
		results = append(results, more...)
	}
}

// ask asks the engine once.
func (s *search) ask(ctx context.Context, queries []adapters.Query) ([]adapters.QueryResult, error) {
	if s.read.rounds == maxRounds {
		return nil, adapters.NotUnderstood(errEndless)
	}
	results, err := s.engine.ask(ctx, queries)
	if !adapters.IsLate(err) {
		s.read.rounds++
	}
	return results, err
}

// judged returns what is compared of the hits of a reading.
func (s *search) judged(ctx context.Context, r *adapters.Reading, seen adapters.Hits) ([]rerank.Hit, error) {
	s.read.judged = seen
	hits, missing, err := s.judgeAll(s.judge, seen)
	ways := s.asked.Ways
	switch {
	case err != nil:
		return nil, err
	case r.Sources && (ways.Apart || ways.TextsApart && r.Texts && len(missing) > 0): // read again at once, it does not show all
		return nil, portError(adapters.ErrMoved)
	case len(missing) > 0 && !r.Texts && ways.Anew:
		s.texts.beside = true
		return nil, s.anew()
	case len(missing) > 0 && !r.Texts:
		if seen, err = s.readTexts(ctx, r, seen, missing); err != nil {
			return nil, err
		}
		hits, _, err = s.judgeAll(s.judge, seen)
	}
	s.read.texts = seen
	return hits, err
}

// judgeAll judges hits, and returns which of them lack a sketch that could be computed from their text.
func (s *search) judgeAll(judge *adapters.Judge, seen adapters.Hits) (hits []rerank.Hit, missing []int, err error) {
	judge.Reset()
	hits = make([]rerank.Hit, seen.Len())
	for i := range hits {
		if i%adapters.BetweenLooks == 0 && s.plan.Struck() {
			return nil, nil, adapters.ErrLate
		}
		unread := judge.Unread
		if hits[i] = judge.Hit(seen.Seen(i)); judge.Unread > unread {
			missing = append(missing, i)
		}
	}
	if judge.Lacking > 0 && s.plan.Struck() { // sketches may not have been computed
		return nil, nil, adapters.ErrLate
	}
	return hits, missing, nil
}

// rendered returns the result that the client gets, once the page is known.
func (s *search) rendered() (adapters.Pieces, error) {
	total := -1
	if s.show.Collapsed {
		total, _ = s.total()
	}
	hits, err := s.pageHits()
	if err != nil {
		return nil, err
	}
	result, err := s.Render(s.read.frame.Hits, hits, total)
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	s.remember()
	return result, nil
}

// pageHits returns the page's hits, with what is folded into them where that is to be shown.
func (s *search) pageHits() ([]adapters.PageHit, error) {
	ranks := s.ranks()
	unfolded := s.near != nil && s.near.unfolded
	if unfolded {
		ranks = s.ownRanks()
	}
	var views *adapters.Views
	if s.show.Expand > adapters.ExpandOff {
		views = adapters.NewViews(s.found.Groups, s.found, s.found.Stats().Ended, s.page.Window)
	}
	hits := make([]adapters.PageHit, len(ranks))
	for i, rank := range ranks {
		if s.show.Explain && s.plan.Struck() {
			return nil, adapters.ErrLate
		}
		place := s.read.sources[rank]
		if unfolded {
			place = adapters.Place{Hits: s.near.own.Hits, At: i}
		}
		if place.Hits == nil {
			return nil, portError(adapters.ErrMoved)
		}
		if hits[i].Place = place; views != nil {
			hits[i].Group = s.group(rank, s.judge.Rule(place.Hits.Seen(place.At).Index), views)
		}
	}
	return hits, nil
}

// ranks returns the engine's ranks of the page's hits.
func (s *search) ranks() []int {
	ranks := s.found.Ranks
	if s.near != nil && s.near.own != nil {
		ranks = ranks[:min(len(ranks), s.near.behind(s.page.From))]
	}
	return ranks
}

// readFrame reads only what the reply has beside its hits.
func (s *search) readFrame(ctx context.Context) error {
	if s.leads() {
		_, err := s.askWithOwn(ctx, nil)
		return err
	}
	r := adapters.Reading{From: s.page.From, To: s.page.From, Frame: true}
	listing, err := s.look(ctx, &r)
	if err != nil {
		return err
	}
	s.keep(&r, listing)
	if s.read.frame == nil {
		return adapters.NotUnderstood(errNoFrame)
	}
	return nil
}

// picked returns those hits of a reading that are of the page, none if one of the others is not there, or is not the one that was judged: then
// the list has moved.
func (s *search) picked(r *adapters.Reading, page []int, hits []rerank.Hit) ([]rerank.Hit, error) {
	if !s.found.Agrees(r.Ranks, hits) {
		if s.moved = true; s.opens(adapters.ErrMoved) != nil {
			return nil, adapters.ErrMoved // it is not read again but in a point in time
		}
		return nil, nil
	}
	shown := make([]rerank.Hit, 0, len(page))
	for i, rank := range r.Ranks {
		if _, of := slices.BinarySearch(page, rank); of && i < len(hits) {
			shown = append(shown, hits[i])
		}
	}
	return shown, nil
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

package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// cursor is a place in a list that a client goes through by cursors. What was shown before a page goes on hiding its near-duplicates. It is
// remembered, or else read from the ranks before the cursor.
type cursor struct {
	adapters.Cursor
	behind bool         // the page begins after a cursor
	before *rerank.Walk // what was shown in front of it, nil where the page begins the list or that is to be found out
	lost   bool         // that is not known
	// own is the listing of the page that was read to find the cursor, by the reading.
	reading adapters.Reading
	own     *adapters.Listing
}

// goOn has the page go on after what was shown before it, as far as that is known.
func (s *search) goOn() {
	if s.special.cursor == nil {
		s.special.cursor = &cursor{Cursor: s.asked.Cursor}
		if key := s.asked.Cursor.Key(); key != "" {
			if s.special.cursor.behind = true; s.all.Plan.Cursors != nil {
				s.special.cursor.before, _ = s.all.Plan.Cursors.Get(key)
			}
		}
	}
	if before := s.special.cursor.before; before != nil {
		s.beginAfter(before)
	}
}

// beginAfter has the page begin after what was shown before it, whose leaders go on hiding their near-duplicates.
func (s *search) beginAfter(before *rerank.Walk) {
	page, ranks := &s.page, before.Ranks()
	if ranks > 0 { // the more was shown, the more folds
		page.Rate = max(page.Rate, float64(before.Folded())/float64(ranks))
	}
	page.After, page.Window = before, max(0, page.Window-ranks)
}

// unknown reports whether it is still to be found out what was shown in front of the cursor.
func (c *cursor) unknown() bool { return c != nil && c.behind && c.before == nil }

// atHand returns the listing that was read to find the cursor, once, if it holds a reading; nil where there is no cursor.
func (c *cursor) atHand(r *adapters.Reading) *adapters.Listing {
	if c == nil || c.own == nil {
		return nil
	}
	own := c.own
	if c.own = nil; r.Ranks != nil || r.To > c.reading.To || r.Sources != c.reading.Sources || r.Texts != c.reading.Texts {
		return nil
	}
	return own
}

// betweenLooks is how many ranks are gone through between two looks at the time.
const betweenLooks = 4

// findBefore finds out what was shown in front of the client's page, where that is unknown, from the ranks in front of it, and has the page begin anew.
// own are its first hits.
func (s *search) findBefore(ctx context.Context, r *adapters.Reading, own *adapters.Listing) error {
	if !s.special.cursor.unknown() {
		return nil
	}
	if err := s.readBefore(ctx, own); err != nil {
		return err
	}
	s.special.cursor.reading, s.special.cursor.own = *r, own
	return errAnew
}

// readBefore finds out what was shown in front of the client's page, whose hits are own. Where that can't be known the cursor is lost.
func (s *search) readBefore(ctx context.Context, own *adapters.Listing) error {
	w := s.special.cursor
	if w.before = new(rerank.Walk); len(own.Hits) == 0 {
		return nil
	}
	window := s.asked.Scope.Window
	ranks := min(window, s.asked.Limit)
	r := adapters.Reading{To: ranks, Before: true, Judged: true, Texts: s.special.texts.beside}
	listing, hits, err := s.judgedBefore(ctx, &r)
	switch known := errors.Is(err, errAnew) || errors.Is(err, adapters.ErrRefused) || errors.Is(err, adapters.ErrWidened) || errors.Is(err, adapters.ErrNotUnderstood); {
	case known && !adapters.IsLate(err): // the engine grants no reading so long, say
		w.lost = true
		return nil
	case err != nil:
		return err
	}
	first, tied := own.Hits[0].ID, false
	for rank := range hits {
		if rank%betweenLooks == 0 && s.all.Plan.Late() {
			return adapters.ErrLate
		}
		if hits[rank].ID == first {
			return nil
		}
		hit, at := &hits[rank], w.At(&listing.Hits[rank])
		if at && tied {
			hit = &rerank.Hit{} // the cursor leads past it, shown or not: it hides nothing
		}
		w.before.Take(hit, window)
		tied = at
	}
	if len(hits) < ranks || len(hits) < window {
		w.before, w.lost = new(rerank.Walk), true
	} else {
		w.before.Forget() // the page begins beyond the window
	}
	return nil
}

// judgedBefore reads ranks in front of the cursor, again with texts where these are missing.
func (s *search) judgedBefore(ctx context.Context, r *adapters.Reading) (*adapters.Listing, []rerank.Hit, error) {
	for {
		listing, err := s.read(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		hits, missing, err := s.newJudge().Hits(listing.Hits)
		if err != nil || len(missing) == 0 || r.Texts {
			return listing, hits, err
		}
		r.Texts = true
	}
}

// remember keeps what was shown down to the last hit of the page, for the client that goes on from there: by a cursor, or page by page (sequence.go).
func (s *search) remember() {
	c, q := s.special.cursor, s.special.sequence
	if c == nil && q == nil || s.all.Plan.Cursors == nil {
		return
	}
	rank, last := s.last()
	if last == nil {
		return
	}
	if q != nil {
		s.keepWalk(rank, last)
		return
	}
	if c.lost { // what is not known of earlier pages is found out no better by the next
		return
	}
	if key := c.Next(s.frame, last); key != "" {
		shown := s.found.Walk(rank + 1)
		if shown.Ranks() >= s.asked.Scope.Window {
			shown.Forget()
		}
		s.all.Plan.Cursors.Put(key, shown)
	}
}

// last returns the last hit that is shown, and its rank, or nil.
func (s *search) last() (rank int, hit *rule.Seen) {
	if s.asked.Scope.DryRun { // the page is the engine's own
		if rank = len(s.frame.Hits) - 1; rank < 0 {
			return 0, nil
		}
		return rank, &s.frame.Hits[rank]
	}
	ranks := s.ranks()
	if len(ranks) == 0 {
		return 0, nil
	}
	rank = ranks[len(ranks)-1]
	return rank, s.sources.at(rank)
}

// tell puts into the outcome what a cursor adds to it.
func (c *cursor) tell(o *adapters.Outcome) {
	o.CursorLost = c.lost
	o.Exact = o.Exact && !c.lost
	if c.before != nil && o.Without == 0 {
		o.Read = 0 // how much folds here is no measure for first pages
	}
}

package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// asksOwn reports whether the client's own search is asked beside the first reading: where only the engine's reply tells which page it is,
// where it is the answer (a dry run), where it has no hits, and for nearest neighbours, whose total and facets follow from their number.
func (s *search) asksOwn() bool {
	return s.asked.Unseen != "" || s.special.neighbours != nil || s.asked.Scope.DryRun || s.asked.Size == 0
}

// ownAsWritten reports whether the client's own search is then asked as the client wrote it, not with what is needed to read its hits.
func (s *search) ownAsWritten() bool { return s.asked.Unseen != "" || s.asked.Scope.DryRun }

// askBesideOwn sends requests, and beside them the client's own search.
func (s *search) askBesideOwn(ctx context.Context, requests ...*adapters.Request) (replies []*adapters.Reply, err error) {
	r := s.own(s.ownAsWritten())
	first, err := s.query.Requests(r, nil)
	if err != nil {
		return nil, portError(err)
	}
	if replies, err = s.ask(ctx, append(first, requests...)...); err != nil {
		return nil, err
	}
	own := replies[:len(first)]
	listing, err := s.query.Listing(r, own)
	return replies[len(first):], s.takeOwn(listing, own[0].Body, err)
}

// own is the reading of the client's own search, which takes one round.
func (s *search) own(asWritten bool) *adapters.Reading {
	from := s.asked.From
	return &adapters.Reading{Own: true, AsWritten: asWritten, From: from, To: from + s.asked.Size, Sources: true, Frame: true}
}

// takeOwn takes what the client's own search brought. Where that is another page than was taken for the client's, that one begins.
func (s *search) takeOwn(listing *adapters.Listing, raw []byte, err error) error {
	if _, alone := errors.AsType[adapters.Alone](err); s.ownAsWritten() && (err == nil || alone) {
		s.special.ownResult = raw
	}
	if err != nil {
		return portError(err)
	}
	s.frame, s.counted = listing, listing
	if s.special.neighbours != nil {
		s.special.neighbours.own = listing
	}
	if s.asked.Unseen == "" || listing.From == s.page.From && listing.Size == s.page.Size {
		return nil
	}
	s.page.From, s.page.Size = listing.From, listing.Size
	return errAnew
}

// ownPage returns the page as the engine has it, nil if no reply contains it.
func (s *search) ownPage() adapters.Pieces {
	if s.special.ownResult != nil {
		return adapters.Pieces{s.query.Clean(s.special.ownResult)}
	}
	in, from := s.special.uncollapsed, s.page.From
	if s.special.neighbours != nil {
		in, from = s.special.neighbours.own, 0
	}
	if in == nil {
		return nil
	}
	page := pointers(in.Hits[min(from, len(in.Hits)):min(from+s.page.Size, len(in.Hits))])
	result, err := s.query.Render(in, page, nil, -1)
	if err != nil {
		return nil
	}
	return result
}

// pointers returns hits as a page of them.
func pointers(hits []rule.Seen) []*rule.Seen {
	page := make([]*rule.Seen, len(hits))
	for i := range hits {
		page[i] = &hits[i]
	}
	return page
}

// leave answers a search that could not be collapsed. If a reply already contains the client's own page, that is the answer. Otherwise
// the client's own search is asked, or, for a single search, err is returned.
func (s *search) leave(ctx context.Context, err error) (adapters.Pieces, adapters.Outcome, error) {
	alone, isAlone := errors.AsType[adapters.Alone](err)
	declined, isDeclined := errors.AsType[*adapters.Declined](err)
	o := adapters.Outcome{Target: s.asked.Target, Reason: adapters.ReasonOf(err)}
	if isAlone && s.special.ownResult != nil {
		o.Reason = alone.Reason
		return adapters.Pieces{s.query.Clean(s.special.ownResult)}, o, nil
	}
	if adapters.IsLate(err) {
		if page := s.ownPage(); page != nil {
			return page, o, nil
		}
	}
	switch {
	case s.all.Single || errors.Is(err, errStopped):
		return nil, o, err
	case isDeclined:
		if o.Reason = adapters.ReasonRefused; declined.Final {
			return adapters.Pieces{s.query.Clean(declined.Raw)}, o, nil
		}
	}
	return s.answerAsWritten(ctx, o.Reason, s.rounds > 0 || s.special.native.Tried || !adapters.IsLate(err))
}

// answerAsWritten answers with the client's own search. again says that the engine was asked for something else before.
func (s *search) answerAsWritten(ctx context.Context, reason adapters.Reason, again bool) (adapters.Pieces, adapters.Outcome, error) {
	o := adapters.Outcome{Target: s.asked.Target, Reason: reason}
	r := s.own(true)
	requests, err := s.query.Requests(r, nil)
	if err != nil {
		return nil, o, adapters.NotUnderstood(err)
	}
	requests[0].Raw = !again // then the result is handed on as it comes
	replies, err := s.ask(ctx, requests...)
	if err != nil {
		return nil, o, err
	}
	if again {
		_, err = s.query.Listing(r, replies)
		_, declined := errors.AsType[*adapters.Declined](err)
		o.Again = !declined // it is the client's own search that the engine declines
	}
	return adapters.Pieces{s.query.Clean(replies[0].Body)}, o, nil
}

// readingFailed returns the error of a search after a failed reading.
func (s *search) readingFailed(err error) error {
	if narrowed := s.query.Narrowed(err); narrowed != nil {
		s.query, s.asked = narrowed, narrowed.Asked()
		return errAnew
	}
	if s.asked.Unseen != "" && s.special.ownResult != nil && !errors.Is(err, adapters.ErrMoved) {
		return adapters.Alone{Reason: s.asked.Unseen} // what only the engine sees of the search may be in the way
	}
	return portError(err)
}

// declined answers a single search that the engine declines in a reply that is a success, if it would decline the client's own too.
func (c *conversation) declined(d *adapters.Declined) (*adapters.Reply, []adapters.Outcome, error) {
	decliner, can := c.Wire.(adapters.Decliner)
	if !can || !d.Final {
		return nil, nil, adapters.ErrWidened
	}
	return decliner.Declined(c.reply, d), []adapters.Outcome{{Target: c.List[0].Asked().Target, Reason: adapters.ReasonRefused}}, nil
}

// ahead asks for what the searches follow from, and returns them.
func ahead(ctx context.Context, first adapters.Ahead, exchange Exchange) (*adapters.Searches, error) {
	replies, err := exchange(ctx, first.Request())
	if err != nil {
		return nil, err
	}
	searches, err := first.Searches(replies[0])
	if errors.Is(err, adapters.ErrRefused) {
		return nil, &Refused{replies[0]}
	}
	if err != nil {
		return nil, portError(err)
	}
	return searches, nil
}

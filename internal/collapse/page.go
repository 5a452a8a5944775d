package collapse

import (
	"context"
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// Exchange sends requests to the engine, side by side, and returns their replies in order. Where one of several is no success it returns that
// reply alone: the others are of no use then. It returns [adapters.ErrLate] when the time for collapsing is over. It does not wait for a reply to a single
// request that is Unanswered.
type Exchange func(ctx context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error)

// Refused is the error of searches that the engine refuses for a reason that is not ours: credentials, load, its own failure. Its reply is the
// answer. It is an [adapters.ErrRefused].
type Refused struct{ Reply *adapters.Reply }

// Error implements error.
func (r *Refused) Error() string { return adapters.ErrRefused.Error() }

// Unwrap is for errors.Is.
func (r *Refused) Unwrap() error { return adapters.ErrRefused }

// conversation is what is asked and replied for one client's request.
type conversation struct {
	*adapters.Searches
	exchange Exchange
	// reply is the one whose header the client gets: the first reply that holds hits as the client wants them, not only their sketches. Its
	// Content-Encoding is one that the client accepts.
	reply   *adapters.Reply
	judging bool    // all requests so far were JudgingOnly
	took    float64 // how long all replies took, one round after the other
}

// Answer answers the searches of a request with their collapsed pages, in a reply of the engine's, and says what was done with each of them. Where it
// returns an error the client's request is to be sent as the client wrote it, unless the error is a [Refused].
func Answer(ctx context.Context, searches *adapters.Searches, exchange Exchange) (_ *adapters.Reply, outcomes []adapters.Outcome, err error) {
	if searches.Plan.Late() {
		return nil, nil, adapters.ErrLate
	}
	if searches.Ahead != nil {
		if searches, err = ahead(ctx, searches.Ahead, exchange); err != nil {
			return nil, nil, err
		}
	}
	c := &conversation{Searches: searches, exchange: exchange}
	results, outcomes := make([]adapters.Pieces, 1), make([]adapters.Outcome, 1)
	if searches.Single {
		results[0], outcomes[0], err = c.newSearch(searches.List[0]).answerOne(ctx)
	} else {
		results, outcomes, err = c.together(ctx)
	}
	if declined, is := errors.AsType[*adapters.Declined](err); is {
		return c.declined(declined)
	}
	if err != nil {
		return nil, nil, err
	}
	body := results[0]
	if searches.Envelope != nil {
		if body, err = searches.Envelope.Body(c.reply, results); err != nil {
			return nil, nil, portError(err)
		}
	}
	return &adapters.Reply{Status: c.reply.Status, Header: c.reply.Header, Pieces: body}, outcomes, nil
}

// search is one search being answered. Ranks are places in the engine's list, from 0.
type search struct {
	query adapters.Search // the client's search, as its dialect reads it
	asked *adapters.Asked // what it asks for
	all   *conversation   // that it is a part of
	asker                 // the conversation; for one search of several its member (together.go)
	judge *rule.Judge

	page  rerank.Page   // what is wanted
	found *rerank.Found // of it, so far
	// compared are the hits of the last reading from rank 0, sources the hits of the last reading with sources, by their ranks.
	compared []rule.Seen
	sources  ranked
	// frame is the listing whose reply becomes the client's: everything in it but the hits stays.
	frame   *adapters.Listing
	counted *adapters.Listing // the last that told the engine's count of hits, nil until one did

	rounds  int // how often the engine was asked
	special special
}

// newSearch returns one search of the request.
func (c *conversation) newSearch(query adapters.Search) *search {
	s := &search{query: query, asked: query.Asked(), all: c, asker: c}
	s.page.From, s.page.Size = s.asked.From, s.asked.Size
	s.judge, s.special.texts = s.newJudge(), texts{beside: s.asked.Scope.Lacking, anyLength: s.asked.Ways.Scattered}
	return s
}

// newJudge returns what compares the hits of the search.
func (s *search) newJudge() *rule.Judge {
	judge := rule.NewJudge(s.all.Plan.Rules, s.asked.Scope.Threshold, s.asked.Scope.Keep)
	judge.Doubting, judge.Decided, judge.Deadline = s.asked.Doubting, s.asked.Scope.Decided, s.all.Plan.Deadline
	judge.Labels = s.asked.Scope.Group
	return judge
}

// answerOne answers one search with the result that the client gets.
func (s *search) answerOne(ctx context.Context) (adapters.Pieces, adapters.Outcome, error) {
	if s.asked.Reason != "" {
		return s.answerAsWritten(ctx, s.asked.Reason, false)
	}
	if s.asked.Native != nil {
		if result, o, err := s.natively(ctx); result != nil || err != nil {
			return result, o, err
		}
	}
	result, err := s.answerCollapsed(ctx)
	if s.needsPoint(err) {
		return s.inPoint(ctx, result, err)
	}
	if err != nil {
		return s.leave(ctx, err)
	}
	return result, s.outcome(), nil
}

// answerCollapsed reads the list until the page is known, and renders it.
func (s *search) answerCollapsed(ctx context.Context) (adapters.Pieces, error) {
	for {
		scope := &s.asked.Scope
		s.page = rerank.Page{
			From: s.page.From, Size: s.page.Size, Window: scope.Window, Limit: s.asked.Limit, Widening: scope.Widening, Deadline: s.all.Plan.Deadline,
		}
		s.planSpecial(&s.page) // of an ordinary search it changes nothing, or only what is known of the cost
		s.found = rerank.FindPage(s.page)
		var err error
		for to, ranks := range s.found.Readings() {
			if ranks == nil {
				err = s.compare(ctx, to)
			} else {
				err = s.readPageHits(ctx, ranks)
			}
			if err != nil {
				break
			}
		}
		if err = s.completeSpecial(ctx, err); err == nil {
			return s.rendered()
		}
		if !errors.Is(err, errAnew) {
			return nil, err
		}
	}
}

// errAnew: what was read shows that the page is to be read in another way, from its beginning.
var errAnew = errors.New("the page is read anew")

// compare reads the ranks [0, to), judges their hits and adds them to what is found.
func (s *search) compare(ctx context.Context, to int) error {
	r := adapters.Reading{To: to, Sources: s.found.WithSources, Judged: true, Frame: s.wantsFrame()}
	r.Texts = s.special.texts.wanted(&r)
	listing, err := s.read(ctx, &r)
	if err != nil {
		return err
	}
	if err = s.keep(ctx, &r, listing); err != nil {
		return err
	}
	s.compared = listing.Hits
	hits, unread, err := s.judge.Hits(listing.Hits)
	switch {
	case err != nil:
		return err
	case s.lacksTexts(&r, unread):
		return s.judgeWithTexts(ctx, &r, hits, unread)
	}
	return s.found.Add(hits)
}

// keep keeps what the page is rendered from: the frame, the hits with their sources, and the engine's total. Its error is of what a cursor needs.
func (s *search) keep(ctx context.Context, r *adapters.Reading, l *adapters.Listing) error {
	s.keepSpecial(r, l)
	if !s.asksOwn() && l.Total >= 0 {
		s.counted = l
	}
	if r.Frame && l.Framed {
		s.frame = l
	}
	if r.Sources {
		s.sources = ranked{l.Hits, r.From, r.Ranks}
	}
	return s.findBefore(ctx, r, l)
}

// ranked are the hits of a reading: those of the ranks, which ascend, or without ranks those from one on.
type ranked struct {
	hits  []rule.Seen
	from  int
	ranks []int
}

// at returns the hit at a rank, or nil if that rank was not read.
func (l *ranked) at(rank int) *rule.Seen {
	place, known := rank-l.from, true
	if l.ranks != nil {
		place, known = slices.BinarySearch(l.ranks, rank)
	}
	if !known || place < 0 || place >= len(l.hits) {
		return nil
	}
	return &l.hits[place]
}

// rendered returns the result that the client gets, once the page is known: the frame with the page's hits in place of its own. A hit shows its group if
// that was asked for.
func (s *search) rendered() (result adapters.Pieces, err error) {
	scope := &s.asked.Scope
	if scope.DryRun {
		s.remember()
		return adapters.Pieces{s.query.Clean(s.special.ownResult)}, nil
	}
	page, ranks, err := s.pageHits()
	if err != nil {
		return nil, err
	}
	total := -1
	if scope.CollapsedTotals {
		total, _ = s.collapsedTotal()
	}
	var groups []*adapters.Group
	if scope.Expand > rule.ExpandOff || scope.Group {
		if groups, err = s.groupsOf(page, ranks); err != nil {
			return nil, err
		}
	}
	if result, err = s.query.Render(s.frame, page, groups, total); err == nil {
		result, err = s.withCounts(result)
	}
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	s.remember()
	return result, nil
}

// pageHits returns the hits of the page, and their ranks.
func (s *search) pageHits() (page []*rule.Seen, ranks []int, err error) {
	if s.showsOwnPage() {
		return pointers(s.special.neighbours.own.Hits), s.ownRanks(), nil
	}
	ranks = s.ranks()
	page = make([]*rule.Seen, len(ranks))
	for i, rank := range ranks {
		if page[i] = s.sources.at(rank); page[i] == nil {
			return nil, nil, portError(adapters.ErrMoved)
		}
	}
	return page, ranks, nil
}

// ranks returns the engine's ranks of the page's hits.
func (s *search) ranks() []int {
	ranks := s.found.Ranks
	if n := s.special.neighbours; n != nil && n.own != nil {
		ranks = ranks[:min(len(ranks), n.behind(s.page.From))]
	}
	return ranks
}

// outcome returns what was done.
func (s *search) outcome() adapters.Outcome {
	o := adapters.Outcome{
		Target: s.asked.Target, Raw: s.total(), Stats: s.found.Stats(), Without: s.judge.Lacking, Sketches: s.judge.Sketches(),
		Rounds: s.rounds, Window: s.page.Window, DryRun: s.asked.Scope.DryRun, Shorter: s.asked.Shorter,
	}
	o.Exact = o.Ended
	if o.Raw < 0 {
		o.Raw = o.Read
	}
	s.noteSpecial(&o)
	return o
}

// total returns the engine's count of hits, -1 where it is not known.
func (s *search) total() int {
	if s.counted == nil {
		return -1
	}
	return s.counted.Total
}

// wantsFrame reports whether the next reading is to bring all that a reply has beside its hits.
func (s *search) wantsFrame() bool { return s.frame == nil && !s.asksOwn() }

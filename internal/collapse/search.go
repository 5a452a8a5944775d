package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// asker asks the engine on behalf of one search.
type asker interface {
	ask(ctx context.Context, queries []adapters.Query) ([]adapters.QueryResult, error)
}

// search is one search being answered.
type search struct {
	adapters.Search
	asked  *adapters.Asked
	plan   *adapters.Plan
	engine asker
	single bool

	show  adapters.Show
	page  rerank.Page
	pager *rerank.Pager
	judge *adapters.Judge
	near  *neighbours // nil for most searches
	texts texts

	read   readings
	rounds int // how often the engine was asked
	native native
}

// readings are what is kept of what was read.
type readings struct {
	// frame holds everything that stands beside the page's hits. sources are the hits of the last reading as the client wants them, judged
	// those of the last one that was looked through from rank 0.
	frame, sources *adapters.Listing
	judged         sighted
	// own holds the client's own page, whose first hit stands at ownFrom; nil until a reading does. asSent is the result of the client's
	// own search as the client wrote it.
	own     *adapters.Listing
	ownFrom int
	asSent  []byte
	// total is the engine's count.
	total int
}

// newSearch returns the search of a place in the request.
func newSearch(all *adapters.Searches, place int, engine asker) *search {
	s := &search{Search: all.List[place], plan: &all.Plan, engine: engine, single: all.Single}
	s.asked = s.Asked()
	return s
}

// run answers the search.
func (s *search) run(ctx context.Context) ([]byte, adapters.Outcome, error) {
	if s.asked.Reason != "" {
		return s.asWritten(ctx, s.asked.Reason, false)
	}
	s.begin(s.asked.From, s.asked.Size)
	result, outcome, err := s.collapsed(ctx)
	if err != nil {
		return s.leave(ctx, err)
	}
	return result, outcome, nil
}

// collapsed answers the search with a page of the collapsed list.
func (s *search) collapsed(ctx context.Context) ([]byte, adapters.Outcome, error) {
	page, err := s.natively(ctx)
	if err != nil {
		return nil, adapters.Outcome{}, err
	}
	if page != nil {
		return page.Result, adapters.Outcome{
			Target: s.asked.Target, Raw: page.Raw, Folded: page.Raw - page.Shown, Exact: page.Exact, Rounds: 1, Native: true,
		}, nil
	}
	result, err := s.paged(ctx)
	if err != nil {
		return nil, adapters.Outcome{}, err
	}
	return result, s.outcome(), nil
}

// begin begins the page anew: the ranks [from, from+size) of the collapsed list. What is read for it, and in which order, follows from here.
func (s *search) begin(from, size int) {
	a := s.asked
	s.show = a.Scope.Show(a.Controls)
	s.page = s.plan.Page(from, size, a.Scope, a.Controls, a.Limit)
	if s.show.DryRun { // the client's own search is the answer
		s.page.SketchFirst, s.page.Sources = true, false
	}
	if s.judge == nil {
		s.judge = adapters.NewJudge(s.plan.Rules, a.Controls)
		s.judge.Doubting, s.judge.Late = a.Doubting, s.plan.Late
		s.texts.beside = a.Scope.Lacking
	}
	if a.Neighbours != nil {
		if s.near == nil {
			s.near = &neighbours{Neighbours: *a.Neighbours}
		}
		s.near.widen(&s.page)
	}
	s.pager = rerank.NewPager(s.page)
}

// again begins the same page anew.
func (s *search) again() { s.begin(s.page.From, s.page.Size) }

// leave answers a search that could not be collapsed: with the client's own page where a reply at hand holds it, else by the client's
// own search, else not at all.
func (s *search) leave(ctx context.Context, err error) ([]byte, adapters.Outcome, error) {
	alone, isAlone := errors.AsType[adapters.Alone](err)
	declined, isDeclined := errors.AsType[*adapters.Declined](err)
	o := adapters.Outcome{Target: s.asked.Target, Reason: adapters.ReasonOf(err)}
	if isAlone && s.read.asSent != nil {
		o.Reason = alone.Reason
		return s.Clean(s.read.asSent), o, nil
	}
	if adapters.IsLate(err) {
		if page := s.ownPage(); page != nil {
			return page, o, nil
		}
	}
	switch {
	case s.single || errors.Is(err, errStopped):
		return nil, o, err
	case isDeclined:
		if o.Reason = "refused"; declined.Final {
			return s.Clean(declined.Raw), o, nil
		}
	}
	return s.asWritten(ctx, o.Reason, s.rounds > 0 || s.native.tried || !adapters.IsLate(err))
}

// asWritten answers with the client's own search. again says that the engine was asked for something else before.
func (s *search) asWritten(ctx context.Context, reason string, again bool) ([]byte, adapters.Outcome, error) {
	o := adapters.Outcome{Target: s.asked.Target, Reason: reason}
	r := adapters.Reading{Own: true, AsSent: true}
	queries, err := s.Queries(r)
	if err != nil {
		return nil, o, adapters.NotUnderstood(err)
	}
	for i := range queries {
		queries[i].Raw = !again
	}
	results, err := s.engine.ask(ctx, queries)
	if err != nil {
		return nil, o, err
	}
	if again { // unless it was the client's own search that the engine declines
		_, err := s.Listing(r, results)
		_, declined := errors.AsType[*adapters.Declined](err)
		o.Again = !declined
	}
	return s.Clean(results[0].Raw()), o, nil
}

// ownPage returns the client's own page, nil if no reply held it.
func (s *search) ownPage() []byte {
	if s.read.asSent != nil {
		return s.Clean(s.read.asSent)
	}
	if s.read.own == nil {
		return nil
	}
	hits := s.read.own.Hits
	page := &adapters.ShownPage{Frame: hits, Total: -1}
	for at := s.read.ownFrom; at < min(s.read.ownFrom+s.page.Size, hits.Len()); at++ {
		page.Hits = append(page.Hits, adapters.PageHit{Place: adapters.Place{Hits: hits, At: at}})
	}
	result, err := s.Render(page)
	if err != nil {
		return nil
	}
	return result
}

// outcome returns what was done.
func (s *search) outcome() adapters.Outcome {
	o := adapters.OutcomeOf(s.asked.Target, s.page, s.pager.Stats(), s.judge.Lacking, s.read.total)
	o.Rounds, o.DryRun, o.Sketches = s.rounds, s.show.DryRun, s.judge.Sketches()
	if s.near != nil {
		s.near.tell(&o, s.asked.Limit)
	}
	if s.show.Collapsed {
		_, exact := s.total()
		o.Exact = o.Exact && exact
	}
	s.native.tell(&o)
	return o
}

// total returns how many hits the collapsed list holds, as far as the window tells: exactly, or at most.
func (s *search) total() (hits int, exact bool) {
	folded, exact := s.pager.Stats().Folded, s.read.total <= s.page.Window
	if s.near != nil {
		return s.near.total(folded, exact)
	}
	return max(s.read.total-folded, 0), exact
}

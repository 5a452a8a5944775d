package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// Ask sends requests to the engine, side by side, and returns their replies in order. Where one of them is no success it returns that
// reply alone: the others are of no use then. It returns [adapters.ErrLate] when the time for collapsing is over.
type Ask func(ctx context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error)

// Refused is the error of searches that the engine refuses for a reason that is not ours: credentials, load, its own failure. Its reply is the
// answer. It is an [adapters.ErrRefused].
type Refused struct{ Reply *adapters.Reply }

// Error implements error.
func (r *Refused) Error() string { return adapters.ErrRefused.Error() }

// Unwrap is for errors.Is.
func (r *Refused) Unwrap() error { return adapters.ErrRefused }

// Answer answers the searches of a request. Where it returns an error the client's request is to be sent as the client wrote it, unless
// it is a [Refused].
func Answer(ctx context.Context, searches *adapters.Searches, ask Ask) (*adapters.Answer, error) {
	if searches.Plan.Struck() {
		return nil, adapters.ErrLate
	}
	c := &conversation{Searches: searches, send: ask}
	results, outcomes, err := make([][]byte, 1), make([]adapters.Outcome, 1), error(nil)
	if searches.Single {
		results[0], outcomes[0], err = newSearch(searches, 0, c).run(ctx)
	} else {
		results, outcomes, err = c.together(ctx)
	}
	if declined, ok := errors.AsType[*adapters.Declined](err); ok {
		if !declined.Final {
			return nil, adapters.ErrWidened
		}
		outcomes = []adapters.Outcome{{Target: searches.List[0].Asked().Target, Reason: adapters.ReasonRefused}}
		return &adapters.Answer{Reply: *searches.Wire.Declined(c.reply, declined), Outcomes: outcomes}, nil
	}
	if err != nil {
		return nil, err
	}
	reply, err := searches.Wire.Reply(c.reply, results)
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	return &adapters.Answer{Reply: *reply, Outcomes: outcomes}, nil
}

// conversation is the exchange of requests and replies for one client's request.
type conversation struct {
	*adapters.Searches
	send Ask
	// reply is the one whose header the client gets, and in which the results are put: the first to a request that was not bare, which is
	// compressed as the client wants it.
	reply *adapters.Reply
	bare  bool
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
	// frame is the listing whose reply becomes the client's: everything in it but the hits is kept. sources is the last listing of hits as
	// the client wants them. judged are the hits of the last reading from rank 0 that were compared.
	frame, sources *adapters.Listing
	judged         sighted
	// own is a listing that contains the whole page as the engine has it, from place ownFrom on; nil until there is one. asSent is the
	// result of the client's own search as the client wrote it.
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

// run answers the search with what the client gets of it.
func (s *search) run(ctx context.Context) ([]byte, adapters.Outcome, error) {
	if s.asked.Reason != "" {
		return s.asWritten(ctx, s.asked.Reason, false)
	}
	s.begin(s.asked.From, s.asked.Size)
	if page, err := s.natively(ctx); err != nil {
		return s.leave(ctx, err)
	} else if page != nil {
		return page.Result, s.nativeOutcome(page), nil
	}
	result, err := s.collapse(ctx)
	if err != nil {
		return s.leave(ctx, err)
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

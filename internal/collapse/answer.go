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
	if searches.Ahead != nil {
		var err error
		if searches, err = ahead(ctx, searches.Ahead, ask); err != nil {
			return nil, err
		}
	}
	c := &conversation{Searches: searches, send: ask}
	results, outcomes, err := make([]adapters.Pieces, 1), make([]adapters.Outcome, 1), error(nil)
	if searches.Single {
		results[0], outcomes[0], err = newSearch(searches, 0, c, c).run(ctx)
	} else {
		results, outcomes, err = c.together(ctx)
	}
	if declined, ok := errors.AsType[*adapters.Declined](err); ok {
		if !declined.Final {
			return nil, adapters.ErrWidened
		}
		outcomes = []adapters.Outcome{{Target: searches.List[0].Asked().Target, Reason: adapters.ReasonRefused}}
		reply := searches.Wire.Declined(c.reply, declined)
		return c.answer(reply, adapters.Pieces{reply.Body}, outcomes), nil
	}
	if err != nil {
		return nil, err
	}
	body, err := searches.Wire.Body(c.reply, results)
	if err != nil {
		return nil, portError(err)
	}
	return c.answer(c.reply, body, outcomes), nil
}

func (c *conversation) answer(reply *adapters.Reply, body adapters.Pieces, outcomes []adapters.Outcome) *adapters.Answer {
	a := &adapters.Answer{Reply: *reply, Pieces: body, Outcomes: outcomes, After: c.giveBack}
	a.Body = nil
	return a
}

// search is one search being answered.
type search struct {
	adapters.Search
	asked  *adapters.Asked
	plan   *adapters.Plan
	engine asker
	alone  *conversation // nil for one of several searches

	show  adapters.Show
	page  rerank.Page
	found *rerank.Found // of the page, as far as it is known
	judge *adapters.Judge
	near  *neighbours // nil for most searches
	walk  *walk       // nil where the dialect knows no cursors
	texts texts

	read    readings
	native  native
	pointed bool // a point in time was asked for
	moved   bool // the list did, while it was read
}

// readings are what is kept of what was read.
type readings struct {
	rounds int // how often the engine was asked
	// frame is the listing whose reply becomes the client's: everything in it but the hits is kept. sources are the hits of the last reading with
	// sources, by their ranks.
	frame   *adapters.Listing
	sources map[int]adapters.Place
	// judged are the hits of the last reading from rank 0, texts the same with the texts that some of them were judged by.
	judged, texts adapters.Hits
	// own is a listing that contains the whole page as the engine has it, from place ownFrom on; nil until there is one. asSent is the
	// result of the client's own search as the client wrote it.
	own     *adapters.Listing
	ownFrom int
	asSent  []byte
	// total is the engine's count, -1 until it is known; atLeast says that there may be more.
	total    int
	atLeast  bool
	hitBytes int // how long the hits were that came last, in the mean
}

// newSearch returns the search of a place in the request. alone is the conversation of a single one.
func newSearch(all *adapters.Searches, place int, engine asker, alone *conversation) *search {
	s := &search{Search: all.List[place], plan: &all.Plan, engine: engine, alone: alone}
	s.asked, s.read.total = s.Asked(), -1
	return s
}

// run answers the search with what the client gets of it.
func (s *search) run(ctx context.Context) (adapters.Pieces, adapters.Outcome, error) {
	if s.asked.Reason != "" {
		return s.asWritten(ctx, s.asked.Reason, false)
	}
	s.begin(s.asked.From, s.asked.Size)
	if page, err := s.natively(ctx); err != nil {
		return s.leave(ctx, err)
	} else if page != nil {
		return adapters.Pieces{page.Result}, s.nativeOutcome(page), nil
	}
	result, err := s.collapse(ctx)
	if s.opens(err) != nil {
		return s.inPoint(ctx, result, err)
	}
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
	if s.judge == nil {
		s.judge = s.newJudge()
		s.texts.beside, s.texts.always = a.Scope.Lacking, a.Ways.Anew
	}
	s.page.SketchOnly = s.show.DryRun // no hit of the page is shown
	s.page.SketchFirst = a.Ways.Apart || s.texts.beside && a.Ways.TextsApart
	if a.Ways.Weighed && !s.texts.beside {
		s.page.HitBytes = a.Scope.HitBytes
	}
	if s.walk != nil {
		s.walk.goOn(&s.page)
	}
	if a.Neighbours != nil {
		if s.near == nil {
			s.near = &neighbours{Neighbours: *a.Neighbours}
		}
		s.near.widen(&s.page)
	}
	if p := &s.page; p.SketchOnly || a.Ways.Scattered && (p.SketchFirst || p.Whole || p.Transitive || from > 0) {
		p.Sources = false // no folded hit is shown, or those that are come with the page's own
	}
}

func (s *search) newJudge() *adapters.Judge {
	judge := adapters.NewJudge(s.plan.Rules, s.asked.Controls)
	judge.Doubting, judge.Deadline = s.asked.Doubting, s.plan.Deadline
	return judge
}

// outcome returns what was done.
func (s *search) outcome() adapters.Outcome {
	o := adapters.OutcomeOf(s.asked.Target, s.page, s.found.Stats(), s.judge.Lacking, s.read.total)
	o.Rounds, o.DryRun, o.Sketches, o.HitBytes = s.read.rounds, s.show.DryRun, s.judge.Sketches(), s.read.hitBytes
	if s.near != nil {
		s.near.tell(&o, s.asked.Limit)
	}
	if s.show.Collapsed {
		_, exact := s.total()
		o.Exact = o.Exact && exact
	}
	if s.walk != nil {
		s.walk.tell(&o)
	}
	s.native.tell(&o)
	return o
}

// total returns how many hits the collapsed list holds, as far as the window tells: exactly, or at most.
func (s *search) total() (hits int, exact bool) {
	stats := s.found.Stats()
	read, folded := min(stats.Read, s.page.Window), stats.Folded
	exact = stats.Read < s.page.Window || s.read.total >= 0 && s.read.total <= s.page.Window && !s.read.atLeast
	if s.near != nil {
		return s.near.total(folded, exact)
	}
	if before := s.page.After; before != nil { // alike on all pages
		read, folded = read+before.Ranks(), folded+before.Folded()
	}
	return max(max(s.read.total, read)-folded, 0), exact
}

package collapse

import (
	"context"
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
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

// conversation is what is asked and replied for one client's request.
type conversation struct {
	*adapters.Searches
	send Ask
	// reply is the one whose header the client gets, and in which the results are put: the first to a request that was not bare, which is
	// compressed as the client wants it.
	reply *adapters.Reply
	bare  bool
	// giveBack, if not nil, is the last request, for which the client does not wait.
	giveBack *adapters.Request
}

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
		results[0], outcomes[0], err = newSearch(searches, 0, c).run(ctx)
	} else {
		results, outcomes, err = c.together(ctx)
	}
	reply, body := c.reply, adapters.Pieces(nil)
	declined, isDeclined := errors.AsType[*adapters.Declined](err)
	switch {
	case isDeclined && !declined.Final:
		return nil, adapters.ErrWidened
	case isDeclined:
		outcomes = []adapters.Outcome{{Target: searches.List[0].Asked().Target, Reason: adapters.ReasonRefused}}
		reply = searches.Wire.Declined(c.reply, declined)
		body = adapters.Pieces{reply.Body}
	case err != nil:
		return nil, err
	default:
		if body, err = searches.Wire.Body(c.reply, results); err != nil {
			return nil, portError(err)
		}
	}
	answer := &adapters.Answer{Reply: *reply, Pieces: body, Outcomes: outcomes, After: c.giveBack}
	answer.Body = nil
	return answer, nil
}

// search is one search being answered.
type search struct {
	adapters.Search
	asked  *adapters.Asked
	plan   *adapters.Plan
	engine asker
	single *conversation // nil for one of several searches

	page       rerank.Page
	found      *rerank.Found // of the page, as far as it is known
	judge      *rule.Judge
	neighbours *neighbours // nil for most searches
	cursor     *cursor     // nil where the dialect knows no cursors
	texts      texts

	native  adapters.NativeOutcome
	pointed bool // a point in time was asked for

	// read is what is kept of what was read.
	read struct {
		rounds int  // how often the engine was asked
		moved  bool // the list did, while it was read
		// frame is the listing whose reply becomes the client's: everything in it but the hits is kept. sources are the hits of the last reading
		// with sources, by their ranks.
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
}

// newSearch returns the search of a place in the request.
func newSearch(all *adapters.Searches, place int, engine asker) *search {
	s := &search{Search: all.List[place], plan: &all.Plan, engine: engine}
	s.single, _ = engine.(*conversation)
	s.asked, s.read.total = s.Asked(), -1
	return s
}

// run answers the search with what the client gets of it.
func (s *search) run(ctx context.Context) (adapters.Pieces, adapters.Outcome, error) {
	if s.asked.Reason != "" {
		return s.asWritten(ctx, s.asked.Reason, false)
	}
	s.begin(s.asked.From, s.asked.Size)
	if s.asked.Native != nil {
		if result, o, err := s.natively(ctx); result != nil || err != nil {
			return result, o, err
		}
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
	s.page = rerank.Page{
		From: from, Size: size, Window: a.Scope.Window, Limit: a.Limit, Widening: a.Scope.Widening, Deadline: s.plan.Deadline,
		Whole: a.Scope.Chooses || a.Scope.CollapsedTotals, Transitive: a.Scope.Transitive, Sources: a.Scope.Expand == rule.ExpandSource,
	}
	if s.judge == nil {
		s.judge = s.newJudge()
		s.texts.beside, s.texts.always = a.Scope.Lacking, a.Ways.Scattered
	}
	s.page.SketchOnly = s.asked.Scope.DryRun // no hit of the page is shown
	s.page.SketchFirst = a.Ways.Apart || s.texts.beside && a.Ways.TextsApart
	if !a.Ways.Weighed || s.texts.beside {
		s.page.HitBytes = 0
	}
	if s.cursor != nil {
		s.cursor.goOn(&s.page)
	}
	if a.Neighbours != nil {
		if s.neighbours == nil {
			s.neighbours = &neighbours{Neighbours: *a.Neighbours}
		}
		s.neighbours.widen(&s.page)
	}
	if p := &s.page; p.SketchOnly || a.Ways.Scattered && (p.SketchFirst || p.Whole || p.Transitive || from > 0) {
		p.Sources = false // no folded hit is shown, or those that are come with the page's own
	}
}

func (s *search) newJudge() *rule.Judge {
	judge := rule.NewJudge(s.plan.Rules, s.asked.Controls.Threshold, s.asked.Controls.Keep)
	judge.Doubting, judge.Deadline = s.asked.Doubting, s.plan.Deadline
	return judge
}

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
		}
		if err == nil && s.neighbours != nil {
			err = s.decideOnOwnPage()
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
		case s.asked.Scope.DryRun:
			s.remember()
			return adapters.Pieces{s.Clean(s.read.asSent)}, nil
		default:
			return s.rendered()
		}
	}
}

// readSpan makes one reading: it asks for the span and judges its hits. Once the page is known (span.Ranks) its hits are read as the client wants
// them, and only which documents they are matters.
func (s *search) readSpan(ctx context.Context, span rerank.Span) ([]rerank.Hit, error) {
	r := adapters.Reading{
		To: span.To, Sources: span.Sources, Texts: s.texts.wanted(span), Frame: s.read.frame == nil && !s.leads(),
	}
	if span.Ranks != nil {
		if s.neighbours != nil {
			if err := s.decideOnOwnPage(); err != nil {
				return nil, err
			}
		}
		r.Ranks, r.Known = s.withFolded(span.Ranks), s.read.judged
		r.From, r.To = r.Ranks[0], r.Ranks[len(r.Ranks)-1]+1
	}
	listing, err := s.listing(ctx, &r)
	if err != nil {
		return nil, err
	}
	s.keep(&r, listing)
	switch {
	case s.cursor.unknown():
		return nil, s.findBefore(ctx, &r, listing)
	case span.Ranks != nil:
		return s.picked(&r, span.Ranks, listing)
	}
	s.read.judged, s.read.texts = listing.Hits, listing.Hits
	hits, missing, err := s.judgeAll(s.judge, listing.Hits)
	if err == nil && (len(missing) > 0 || r.Sources && s.asked.Ways.Apart) {
		return s.judgeWithTexts(ctx, span, &r, hits, missing)
	}
	return hits, err
}

// listing makes a reading: the dialect writes the queries and reads their results.
func (s *search) listing(ctx context.Context, r *adapters.Reading) (*adapters.Listing, error) {
	if listing := s.cursor.atHand(r); listing != nil {
		return listing, nil
	}
	if s.neighbours != nil {
		r.Neighbours = s.neighbours.Raised
	}
	reader, err := s.Read(*r)
	for results := []adapters.QueryResult(nil); err == nil; {
		var queries []adapters.Query
		if queries, err = reader.Queries(results); err == nil && len(queries) > 0 {
			ask := s.ask
			if s.leads() && s.read.frame == nil {
				ask = s.askWithOwn
			}
			more, err := ask(ctx, queries)
			if err != nil {
				return nil, err
			}
			results = append(results, more...)
		} else if err == nil {
			var listing *adapters.Listing
			if listing, err = reader.Listing(results); err == nil {
				return listing, nil
			}
		}
	}
	return nil, s.unread(err)
}

// keep keeps what a listing says beside its hits.
func (s *search) keep(r *adapters.Reading, l *adapters.Listing) {
	if !s.leads() && l.Total >= 0 {
		s.read.total, s.read.atLeast = l.Total, l.AtLeast
	}
	if s.neighbours != nil && r.Ranks == nil {
		s.neighbours.length, s.neighbours.full = l.Total, l.Full
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

// judgeAll judges hits, and returns which of them lack a sketch that could be computed from their text.
func (s *search) judgeAll(judge *rule.Judge, seen adapters.Hits) (hits []rerank.Hit, missing []int, err error) {
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

// rendered returns the result that the client gets, once the page is known: its hits, with what is folded into them where that is to be shown.
func (s *search) rendered() (adapters.Pieces, error) {
	total, ranks, shown := -1, s.ranks(), (*groups)(nil)
	if s.asked.Scope.CollapsedTotals {
		total, _ = s.total()
	}
	unfolded := s.neighbours != nil && s.neighbours.unfolded
	if unfolded {
		ranks = s.ownRanks()
	}
	if s.asked.Scope.Expand > rule.ExpandOff {
		shown = s.groups()
	}
	hits := make([]adapters.PageHit, len(ranks))
	for i, rank := range ranks {
		place := s.read.sources[rank]
		if unfolded {
			place = adapters.Place{Hits: s.neighbours.own.Hits, At: i}
		}
		if place.Hits == nil {
			return nil, portError(adapters.ErrMoved)
		}
		if hits[i].Place = place; shown != nil {
			if s.asked.Controls.Explains() && s.plan.Struck() {
				return nil, adapters.ErrLate
			}
			hits[i].Group = s.group(rank, s.judge.Rule(place.Hits.Seen(place.At).Index), shown)
		}
	}
	result, err := s.Render(s.read.frame.Hits, hits, total)
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	s.remember()
	return result, nil
}

// outcome returns what was done.
func (s *search) outcome() adapters.Outcome {
	stats := s.found.Stats()
	stats.HitBytes = s.read.hitBytes
	o := adapters.Outcome{
		Target: s.asked.Target, Raw: s.read.total, Stats: stats, Without: s.judge.Lacking, Sketches: s.judge.Sketches(), Exact: stats.Ended,
		Rounds: s.read.rounds, Window: s.page.Window, DryRun: s.asked.Scope.DryRun, NativeOutcome: s.native,
	}
	if o.Raw < 0 {
		o.Raw = stats.Read
	}
	if s.native.Tried {
		o.Rounds++
	}
	if s.neighbours != nil {
		s.neighbours.tell(&o, s.asked.Limit)
	}
	if s.asked.Scope.CollapsedTotals {
		_, exact := s.total()
		o.Exact = o.Exact && exact
	}
	if s.cursor != nil {
		s.cursor.tell(&o)
	}
	return o
}

// total returns how many hits the collapsed list holds, as far as the window tells: exactly, or at most.
func (s *search) total() (hits int, exact bool) {
	stats := s.found.Stats()
	read, folded := min(stats.Read, s.page.Window), stats.Folded
	exact = stats.Read < s.page.Window || s.read.total >= 0 && s.read.total <= s.page.Window && !s.read.atLeast
	if s.neighbours != nil {
		return s.neighbours.total(folded, exact)
	}
	if before := s.page.After; before != nil { // alike on all pages
		read, folded = read+before.Ranks(), folded+before.Folded()
	}
	return max(max(s.read.total, read)-folded, 0), exact
}

// ranks returns the engine's ranks of the page's hits.
func (s *search) ranks() []int {
	ranks := s.found.Ranks
	if s.neighbours != nil && s.neighbours.own != nil {
		ranks = ranks[:min(len(ranks), s.neighbours.behind(s.page.From))]
	}
	return ranks
}

// picked returns those hits of a reading that are of the page, none if one of the others is not there, or is not the one that was judged: then
// the list has moved.
func (s *search) picked(r *adapters.Reading, page []int, l *adapters.Listing) (shown []rerank.Hit, err error) {
	hits := make([]rerank.Hit, l.Hits.Len())
	for i := range hits {
		hits[i] = identityOf(l.Hits.Seen(i))
	}
	if !s.found.Agrees(r.Ranks, hits) {
		if s.read.moved = true; s.opens(adapters.ErrMoved) != nil {
			return nil, adapters.ErrMoved // it is not read again but in a point in time
		}
		return nil, nil
	}
	for i, rank := range r.Ranks[:min(len(hits), len(r.Ranks))] {
		if _, of := slices.BinarySearch(page, rank); of {
			shown = append(shown, hits[i])
		}
	}
	return shown, nil
}

// identityOf returns what tells a hit from all others.
func identityOf(seen rule.Seen) rerank.Hit {
	if seen.Key != "" {
		return rerank.Hit{ID: seen.Key}
	}
	return rule.Unjudged(seen.Index, seen.ID)
}

// asker asks the engine on behalf of one search.
type asker interface {
	ask(ctx context.Context, queries []adapters.Query) ([]adapters.QueryResult, error)
}

// maxRounds bounds how often one search may ask the engine, whatever its dialect says.
const maxRounds = 64

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

// ask asks queries, in as few rounds as they fit in, and returns their results. When the time is over it asks for nothing but the client's own
// searches.
func (c *conversation) ask(ctx context.Context, queries []adapters.Query) ([]adapters.QueryResult, error) {
	var results []adapters.QueryResult
	for len(results) < len(queries) {
		rest := queries[len(results):]
		if c.Plan.Struck() && !own(rest) {
			return nil, adapters.ErrLate
		}
		joined, err := c.Wire.Join(rest)
		if err != nil {
			return nil, adapters.NotUnderstood(err)
		}
		requests := make([]*adapters.Request, len(joined))
		for i, j := range joined {
			requests[i] = j.Request
		}
		replies, err := c.send(ctx, requests...)
		if err != nil {
			return nil, err
		}
		if len(replies) == 1 && len(joined) > 1 { // one of them is refused
			joined = []adapters.Joined{{Request: joined[0].Request, Queries: len(rest)}}
		}
		if len(joined) == 0 || len(replies) != len(joined) {
			return nil, adapters.NotUnderstood(errors.New("not as many replies as requests"))
		}
		for i, j := range joined {
			part, err := c.Wire.Split(rest[:j.Queries], replies[i])
			if err == nil && len(part) != j.Queries {
				err = errors.New("not as many results as queries")
			}
			if errors.Is(err, adapters.ErrRefused) {
				return nil, &Refused{replies[i]}
			}
			if err != nil {
				return nil, portError(err)
			}
			if c.reply == nil || c.bare && !j.Bare {
				c.reply, c.bare = replies[i], j.Bare
			}
			results, rest = append(results, part...), rest[j.Queries:]
		}
	}
	return results, nil
}

// own reports whether all queries are the client's own searches.
func own(queries []adapters.Query) bool {
	return !slices.ContainsFunc(queries, func(q adapters.Query) bool { return !q.Own })
}

// portError returns an error of the dialect as one of the port's.
func portError(err error) error {
	_, alone := errors.AsType[adapters.Alone](err)
	_, declined := errors.AsType[*adapters.Declined](err)
	if alone || declined || errors.Is(err, adapters.ErrWidened) || errors.Is(err, adapters.ErrNotUnderstood) {
		return err
	}
	return adapters.NotUnderstood(err)
}

var (
	errEndless = errors.New("the search does not end")
	errNoFrame = errors.New("a reply without what stands beside its hits")
)

// ahead asks for what the searches follow from.
func ahead(ctx context.Context, first adapters.Ahead, ask Ask) (*adapters.Searches, error) {
	replies, err := ask(ctx, first.Request())
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

// readFrame reads only what the reply has beside its hits.
func (s *search) readFrame(ctx context.Context) error {
	if s.leads() {
		_, err := s.askWithOwn(ctx, nil)
		return err
	}
	r := adapters.Reading{From: s.page.From, To: s.page.From, Frame: true}
	listing, err := s.listing(ctx, &r)
	if err != nil {
		return err
	}
	s.keep(&r, listing)
	if s.read.frame == nil {
		return adapters.NotUnderstood(errNoFrame)
	}
	return nil
}

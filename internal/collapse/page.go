package collapse

import (
	"context"
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// Ask sends requests to the engine, side by side, and returns their replies in order. Where one of several is no success it returns that
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
	ask Ask
	// reply is the one whose header the client gets: the first reply that holds hits as the client wants them, not only their sketches. It is
	// compressed as the client wants it.
	reply   *adapters.Reply
	judging bool // so far all asked for no more
	// giveBack, if not nil, is the last request, for which the client does not wait.
	giveBack *adapters.Request
}

// Answer answers the searches of a request with their collapsed pages, in a reply of the engine's. Where it returns an error the client's
// request is to be sent as the client wrote it, unless the error is a [Refused].
func Answer(ctx context.Context, searches *adapters.Searches, ask Ask) (answer *adapters.Answer, err error) {
	if searches.Plan.Late() {
		return nil, adapters.ErrLate
	}
	if searches.Ahead != nil {
		if searches, err = ahead(ctx, searches.Ahead, ask); err != nil {
			return nil, err
		}
	}
	c := &conversation{Searches: searches, ask: ask}
	results, outcomes := make([]adapters.Pieces, 1), make([]adapters.Outcome, 1)
	if searches.Single {
		results[0], outcomes[0], err = c.newSearch(searches.List[0]).run(ctx)
	} else {
		results, outcomes, err = c.together(ctx)
	}
	if declined, is := errors.AsType[*adapters.Declined](err); is {
		return c.declined(declined)
	}
	if err != nil {
		return nil, err
	}
	body := results[0]
	if searches.Envelope != nil {
		if body, err = searches.Envelope.Body(c.reply, results); err != nil {
			return nil, portError(err)
		}
	}
	return c.answer(c.reply, body, outcomes), nil
}

// answer returns what the client gets: the header of a reply, and a body in place of its own.
func (c *conversation) answer(reply *adapters.Reply, body adapters.Pieces, outcomes []adapters.Outcome) *adapters.Answer {
	return &adapters.Answer{Reply: adapters.Reply{Status: reply.Status, Header: reply.Header}, Pieces: body, Outcomes: outcomes, After: c.giveBack}
}

// search is one search being answered. Ranks are places in the engine's list, from 0.
type search struct {
	dialect adapters.Search // the client's search, as its dialect reads it
	asked   *adapters.Asked // what it asks for
	all     *conversation   // that it is a part of
	asker   asker

	page  rerank.Page   // what is wanted
	found *rerank.Found // of it, so far
	judge *rule.Judge

	texts  texts // which readings bring them too
	rounds int   // how often the engine was asked
	brought
	special
}

// brought is what the readings brought.
type brought struct {
	// frame is the listing whose reply becomes the client's: everything in it but the hits stays. sources are the hits of the last reading
	// with sources, by their ranks; compared those of the last reading from rank 0.
	frame    *adapters.Listing
	sources  map[int]*rule.Seen
	compared []rule.Seen
	// texted are the same hits, with the texts that some of them were judged by.
	texted []rule.Seen
	// unfolded is a listing that holds the whole page as the engine has it, from place unfoldedFrom on; nil until there is one.
	unfolded     *adapters.Listing
	unfoldedFrom int
	// total is the engine's count of hits, -1 until it is known; atLeast says that there may be more.
	total    int
	atLeast  bool
	hitBytes int // the mean length of the hits that came last
}

// special is what only some searches need.
type special struct {
	neighbours *neighbours // nil but for a search of nearest neighbours
	cursor     *cursor     // nil where clients do not go through the list by cursors
	native     adapters.NativeOutcome
	pointed    bool   // a point in time was asked for
	moved      bool   // the list did, while it was read
	atOnce     bool   // so all is read in one reading
	asSent     []byte // the result of the client's own search as the client wrote it
}

// newSearch returns one search of the request. It sends its own requests; together.go makes several go out as one.
func (c *conversation) newSearch(dialect adapters.Search) *search {
	s := &search{dialect: dialect, asked: dialect.Asked(), all: c, asker: c, brought: brought{total: -1}}
	s.page.From, s.page.Size = s.asked.From, s.asked.Size
	s.judge, s.texts = s.newJudge(), texts{beside: s.asked.Scope.Lacking, always: s.asked.Ways.Scattered}
	return s
}

// newJudge returns what compares the hits of the search.
func (s *search) newJudge() *rule.Judge {
	judge := rule.NewJudge(s.all.Plan.Rules, s.asked.Controls.Threshold, s.asked.Controls.Keep)
	judge.Doubting, judge.Deadline = s.asked.Doubting, s.all.Plan.Deadline
	return judge
}

// run answers the search with the result that the client gets.
func (s *search) run(ctx context.Context) (adapters.Pieces, adapters.Outcome, error) {
	if s.asked.Reason != "" {
		return s.asWritten(ctx, s.asked.Reason, false)
	}
	if s.asked.Native != nil {
		if result, o, err := s.natively(ctx); result != nil || err != nil {
			return result, o, err
		}
	}
	result, err := s.collapse(ctx)
	if s.needsPoint(err) {
		return s.inPoint(ctx, result, err)
	}
	if err != nil {
		return s.leave(ctx, err)
	}
	return result, s.outcome(), nil
}

// collapse reads the list until the page is known, and renders it.
func (s *search) collapse(ctx context.Context) (adapters.Pieces, error) {
	for {
		scope, ways := &s.asked.Scope, s.asked.Ways
		s.page = rerank.Page{
			From: s.page.From, Size: s.page.Size, Window: scope.Window, Limit: s.asked.Limit, Widening: scope.Widening, Deadline: s.all.Plan.Deadline,
			Whole: scope.Chooses || scope.CollapsedTotals, Transitive: scope.Transitive, FoldedToo: scope.Expand == rule.ExpandSource,
			SketchOnly:  scope.DryRun, // no hit of the page is shown
			SketchFirst: ways.Apart || s.texts.beside && ways.TextsApart,
		}
		if !ways.Weighed || s.texts.beside { // it does not matter how long hits are
			s.page.HitBytes = 0
		}
		if s.asked.Cursor != nil {
			s.goOn()
		}
		if s.asked.Neighbours != nil {
			s.widen()
		}
		if p := &s.page; p.SketchOnly || ways.Scattered && (p.SketchFirst || p.Whole || p.Transitive || p.From > 0) {
			p.FoldedToo = false // no folded hit is shown, or those that are come with the page's own
		}
		s.page.FoldedToo = s.page.FoldedToo || s.atOnce
		var err error
		s.found = rerank.FindPage(s.page)
		for span := range s.found.Spans() {
			if err = s.readSpan(ctx, span); err != nil {
				break
			}
		}
		if s.neighbours != nil {
			err = s.orOwnPage(err)
		}
		if err == nil && s.asked.Short != "" && s.found.Stats().Limited && (s.neighbours == nil || !s.neighbours.unfolded) {
			err = adapters.Alone{Reason: s.asked.Short, Searched: true}
		}
		if err == nil && s.frame == nil {
			err = s.readFrame(ctx)
		}
		if err == nil {
			return s.rendered()
		}
		if !errors.Is(err, errAnew) {
			return nil, err
		}
	}
}

// errAnew: what was read shows that the page is to be read in another way, from its beginning.
var errAnew = errors.New("the page is read anew")

// readSpan reads a span, judges its hits and adds them to what is found. Once the page is known (span.Ranks) its hits are read as the client wants
// them. They are not judged again: their ids alone are compared with the first reading, to see whether the list moved.
func (s *search) readSpan(ctx context.Context, span rerank.Span) error {
	r := adapters.Reading{
		To: span.To, Sources: span.Sources, Judged: span.Ranks == nil, Texts: s.texts.wanted(span), Frame: s.frame == nil && !s.asksOwn(),
	}
	if span.Ranks != nil {
		if s.neighbours != nil {
			if err := s.decideOnOwnPage(); err != nil {
				return err
			}
		}
		r.Ranks, r.Known = span.Ranks, s.compared
		if s.asked.Ways.Scattered && s.asked.Scope.Expand == rule.ExpandSource {
			r.Ranks = s.withFolded(span.Ranks)
		}
		r.From, r.To = r.Ranks[0], r.Ranks[len(r.Ranks)-1]+1
	}
	listing, err := s.read(ctx, &r)
	if err != nil {
		return err
	}
	s.keepForPage(&r, listing)
	if s.cursor != nil && s.cursor.unknown() {
		return s.findBefore(ctx, &r, listing)
	}
	var hits []rerank.Hit
	if span.Ranks != nil {
		hits, err = s.unmoved(&r, span.Ranks, listing)
	} else {
		s.compared, s.texted = listing.Hits, listing.Hits
		var missing []int
		hits, missing, err = s.judgeAll(s.judge, listing.Hits)
		if err == nil && (len(missing) > 0 || r.Sources && s.asked.Ways.Apart) {
			return s.judgeWithTexts(ctx, span, &r, hits, missing)
		}
	}
	if err != nil {
		return err
	}
	return s.found.Add(span, hits)
}

// maxRounds bounds how often one search may ask the engine, whatever its dialect says.
const maxRounds = 64

// read makes a reading: the dialect asks for what it takes, and lists the hits. For most engines one request is a whole reading. The client's own
// search goes along where that is still to be asked.
func (s *search) read(ctx context.Context, r *adapters.Reading) (*adapters.Listing, error) {
	if s.cursor != nil {
		if listing := s.cursor.atHand(r); listing != nil {
			return listing, nil
		}
	}
	if s.neighbours != nil {
		r.Neighbours = s.neighbours.Raised
	}
	requests, err := s.dialect.Requests(r, nil)
	for replies := []*adapters.Reply(nil); err == nil; requests, err = s.dialect.Requests(r, replies) {
		if len(requests) == 0 {
			listing, err := s.dialect.Listing(r, replies)
			if err != nil {
				return nil, s.readingFailed(err)
			}
			return listing, nil
		}
		more, err := s.ask(ctx, requests)
		if err != nil {
			return nil, err
		}
		replies = append(replies, more...)
	}
	return nil, s.readingFailed(err)
}

// ask makes one round of a reading.
func (s *search) ask(ctx context.Context, requests []*adapters.Request) (replies []*adapters.Reply, err error) {
	switch {
	case s.rounds == maxRounds:
		err = adapters.NotUnderstood(errors.New("the search does not end"))
	case s.frame == nil && s.asksOwn():
		replies, err = s.askBesideOwn(ctx, requests)
	default:
		replies, err = s.asker.exchange(ctx, requests)
	}
	if !adapters.IsLate(err) {
		s.rounds++
	}
	return replies, err
}

// asker asks the engine on behalf of one search.
type asker interface {
	exchange(ctx context.Context, requests []*adapters.Request) ([]*adapters.Reply, error)
}

// exchange asks the engine and returns a successful reply to each request. A Wire joins them in as few as they fit in. When the time is over nothing
// but the client's own searches is asked for.
func (c *conversation) exchange(ctx context.Context, requests []*adapters.Request) (replies []*adapters.Reply, err error) {
	for len(requests) > 0 {
		if c.Plan.Late() && !allOwn(requests) {
			return nil, adapters.ErrLate
		}
		sent, parts := requests, [][]*adapters.Request(nil)
		if c.Wire != nil {
			if sent, parts, err = c.Wire.Join(requests); err != nil {
				return nil, adapters.NotUnderstood(err)
			}
		}
		came, err := c.ask(ctx, sent...)
		if err != nil {
			return nil, err
		}
		for i, reply := range came[:min(len(came), len(sent))] {
			if reply.Status != 200 {
				if err := c.refusal(requests, reply); err != nil {
					return nil, err
				}
			}
			if judging := sent[i].JudgingOnly; c.reply == nil || c.judging && !judging {
				c.reply, c.judging = reply, judging
			}
		}
		if len(came) != len(sent) {
			return nil, adapters.NotUnderstood(errors.New("not as many replies as requests"))
		}
		if c.Wire == nil {
			return came, nil
		}
		for i, part := range parts {
			results, err := c.Wire.Split(part, came[i])
			switch {
			case err != nil:
				return nil, portError(err)
			case len(results) != len(part):
				return nil, adapters.NotUnderstood(errors.New("not as many results as searches"))
			}
			replies, requests = append(replies, results...), requests[len(part):]
		}
	}
	return replies, nil
}

// refusal returns the error of a reply in which the engine refuses requests, nil if it does not.
func (c *conversation) refusal(requests []*adapters.Request, reply *adapters.Reply) error {
	err := c.List[0].Refusal(requests, reply)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, adapters.ErrRefused):
		return &Refused{reply}
	}
	return portError(err)
}

// allOwn reports whether all requests are for the client's own searches.
func allOwn(requests []*adapters.Request) bool {
	return !slices.ContainsFunc(requests, func(r *adapters.Request) bool { return !r.Own })
}

// keepForPage keeps what the page is rendered from: the frame, the hits with their sources, and the engine's total.
func (s *search) keepForPage(r *adapters.Reading, l *adapters.Listing) {
	if !s.asksOwn() && l.Total >= 0 {
		s.total, s.atLeast = l.Total, l.AtLeast
	}
	if s.neighbours != nil && r.Ranks == nil {
		s.neighbours.length, s.neighbours.full = l.Total, l.Full
	}
	if l.HitBytes > 0 {
		s.hitBytes = l.HitBytes
	}
	if s.unfolded == nil && s.frame == nil && !s.asksOwn() && r.Sources && r.Ranks == nil && r.From == 0 && r.To >= s.page.From+s.page.Size {
		s.unfolded, s.unfoldedFrom = l, s.page.From
	}
	if r.Frame && l.Framed {
		s.frame = l
	}
	if r.Sources {
		s.sources = make(map[int]*rule.Seen, len(l.Hits))
		for at := range l.Hits {
			rank := r.From + at
			if r.Ranks != nil {
				rank = r.Ranks[at]
			}
			s.sources[rank] = &l.Hits[at]
		}
	}
}

// betweenLooks is how many hits are judged between two looks at the time, beside the one before each sketch that is computed.
const betweenLooks = 4

// judgeAll judges hits, and returns which of them lack a sketch that could be computed from their text.
func (s *search) judgeAll(judge *rule.Judge, seen []rule.Seen) (hits []rerank.Hit, missing []int, err error) {
	judge.Reset()
	hits = make([]rerank.Hit, len(seen))
	for i := range hits {
		if i%betweenLooks == 0 && s.all.Plan.Late() {
			return nil, nil, adapters.ErrLate
		}
		unread := judge.Unread
		if hits[i] = judge.Hit(seen[i]); judge.Unread > unread {
			missing = append(missing, i)
		}
	}
	if judge.Lacking > 0 && s.all.Plan.Late() { // sketches may not have been computed
		return nil, nil, adapters.ErrLate
	}
	return hits, missing, nil
}

// rendered returns the result that the client gets, once the page is known: its hits, with what is folded into them where that is to be shown, in
// place of those of the frame.
func (s *search) rendered() (result adapters.Pieces, err error) {
	if s.asked.Scope.DryRun {
		result = adapters.Pieces{s.dialect.Clean(s.asSent)}
	} else {
		ranks, total := s.ranks(), -1
		page := make([]*rule.Seen, 0, len(ranks))
		if s.neighbours != nil && s.neighbours.unfolded {
			page, ranks = pointers(s.neighbours.own.Hits), s.ownRanks()
		} else {
			for _, rank := range ranks {
				hit := s.sources[rank]
				if hit == nil {
					return nil, portError(adapters.ErrMoved)
				}
				page = append(page, hit)
			}
		}
		if s.asked.Scope.CollapsedTotals {
			total, _ = s.collapsedTotal()
		}
		var groups []*adapters.Group
		if s.asked.Scope.Expand > rule.ExpandOff {
			if groups, err = s.groupsOf(page, ranks); err != nil {
				return nil, err
			}
		}
		if result, err = s.dialect.Render(s.frame, page, groups, total); err != nil {
			return nil, adapters.NotUnderstood(err)
		}
	}
	if s.cursor != nil {
		s.remember()
	}
	return result, nil
}

// outcome returns what was done.
func (s *search) outcome() adapters.Outcome {
	stats := s.found.Stats()
	stats.HitBytes = s.hitBytes
	o := adapters.Outcome{
		Target: s.asked.Target, Raw: s.total, Stats: stats, Without: s.judge.Lacking, Sketches: s.judge.Sketches(), Exact: stats.Ended,
		Rounds: s.rounds, Window: s.page.Window, DryRun: s.asked.Scope.DryRun, NativeOutcome: s.native,
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
		_, exact := s.collapsedTotal()
		o.Exact = o.Exact && exact
	}
	if s.cursor != nil {
		s.cursor.tell(&o)
	}
	return o
}

// collapsedTotal returns how many hits the collapsed list holds, as far as the window tells: exactly, or at most.
func (s *search) collapsedTotal() (hits int, exact bool) {
	stats := s.found.Stats()
	read, folded := min(stats.Read, s.page.Window), stats.Folded
	exact = stats.Read < s.page.Window || s.total >= 0 && s.total <= s.page.Window && !s.atLeast
	if s.neighbours != nil {
		return s.neighbours.total(folded, exact)
	}
	if before := s.page.After; before != nil { // alike on all pages
		read, folded = read+before.Ranks(), folded+before.Folded()
	}
	return max(max(s.total, read)-folded, 0), exact
}

// ranks returns the engine's ranks of the page's hits.
func (s *search) ranks() []int {
	ranks := s.found.Ranks
	if s.neighbours != nil && s.neighbours.own != nil {
		ranks = ranks[:min(len(ranks), s.neighbours.behind(s.page.From))]
	}
	return ranks
}

// unmoved returns those hits of a reading that are of the page; none if one that was judged is not there any more, for then the list has moved.
func (s *search) unmoved(r *adapters.Reading, page []int, l *adapters.Listing) (shown []rerank.Hit, err error) {
	hits := make([]rerank.Hit, len(l.Hits))
	for i := range hits {
		hits[i].ID = l.Hits[i].ID
	}
	if !s.found.Agrees(r.Ranks, hits) {
		if s.moved = true; s.needsPoint(adapters.ErrMoved) {
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

// portError returns an error of the dialect as one of the port's.
func portError(err error) error {
	_, alone := errors.AsType[adapters.Alone](err)
	_, declined := errors.AsType[*adapters.Declined](err)
	if alone || declined || errors.Is(err, adapters.ErrWidened) || errors.Is(err, adapters.ErrNotUnderstood) {
		return err
	}
	return adapters.NotUnderstood(err)
}

// readFrame reads only what the reply has beside its hits, where no reading of them brought it.
func (s *search) readFrame(ctx context.Context) error {
	if s.asksOwn() {
		s.rounds++
		_, err := s.askBesideOwn(ctx, nil)
		return err
	}
	r := adapters.Reading{From: s.page.From, To: s.page.From, Sources: true, Frame: true}
	listing, err := s.read(ctx, &r)
	if err != nil {
		return err
	}
	s.keepForPage(&r, listing)
	if s.frame == nil {
		return adapters.NotUnderstood(errors.New("a reply without what is beside its hits"))
	}
	return nil
}

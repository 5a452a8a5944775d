package elastic

import (
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// readCursor reads whether the list begins behind a cursor.
func (q *query) readCursor() {
	q.after = adapters.Get(q.members, "search_after")
	if string(q.after) == "null" {
		q.after = nil
	}
}

// left returns why a search has to be left alone that begins behind a cursor, or nothing.
func (q *query) left(scope adapters.Scope) adapters.Reason {
	switch {
	case scope.Piped:
		return "search_pipeline"
	case q.after != nil && (scope.Chooses || scope.Transitive): // the last hit shown tells where the next page begins, the best one does not
		return "cursor"
	case q.after != nil && q.from > 0: // the engine says so
		return "not_understood"
	case q.after != nil && q.has("knn", "rescore", "retriever"):
		return "cursor"
	}
	return ""
}

// has reports whether one of the keys stands in the search's body.
func (q *query) has(keys ...string) bool {
	return slices.ContainsFunc(q.members, func(m adapters.Member) bool { return slices.Contains(keys, m.Key) })
}

// leftAmong returns the same for a search that is one of several or comes from a template.
func (q *query) leftAmong(scope adapters.Scope) adapters.Reason {
	if reason := q.left(scope); reason != "" || q.after == nil {
		return reason
	}
	return "cursor"
}

// cut returns the part of a reading that was asked for: behind a cursor every reading begins at the cursor.
func (q *query) cut(list []hit, from int) []hit {
	if q.after == nil {
		return list
	}
	return list[min(from, len(list)):]
}

// exchange returns what collapses a search with a request of its own, or why it is left alone.
func (d Dialect) exchange(asked *adapters.Request, q *query, p adapters.Plan, scope adapters.Scope) (adapters.Exchange, adapters.Reason) {
	c := newCollapse(d, q, p, scope)
	switch {
	case c == nil:
		return nil, "not_understood"
	case q.after != nil && c.near != nil:
		return nil, "cursor"
	}
	ranked := q.from == 0 && !scope.Chooses && !scope.Transitive && c.near == nil
	walks := q.after != nil || ranked && p.Cursors != nil && q.sorted()
	begin := func(c *collapse) adapters.Exchange {
		s := &single{request: asked, collapse: c}
		if walks {
			return &cursored{single: s, cursors: p.Cursors, window: c.page.Window}
		}
		return s
	}
	if c.near != nil || c.show.DryRun || !d.points(asked, q) {
		return begin(c), ""
	}
	again := func(limit int) (adapters.Exchange, *collapse) {
		q := *q
		q.limit = limit
		c := newCollapse(d, &q, p, scope)
		return begin(c), c
	}
	return &pointed{d: d, request: asked, q: q, inner: begin(c), c: c, again: again}, ""
}

// cursored is a search whose pages a client walks by their last hits' sort values: it begins at such a cursor, or is the first
// page of such a walk. What the pages before have shown is remembered; if it is not, it is found out from the ranks before the
// cursor.
type cursored struct {
	*single
	cursors adapters.Cursors // nil where nothing is remembered
	window  int              // from the beginning of the list

	state cursorState
	own   *adapters.Reply // the client's own page, while the ranks before it are read
	early bool            // they are read with the texts of hits
	lost  bool
}

// cursorState is what a cursored search waits for.
type cursorState int

const (
	cursorBegins cursorState = iota
	cursorOwn                // the page behind the cursor, to find out its first hit
	cursorBefore             // the ranks before the cursor
	cursorWalks              // what was shown is known
)

// Next implements adapters.Exchange.
func (s *cursored) Next(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	if reply == nil && s.state != cursorBegins { // none came in time
		return s.lately()
	}
	ask, answer, err := s.advance(reply)
	if adapters.IsLate(err) {
		return s.lately()
	}
	return ask, answer, err
}

func (s *cursored) advance(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	switch {
	case s.state == cursorBegins && s.q.after == nil:
		s.state = cursorWalks
	case s.state == cursorBegins:
		walk, ok := s.remembered()
		if !ok {
			s.state = cursorOwn
			break
		}
		s.resume(walk)
	case s.state == cursorOwn:
		return s.takeOwn(reply)
	case s.state == cursorBefore:
		return s.takeBefore(reply)
	}
	ask, answer, err := s.single.Next(reply)
	if answer != nil && !answer.WasLate() {
		s.remember()
		s.told(&answer.Outcomes[0])
	}
	return ask, answer, err
}

// remembered returns what was shown in front of the client's cursor.
func (s *cursored) remembered() (*rerank.Walk, bool) {
	if s.cursors == nil {
		return nil, false
	}
	return s.cursors.Get(s.key(s.q.pit(), s.q.after))
}

// resume begins the page behind what was walked.
func (s *cursored) resume(walk *rerank.Walk) {
	if walk.Ranks() > 0 { // the more was shown, the more folds
		s.page.Rate = max(s.page.Rate, float64(walk.Folded())/float64(walk.Ranks()))
	}
	s.page.After, s.page.Window = walk, max(0, s.window-walk.Ranks())
	s.readTexts(s.collapse.texts)
	s.state = cursorWalks
}

// takeOwn takes the page behind the cursor. Where it is empty nothing need be known of the ranks before.
func (s *cursored) takeOwn(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	if err := s.refused(reply); err != nil {
		return nil, nil, err
	}
	l, err := readListing(reply.Body, s.deciding)
	if errors.Is(err, adapters.ErrWidened) {
		return nil, nil, err
	} else if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	s.keep(reply, s.q.cut(l.hits, s.fetch.from))
	if s.own = reply; len(l.hits) == 0 {
		return s.goOn(new(rerank.Walk))
	}
	if s.struck() {
		return nil, nil, adapters.ErrLate
	}
	s.state = cursorBefore
	return s.askBefore(s.collapse.texts)
}

// askBefore asks for the first ranks of the list as sketches.
func (s *cursored) askBefore(texts bool) (*adapters.Request, *adapters.Answer, error) {
	s.early = texts
	s.rounds++
	whole := *s.q
	whole.after = nil
	r := reading{size: s.ranksBefore(), sketchOnly: true, settled: true, judged: true, deciding: s.deciding}
	if texts {
		r.texts = s.fields()
	}
	body, void, err := whole.ask(r)
	if err == nil {
		body, err = adapters.Cut(body, func(key string) bool { return key == "search_after" })
	}
	if err == nil { // no one looks at it, and it can cost much
		body, err = adapters.Set(body, "track_total_hits", []byte("false"))
	}
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	return s.ask(body, append(void, "track_total_hits", "rest_total_hits_as_int")), nil, nil
}

// ranksBefore is how many ranks are read for what was shown before.
func (s *cursored) ranksBefore() int { return min(s.window, s.q.limit) }

// takeBefore takes the first ranks of the list and finds the cursor among them. It lies in front of the first hit of the client's
// own page.
func (s *cursored) takeBefore(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	var walk *rerank.Walk
	err := s.refused(reply)
	if err == nil {
		walk, err = s.rebuilt(reply.Body)
	}
	switch {
	case adapters.IsLate(err):
		return nil, nil, err
	case errors.Is(err, errMoved) && !s.early: // hits lack sketches
		return s.askBefore(true)
	case err != nil || walk == nil: // the engine grants no reading so long, or the list has moved
		walk, s.lost = new(rerank.Walk), true
	}
	return s.goOn(walk)
}

// rebuilt returns what was shown in front of the client's own page by the first ranks of the list, nil where that can't be told;
// errMoved if sketches have to be computed from texts.
func (s *cursored) rebuilt(reply []byte) (*rerank.Walk, error) {
	l, err := readListing(reply, s.deciding)
	if err != nil {
		return nil, err
	}
	list := l.hits
	own, err := readListing(s.own.Body, nil)
	if err != nil {
		return nil, err
	}
	hits, err := s.judgedHits(list, rerank.Span{To: len(list), SketchOnly: true}, s.early)
	if err != nil {
		return nil, err
	}
	unjudged := *s.collapse
	unjudged.judged = false
	first, err := unjudged.judgeHits(own.hits[:1])
	if err != nil {
		return nil, err
	}
	walk, cursor := new(rerank.Walk), canonical(s.q.after)
	for rank := range hits {
		if rank%adapters.BetweenLooks == 0 && s.struck() {
			return nil, adapters.ErrLate
		}
		if hits[rank].ID == first[0].ID {
			return walk, nil
		}
		hit := &hits[rank]
		if tied := rank > 0 && canonical(list[rank].at(list[rank].sort)) == cursor && canonical(list[rank-1].at(list[rank-1].sort)) == cursor; tied {
			hit = &rerank.Hit{} // the cursor leads past it, shown or not: it hides nothing
		}
		walk.Take(hit, s.window)
	}
	if len(list) < s.ranksBefore() || len(list) < s.window {
		return nil, nil
	}
	walk.Forget() // the page begins beyond the window
	return walk, nil
}

// judgedHits returns what is compared of the hits of a reading that is none of the page's; errMoved if texts lack.
func (c collapse) judgedHits(list []hit, span rerank.Span, texts bool) (hits []rerank.Hit, err error) {
	c.span, c.texts, c.judged, c.judge = span, texts, true, adapters.NewJudge(c.rules, c.q.controls)
	c.judge.Late = c.late
	if hits, err = c.judgeHits(list); err != nil {
		return nil, err
	}
	switch {
	case c.judge.Lacking > 0 && c.struck():
		return nil, adapters.ErrLate
	case c.judge.Unread > 0 && span.SketchOnly && !texts:
		return nil, errMoved
	}
	return hits, nil
}

// goOn goes on with the client's own page, behind what was walked before it.
func (s *cursored) goOn(walk *rerank.Walk) (*adapters.Request, *adapters.Answer, error) {
	own, at, rounds := s.own, s.span, s.rounds
	s.own = nil
	s.resume(walk)
	body, void, _, err := s.next()
	switch {
	case err != nil:
		return nil, nil, adapters.NotUnderstood(err)
	case s.plain || s.span.To > at.To || s.span.SketchOnly != at.SketchOnly: // the page that is at hand is another reading
		return s.ask(body, void), nil, nil
	}
	s.rounds = rounds
	return s.Next(own)
}

// remember keeps what was shown down to the last hit of the page, for the client that goes on from there.
func (s *cursored) remember() {
	if s.cursors == nil || s.lost { // what earlier pages showed is found out no better by the next
		return
	}
	rank, sort := s.last()
	if sort == nil {
		return
	}
	walk := new(rerank.Walk)
	if s.page.After != nil {
		walk = s.page.After.Clone()
	}
	for r := range rank + 1 {
		if r%adapters.BetweenLooks == 0 && s.struck() { // the next page finds it out
			return
		}
		hit := s.pager.Hit(r)
		if hit == nil {
			hit = &rerank.Hit{}
		}
		walk.Take(hit, s.window)
	}
	if walk.Ranks() >= s.window {
		walk.Forget()
	}
	s.cursors.Put(s.key(s.replyPIT(), sort), walk)
}

// last returns the rank of the last hit of the answer, and its sort values, nil where there are none.
func (s *cursored) last() (rank int, sort []byte) {
	if s.plain { // a dry run's, which is the engine's own
		list, _, err := hitsOf(s.baseReply.Body)
		if err != nil || len(list) == 0 {
			return 0, nil
		}
		return len(list) - 1, sortOf(list[len(list)-1])
	}
	ranks, err := s.pager.Ranks()
	if err != nil || len(ranks) == 0 {
		return 0, nil
	}
	rank = ranks[len(ranks)-1]
	return rank, sortOf(s.full.at(rank))
}

// told puts into the outcome what a cursor adds to it.
func (s *cursored) told(o *adapters.Outcome) {
	o.Window, o.CursorLost = s.window, s.lost
	o.Exact = o.Exact && !s.lost
	if s.q.after != nil && o.Without == 0 {
		o.Read = 0 // how much folds here is no measure for first pages
	}
}

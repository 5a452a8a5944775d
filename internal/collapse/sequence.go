package collapse

import (
	"fmt"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// sequence is a list whose pages a client asks for in order, by their number. A page begins where the page before it ended. The leaders shown so far are
// remembered, so the ranks in front of the page need not be read again. Only the last of them is, as a check: if it holds another document, or the same with
// another sketch, or the engine counts another number of hits, the list has moved. Then the page is read from rank 0, as if nothing were remembered.
type sequence struct {
	list   string       // what the walk through the list is remembered under
	before *rerank.Walk // what was shown in front of the page, nil where it is not known
}

// follow has the page begin where the page before it ended, as far as that is remembered. Page 1 is neither found nor remembered: page 2 reads its
// hits again with its own, in one request.
func (s *search) follow() {
	if s.special.sequence == nil {
		if s.asked.Sequence == nil || s.page.From == 0 || s.all.Plan.Cursors == nil || !s.followed() {
			return
		}
		s.special.sequence = &sequence{list: "pages of " + s.asked.Sequence.List()}
		if s.judge.Decided != nil { // another list once something else is decided
			s.special.sequence.list = fmt.Sprintf("%x %s", s.judge.Decided.Mark(), s.special.sequence.list)
		}
		if walk, ok := s.all.Plan.Cursors.Get(s.special.sequence.list); ok {
			s.special.sequence.before = walk.Until(s.page.From)
		}
	}
	page, n := &s.page, s.special.sequence.ahead()
	switch {
	case n == 0:
		return
	case page.Limit > 0 && page.Limit <= n:
		s.forget()
		return
	}
	s.beginAfter(s.special.sequence.before)
	page.From, page.Limit = 0, max(0, page.Limit-n)
	page.FoldedToo = true // all in one reading
}

// followed reports whether the leaders in front of a page are all that it needs to know of the pages before it.
func (s *search) followed() bool {
	scope, ways := &s.asked.Scope, &s.asked.Ways
	return !s.page.Whole && !s.page.Transitive && !scope.DryRun && scope.Expand == rule.ExpandOff && !ways.Apart && !s.asksOwn() && !s.special.pointed && s.special.cursor == nil
}

// ahead is how many ranks are in front of the page, 0 where that is not known.
func (q *sequence) ahead() int {
	if q == nil || q.before == nil {
		return 0
	}
	return q.before.Ranks()
}

// shifted returns a reading with its ranks counted from the beginning of the list, which also brings the rank in front of them.
func (q *sequence) shifted(r *adapters.Reading) *adapters.Reading {
	n := q.ahead()
	if n == 0 {
		return r
	}
	from := *r
	from.From, from.To = r.From+n-1, r.To+n
	return &from
}

// unmovedIn reports whether a listing begins with the hit in front of the page, and takes it out. If it does not, what was remembered is dropped.
func (s *search) unmovedIn(l *adapters.Listing) bool {
	q := s.special.sequence
	if q.ahead() == 0 {
		return true
	}
	counted := l
	if l.Total < 0 && s.counted != nil { // a page that takes two readings has the engine count once
		counted = s.counted
	}
	if len(l.Hits) > 0 && s.mark(q.ahead(), &l.Hits[0], l.Hits[0].Stored, counted) == q.before.Last {
		l.Hits = l.Hits[1:]
		return true
	}
	s.forget()
	return false
}

// forget drops what is remembered in front of the page, which is read from rank 0 then.
func (s *search) forget() {
	s.special.sequence.before = nil
	s.page.From, s.page.FoldedToo = s.asked.From, false
}

// mark returns what must be the same when the next page is asked for: the last hit of a page, its stored sketch, and the engine's count of hits. ranks is
// how many ranks of the list the page ends after. The mark changes when the list moves, and when a reindex stores another sketch.
func (s *search) mark(ranks int, hit *rule.Seen, stored []byte, in *adapters.Listing) string {
	if ranks > s.asked.Scope.Window { // it was not compared
		stored = nil
	}
	return fmt.Sprintf("%s %d %s", s.query.Name(hit), in.Total, stored)
}

// keepWalk remembers what was shown down to the end of the page, which is a hit at a rank, if another page can follow. One walk is remembered of a list,
// with all places where pages of it ended.
func (s *search) keepWalk(rank int, last *rule.Seen) {
	q := s.special.sequence
	if s.counted == nil || len(s.found.Ranks) < s.page.Size {
		return
	}
	var stored []byte
	if rank < len(s.compared) {
		stored = s.compared[rank].Stored
	}
	walk := s.found.Walk(rank + 1)
	walk.Last = s.mark(walk.Ranks(), last, stored, s.counted)
	if held, ok := s.all.Plan.Cursors.Get(q.list); ok {
		joined := held.Join(walk)
		if joined == held {
			return // it is forgotten in time: pages behind this one may be of an earlier state of the list
		}
		if joined != nil {
			walk = joined
		}
	}
	s.all.Plan.Cursors.Put(q.list, walk)
}

// tell puts into the outcome what a page adds to it that does not begin at rank 0.
func (q *sequence) tell(o *adapters.Outcome) {
	if n := q.ahead(); n > 0 {
		o.Read, o.Folded = o.Read+n, o.Folded+q.before.Folded()
	}
}

package collapse

import (
	"fmt"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// sequence is a list whose pages a client asks for one after the other, by their number. A page then begins where the page before ended: the
// leaders shown so far are remembered, and the ranks in front of the page are not read again. The last of these ranks alone is read once more. Where it
// holds another document, or the engine counts other hits than before, the list has moved: the page is read from rank 0, as if nothing were remembered.
type sequence struct {
	list   string       // what pages of the list are remembered under, beside their place
	before *rerank.Walk // what was shown in front of the page, nil where it is not known
	window int
}

// follow has the page begin where the page before it ended, as far as that is remembered. Page 1 is neither found nor remembered: page 2 reads its
// hits again with its own, in one request.
func (s *search) follow() {
	if s.special.sequence == nil {
		if s.asked.Sequence == nil || s.page.From == 0 || s.all.Plan.Cursors == nil || !s.followed() {
			return
		}
		s.special.sequence = &sequence{list: s.asked.Sequence.List(), window: s.page.Window}
		s.special.sequence.before, _ = s.all.Plan.Cursors.Get(s.special.sequence.key(s.page.From))
	}
	page, n := &s.page, s.special.sequence.ahead()
	switch {
	case n == 0:
		return
	case page.Limit > 0 && page.Limit <= n:
		s.forget()
		return
	}
	before := s.special.sequence.before
	page.After, page.From, page.Window = before, 0, max(0, page.Window-n)
	page.Rate = max(page.Rate, float64(before.Folded())/float64(n))
	page.FoldedToo = true // all in one reading
	page.Limit = max(0, page.Limit-n)
}

// followed reports whether the search is one whose pages follow from the leaders in front of them.
func (s *search) followed() bool {
	scope, ways := &s.asked.Scope, &s.asked.Ways
	return !s.page.Whole && !s.page.Transitive && !scope.DryRun && scope.Expand == rule.ExpandOff && !ways.Apart && !s.asksOwn() && !s.special.pointed && s.special.cursor == nil
}

// key is what the page is remembered under that begins with a hit of the collapsed list.
func (q *sequence) key(from int) string { return "from:" + strconv.Itoa(from) + " " + q.list }

// ahead is how many ranks are in front of the page, 0 where that is not known.
func (q *sequence) ahead() int {
	if q == nil || q.before == nil {
		return 0
	}
	return q.before.Ranks()
}

// shifted returns the reading of the same ranks counted from the beginning of the list, and of the one in front of them.
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
	if len(l.Hits) > 0 && s.mark(q.ahead(), &l.Hits[0], l.Hits[0].Stored, l) == q.before.Last {
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

// mark tells the last hit of a page from all others, the last of so many ranks, and the state of its list from others as far as the engine's count
// and the hit's stored sketch do: a reindex stores new ones.
func (s *search) mark(ranks int, hit *rule.Seen, stored []byte, in *adapters.Listing) string {
	if ranks > s.special.sequence.window { // it was not compared
		stored = nil
	}
	return fmt.Sprintf("%s %d %s", s.dialect.Name(hit), in.Total, stored)
}

// rememberPage keeps where the page ended, for the one that follows it.
func (s *search) rememberPage() {
	q := s.special.sequence
	rank, last := s.last()
	if q == nil || last == nil || s.counted == nil || len(s.found.Ranks) < s.page.Size {
		return
	}
	walk := s.found.Walk(rank + 1)
	if walk.Ranks() >= q.window {
		walk.Forget()
	}
	var stored []byte
	if rank < len(s.compared) {
		stored = s.compared[rank].Stored
	}
	walk.Last = s.mark(walk.Ranks(), last, stored, s.counted)
	s.all.Plan.Cursors.Put(q.key(s.asked.From+s.asked.Size), walk)
}

// tell puts into the outcome what a page adds to it that does not begin at rank 0.
func (q *sequence) tell(o *adapters.Outcome) {
	if n := q.ahead(); n > 0 {
		o.Window, o.Read, o.Folded = q.window, o.Read+n, o.Folded+q.before.Folded()
	}
}

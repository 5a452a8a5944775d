package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// This file has what only a few searches need. For an ordinary search, whose rule has the default settings and whose hits have sketches, its functions do
// nothing to the page: planSpecial leaves it as it is, and completeSpecial returns the error that it was given. keepSpecial keeps what would be the answer
// if there were no page, and tells what the reading took; noteSpecial notes how long hits are.

// special is what only some searches need.
type special struct {
	neighbours *neighbours // nil but for a search of nearest neighbours
	cursor     *cursor     // nil where clients do not go through the list by cursors
	sequence   *sequence   // nil where they do not ask for its pages by their number, or for page 1
	texts      texts       // which readings bring them too
	native     adapters.NativeOutcome
	hitBytes   int               // the mean length of hits, of the last reading that gave one; 0 if it does not matter
	counted    *adapters.Listing // what facets count by group; nil where they are the engine's own
	uncounted  bool              // facets could not be asked for, and count all hits
	ownResult  []byte            // of the client's own search as the client wrote it; nil until there is one

	// uncollapsed is a listing that holds the whole page as the engine has it, nil until there is one: the answer if the time for collapsing is over.
	uncollapsed *adapters.Listing

	pointed bool // a point in time was asked for
	moved   bool // the list did, while it was read
	atOnce  bool // so all is read in one reading
}

// planSpecial has a page read in the way that suits the search.
func (s *search) planSpecial(page *rerank.Page) {
	scope, ways, texts := &s.asked.Scope, &s.asked.Ways, &s.special.texts
	page.Whole, page.Transitive = scope.Chooses || scope.CollapsedTotals || s.asked.Counting != nil, scope.Transitive
	page.SketchOnly = scope.DryRun || s.asked.Size == 0 // no hit of the page is shown
	page.SketchFirst = ways.Apart || texts.beside && ways.TextsApart
	if !ways.Weighed || texts.beside {
		page.Widening = page.Unweighed()
	}
	if s.asked.Cursor != nil {
		s.goOn()
	}
	if s.asked.Neighbours != nil {
		s.widen()
	}
	later := page.SketchOnly || ways.Scattered && (page.SketchFirst || page.Whole || page.Transitive || page.From > 0)
	// No folded hit is shown later, or those that are come with the page's own.
	page.FoldedToo = scope.Expand == rule.ExpandSource && !later || s.special.atOnce
	s.follow()
}

// keepSpecial keeps what a reading brought that only some searches need.
func (s *search) keepSpecial(r *adapters.Reading, l *adapters.Listing) {
	x := &s.special
	if l.HitBytes > 0 && s.asked.Ways.Weighed {
		x.hitBytes = l.HitBytes
	}
	// Searches that are asked for together, or a reading that the client's own search goes beside, would say more than this reading took.
	if s.asked.Ways.Weighed && s.all.Single && !s.asksOwn() && !r.Texts && r.To > r.From {
		s.found.NoteTime(rerank.ReadTime{Hits: len(l.Hits), Time: l.Took})
	}
	if x.uncollapsed == nil && x.sequence.ahead() == 0 && s.wantsFrame() && r.Sources && r.Ranks == nil && r.From == 0 && r.To >= s.page.From+s.page.Size {
		x.uncollapsed = l
	}
	if n := x.neighbours; n != nil && r.Ranks == nil {
		n.length, n.full = l.Total, l.Full
	}
}

// completeSpecial returns the error of the readings, or what is still missing once they are made: the page may be the client's own, one that is left alone
// as the engine's limit cuts it short, or lack what the reply has beside its hits, or facets that count groups.
func (s *search) completeSpecial(ctx context.Context, err error) error {
	if s.special.neighbours != nil {
		err = s.orOwnPage(err)
	}
	switch {
	case err != nil:
		return err
	case s.asked.Short != "" && s.found.Stats().Limited && !s.showsOwnPage():
		return adapters.Alone{Reason: s.asked.Short, Searched: true}
	case s.frame == nil:
		err = s.readFrame(ctx)
	}
	if err != nil {
		return err
	}
	return s.countGroups(ctx)
}

// readFrame reads only what the reply has beside its hits, where no reading of them brought it.
func (s *search) readFrame(ctx context.Context) error {
	if s.asksOwn() {
		s.rounds++
		_, err := s.askBesideOwn(ctx)
		return err
	}
	r := adapters.Reading{From: s.page.From, To: s.page.From, Sources: true, Frame: true}
	listing, err := s.read(ctx, &r)
	if err != nil {
		return err
	}
	if err = s.keep(ctx, &r, listing); err != nil {
		return err
	}
	if s.frame == nil {
		return adapters.NotUnderstood(errors.New("a reply without what is beside its hits"))
	}
	return nil
}

// noteSpecial puts into the outcome what only some searches have to say.
func (s *search) noteSpecial(o *adapters.Outcome) {
	x := &s.special
	o.HitBytes, o.Counts = x.hitBytes, s.asked.Counted(s.counts())
	if o.NativeOutcome = x.native; x.native.Tried {
		o.Rounds++
	}
	if x.neighbours != nil {
		x.neighbours.tell(o, s.asked.Limit)
	}
	if s.asked.Scope.CollapsedTotals {
		_, exact := s.collapsedTotal()
		o.Exact = o.Exact && exact
	}
	if s.asked.Shorter != "" {
		own := min(s.page.Size, o.Length-s.page.From) // hits of the engine's own page
		o.Limited = len(s.found.Ranks) < own && (s.total() < 0 || s.total() > o.Length)
	}
	if s.page.After != nil { // the page's own is what is left of it
		o.Window = s.asked.Scope.Window
	}
	if x.cursor != nil {
		x.cursor.tell(o)
	}
	x.sequence.tell(o)
}

// collapsedTotal returns how many hits the collapsed list holds, as far as the window tells: exactly, or at most.
func (s *search) collapsedTotal() (hits int, exact bool) {
	stats, total := s.found.Stats(), s.total()
	read, folded := min(stats.Read, s.page.Window), stats.Folded
	exact = stats.Read < s.page.Window || total >= 0 && total <= s.page.Window && !s.counted.AtLeast
	if s.special.neighbours != nil {
		return s.special.neighbours.total(folded, exact)
	}
	if before := s.page.After; before != nil { // alike on all pages
		read, folded = read+before.Ranks(), folded+before.Folded()
	}
	return max(max(total, read)-folded, 0), exact
}

package collapse

import (
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// neighbours is what is special about a search for nearest neighbours. What the engine finds differs with how many it looks for. So the client's
// own page is asked for as it is; beside it a longer list of at least the rule's neighbours is read, down to the same rank on every page.
// Where nothing in that folds the client's own page is the answer, else the page is cut from the longer list.
type neighbours struct {
	adapters.Neighbours
	own    *adapters.Listing // the client's own page
	length int               // how many hits the longer list holds
	full   bool              // the engine found as many as it looked for: asked for a later page it has more
	deep   bool              // the whole list is to be read
	within bool              // the client's page ends no later: then the list ends there
	flat   bool              // unless the engine has more without looking for more
	// unfolded says that the client's own page is the answer.
	unfolded bool
}

// widen has the page cut from the list of as many neighbours on every page.
func (s *search) widen() {
	if s.special.neighbours == nil {
		s.special.neighbours = &neighbours{Neighbours: *s.asked.Neighbours}
	}
	n, page := s.special.neighbours, &s.page
	if n.deep {
		page.First, page.SketchFirst = n.Raised, true
	}
	if n.Mixed {
		return
	}
	page.Window = min(page.Window, n.Raised)
	if page.Window == 0 { // there is nothing to know before the page is cut
		page.Whole, page.Transitive = false, false
	}
	n.within = page.From+page.Size <= n.Raised && !n.flat
	if n.within {
		page.Limit = min(page.Limit, n.Raised)
	}
}

// errOwnPage: the client's own page is the answer.
var errOwnPage = errors.New("nothing of the page folds")

// decideOnOwnPage finds out, once the page is known, whether the client's own page is the answer: it is where nothing in the longer list folds or is
// shown in another's place. The page is read anew where more of that list has to be read.
func (s *search) decideOnOwnPage() error {
	near := s.special.neighbours
	if near == nil || near.own == nil || s.asked.Scope.DryRun {
		return nil
	}
	ranks := s.ranks()
	changes := func(g rerank.Group) bool { // a group within the ranks that are looked at on every page
		return g.Representative != g.Leader && g.Leader < near.Raised || slices.ContainsFunc(g.Folded, func(rank int) bool { return rank < near.Raised })
	}
	if slices.ContainsFunc(s.found.Groups, changes) {
		// All that a filter lets pass are looked at where they are few: then the list does not end with their number.
		short := len(ranks) < min(s.page.Size, near.behind(s.page.From))
		near.flat = near.flat || near.within && near.length > near.Raised && short
		if near.flat && near.within {
			return errAnew
		}
		return nil
	}
	// As long as both are the same page, it need not be known.
	near.unfolded = s.found.Stats().Ended || near.deep || s.same(ranks, near.own.Hits)
	if near.unfolded {
		return errOwnPage
	}
	near.deep = true
	return errAnew
}

// orOwnPage decides on the own page once the page is known. Where that is the answer its ranks need not be known.
func (s *search) orOwnPage(err error) error {
	if err == nil {
		err = s.decideOnOwnPage()
	}
	if errors.Is(err, errOwnPage) {
		return nil
	}
	return err
}

// behind returns how many hits of the client's own list follow a rank, as far as its page shows.
func (n *neighbours) behind(from int) int {
	if n.own.Total < 0 {
		return len(n.own.Hits)
	}
	return max(n.own.Total-from, 0)
}

// same reports whether ranks hold the same documents as a listing.
func (s *search) same(ranks []int, hits []rule.Seen) bool {
	if len(ranks) != len(hits) {
		return false
	}
	for i, rank := range ranks {
		if read := s.found.Hit(rank); read == nil || read.ID != hits[i].ID {
			return false
		}
	}
	return true
}

// showsOwnPage reports whether the client's own page is the answer.
func (s *search) showsOwnPage() bool {
	return s.special.neighbours != nil && s.special.neighbours.unfolded
}

// ownRanks returns the rank in the longer list of each hit of the client's own page, -1 for one that is not in there.
func (s *search) ownRanks() []int {
	at := map[string]int{}
	for rank := 0; s.found.Hit(rank) != nil; rank++ {
		at[s.found.Hit(rank).ID] = rank
	}
	ranks := make([]int, len(s.special.neighbours.own.Hits))
	for i := range ranks {
		rank, found := at[s.special.neighbours.own.Hits[i].ID]
		if ranks[i] = rank; !found {
			ranks[i] = -1
		}
	}
	return ranks
}

// total returns how many hits the collapsed list holds, exactly or at most.
func (n *neighbours) total(folded int, exact bool) (int, bool) {
	switch {
	case n.unfolded:
		return n.own.Total, exact
	case n.full && !n.within:
		return n.own.Total, false
	case n.own.Total < 0:
		return -1, false
	}
	return min(n.own.Total, max(n.length-folded, 0)), exact
}

// tell puts into the outcome what differs for neighbours.
func (n *neighbours) tell(o *adapters.Outcome, limit int) {
	if n.unfolded {
		return
	}
	o.Raw = max(o.Raw, n.length) // what is folded is of the longer list
	o.Limited = o.Limited && !(n.within && n.Raised <= limit)
}

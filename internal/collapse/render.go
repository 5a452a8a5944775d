package collapse

import (
	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// rendered returns the result that the client gets, once the page is known.
func (s *search) rendered() ([]byte, error) {
	page := &adapters.ShownPage{Frame: s.read.frame.Hits, Total: -1}
	if s.show.Collapsed {
		page.Total, _ = s.total()
	}
	var err error
	if page.Hits, err = s.pageHits(); err != nil {
		return nil, err
	}
	result, err := s.Render(page)
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	return result, nil
}

// pageHits returns the page's hits, with what is folded into them where that is to be shown.
func (s *search) pageHits() ([]adapters.PageHit, error) {
	var ranks []int
	var err error
	unfolded := s.near != nil && s.near.unfolded
	if unfolded {
		ranks = s.ownRanks()
	} else if ranks, err = s.ranks(); err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	var views *adapters.Views
	if s.show.Expand > adapters.ExpandOff {
		views = adapters.NewViews(s.pager.Groups(), s.hit, s.pager.Stats().Ended, s.page.Window)
	}
	hits := make([]adapters.PageHit, len(ranks))
	for i, rank := range ranks {
		if s.show.Explain && s.plan.Struck() {
			return nil, adapters.ErrLate
		}
		place := s.source(rank)
		if unfolded {
			place = adapters.Place{Hits: s.near.own.Hits, At: i}
		}
		if place.Hits == nil {
			return nil, adapters.NotUnderstood(adapters.ErrMoved)
		}
		if hits[i].Place = place; views != nil {
			hits[i].Group = s.group(rank, s.judge.Rule(place.Hits.Seen(place.At).Index), views)
		}
	}
	return hits, nil
}

// ranks returns the engine's ranks of the page's hits.
func (s *search) ranks() ([]int, error) {
	ranks, err := s.pager.Ranks()
	if s.near != nil && s.near.own != nil {
		ranks = ranks[:min(len(ranks), max(s.near.own.Total-s.page.From, 0))]
	}
	return ranks, err
}

// source returns where a rank's hit stands as the client wants it, nowhere if it was not read so.
func (s *search) source(rank int) adapters.Place {
	at, ok := s.pager.At(rank)
	if !ok || s.read.sources == nil || at >= s.read.sources.Hits.Len() {
		return adapters.Place{}
	}
	return adapters.Place{Hits: s.read.sources.Hits, At: at}
}

// hit returns what was read of a rank, nil if nothing was.
func (s *search) hit(rank int) *rerank.Hit {
	if rank < 0 {
		return nil
	}
	return s.pager.Hit(rank)
}

// group returns what is to be shown of the hits that are folded into a rank's, which is of an index with the rule.
func (s *search) group(rank int, rule *adapters.Rule, views *adapters.Views) *adapters.Group {
	folded, exact := views.Folded(rank)
	g := &adapters.Group{Exact: exact}
	for _, member := range folded {
		f := adapters.Folded{Judged: s.sight(member), Pair: views.Pair(member), Explained: s.show.Explain}
		if s.show.Expand == adapters.ExpandSource {
			f.Source = s.source(member)
		}
		if s.show.Explain {
			f.Pair.Shared = s.shared(member, views.With(member))
		}
		g.Folded = append(g.Folded, f)
	}
	if s.show.Explain {
		g.Explanation = views.Explanation(rank, rule)
		if first := views.Leader(rank); first != rank {
			g.Explanation.Leader = s.sight(first)
		}
	}
	return g
}

// sight returns where a rank's hit stands as it was judged.
func (s *search) sight(rank int) adapters.Place {
	if s.read.judged.Hits == nil || rank < 0 || rank >= s.read.judged.Len() {
		return adapters.Place{}
	}
	return adapters.Place{Hits: s.read.judged.Hits, At: rank}
}

// shared returns shingles that the documents of two ranks have in common, nil where not both are at hand.
func (s *search) shared(rank, other int) []string {
	if s.sight(rank).Hits == nil || s.sight(other).Hits == nil {
		return nil
	}
	rule := s.judge.Rule(s.read.judged.Seen(rank).Index)
	if rule == nil {
		return nil
	}
	a := s.read.judged.seen(rank).Document(rule)
	b := s.read.judged.seen(other).Document(rule)
	if a == nil || b == nil {
		return nil
	}
	return rule.Shared(a, b, adapters.MaxShared)
}

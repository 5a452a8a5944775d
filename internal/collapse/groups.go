package collapse

import (
	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

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

// sight returns the place of a rank's hit in the listing that was judged.
func (s *search) sight(rank int) adapters.Place {
	if s.read.judged.Hits == nil || rank < 0 || rank >= s.read.judged.Len() {
		return adapters.Place{}
	}
	return adapters.Place{Hits: s.read.judged.Hits, At: rank}
}

// shared returns shingles that the documents of two ranks have in common, nil unless both were read.
func (s *search) shared(rank, other int) []string {
	if s.sight(rank).Hits == nil || s.sight(other).Hits == nil {
		return nil
	}
	rule := s.judge.Rule(s.read.judged.Seen(rank).Index)
	if rule == nil {
		return nil
	}
	a := s.read.judged.seen(rank).Shown.Document(rule)
	b := s.read.judged.seen(other).Shown.Document(rule)
	if a == nil || b == nil {
		return nil
	}
	return rule.Shared(a, b, adapters.MaxShared)
}

// hit returns what was read of a rank, nil if nothing was.
func (s *search) hit(rank int) *rerank.Hit {
	if rank < 0 {
		return nil
	}
	return s.pager.Hit(rank)
}

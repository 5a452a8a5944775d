package collapse

import (
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// group returns what is to be shown of the hits that are folded into a rank's, which is of an index with the rule.
func (s *search) group(rank int, r *rule.Rule, views *adapters.Views) *adapters.Group {
	folded, exact := views.Folded(rank)
	g := &adapters.Group{Exact: exact}
	for _, member := range folded {
		f := adapters.Folded{Judged: s.sight(member), Pair: views.Pair(member), Explained: s.show.Explain}
		if s.show.Expand == rule.ExpandSource {
			f.Source = s.read.sources[member]
		}
		if s.show.Explain {
			f.Pair.Shared = s.shared(member, views.With(member))
		}
		g.Folded = append(g.Folded, f)
	}
	switch {
	case !s.show.Explain:
	case !views.Represents(rank):
		pair := views.Pair(rank)
		pair.Shared = s.shared(rank, views.With(rank))
		g.Member = &pair
	default:
		g.Explanation = views.Explanation(rank, r)
		if first := views.Leader(rank); first != rank {
			g.Explanation.Leader = s.sight(first)
		}
	}
	return g
}

// sight returns the place of a rank's hit in the listing that was judged.
func (s *search) sight(rank int) adapters.Place {
	if s.read.judged == nil || rank < 0 || rank >= s.read.judged.Len() {
		return adapters.Place{}
	}
	return adapters.Place{Hits: s.read.judged, At: rank}
}

// shared returns shingles that the documents of two ranks have in common, nil unless both are at hand.
func (s *search) shared(rank, other int) []string {
	if s.sight(rank).Hits == nil {
		return nil
	}
	rule := s.judge.Rule(s.read.judged.Seen(rank).Index)
	if rule == nil {
		return nil
	}
	a, b := s.document(rank, rule), s.document(other, rule)
	if a == nil || b == nil {
		return nil
	}
	return adapters.Shared(rule, a, b, adapters.MaxShared)
}

// document returns the document of a rank, nil if its texts were not read.
func (s *search) document(rank int, rule *rule.Rule) []byte {
	if s.sight(rank).Hits != nil {
		if document := s.read.texts.Seen(rank).Shown.Document(rule); document != nil {
			return document
		}
	}
	if place := s.read.sources[rank]; place.Hits != nil {
		return place.Hits.Seen(place.At).Shown.Document(rule)
	}
	return nil
}

// withFolded returns the page's ranks and those that are folded into them.
func (s *search) withFolded(page []int) []int {
	ranks := slices.Clone(page)
	for _, g := range s.found.Groups {
		if slices.Contains(page, g.Representative) {
			ranks = append(ranks, g.Folded...)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

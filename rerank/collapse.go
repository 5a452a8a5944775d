package rerank

import "github.com/neardup/sidecar/sketch"

// Hit is one rank of the engine's list.
type Hit struct {
	// ID tells whether two readings of a rank show the same document. It is opaque here.
	ID string
	// Sketch is nil for a hit that has none or none that is comparable: it is never folded and nothing is folded into it.
	Sketch *sketch.Sketch
	// Profile is that of the hit's own index. It is nil exactly where Sketch is.
	Profile *Profile
}

// nearDuplicate reports whether h folds into the leader, by the profile of h.
func (h Hit) nearDuplicate(leader Hit) bool {
	if h.Sketch == nil || leader.Sketch == nil {
		return false
	}
	near, _ := h.Profile.NearDuplicates(h.Sketch, leader.Sketch)
	return near
}

// Group is a leader and the hits folded into it, as ranks in ascending order.
type Group struct {
	Leader int
	Folded []int
}

// Collapse returns the groups of the first window hits, ordered by leader. The ranks beyond the window belong to no group.
func Collapse(hits []Hit, window int) []Group {
	var groups []Group
	for rank, hit := range hits[:min(max(window, 0), len(hits))] {
		if g := leaderOf(hit, hits, groups); g >= 0 {
			groups[g].Folded = append(groups[g].Folded, rank)
			continue
		}
		groups = append(groups, Group{Leader: rank})
	}
	return groups
}

// leaderOf returns the first group whose leader hit is a near-duplicate of, or -1.
func leaderOf(hit Hit, hits []Hit, groups []Group) int {
	for g := range groups {
		if hit.nearDuplicate(hits[groups[g].Leader]) {
			return g
		}
	}
	return -1
}

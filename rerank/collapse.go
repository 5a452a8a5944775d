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
	// Pinned says that the hit stands where it does by the operator's will: it is never folded, though others are into it.
	Pinned bool
}

// Group is a leader and the hits folded into it, as ranks in ascending order.
type Group struct {
	Leader int
	Folded []int
}

// Collapse returns the groups of the first window hits, ordered by leader. The ranks beyond the window belong to no group.
func Collapse(hits []Hit, window int) []Group {
	var groups []Group
	var leaders []leader
	for rank := range hits[:min(max(window, 0), len(hits))] {
		hit := &hits[rank]
		if g := leaderOf(hit, leaders); g >= 0 {
			groups[g].Folded = append(groups[g].Folded, rank)
			continue
		}
		if hit.Sketch != nil {
			leaders = append(leaders, leader{hit.Sketch, len(groups)})
		}
		groups = append(groups, Group{Leader: rank})
	}
	return groups
}

// leader is what further hits are compared with.
type leader struct {
	sketch *sketch.Sketch
	group  int
}

// leaderOf returns the group of the first leader that hit is a near-duplicate of, or -1.
func leaderOf(hit *Hit, leaders []leader) int {
	if hit.Sketch == nil || hit.Pinned {
		return -1
	}
	for _, l := range leaders {
		if near, _ := hit.Profile.NearDuplicates(hit.Sketch, l.sketch); near {
			return l.group
		}
	}
	return -1
}

package rerank

import "slices"

// after returns the collapsed list of the hits that follow the walked ones, over a window counted from the first of them, and how many of
// them fold into walked leaders. The members of those leaders' groups, folded or shown, are in no group of the list.
func (w *Walk) after(hits []Hit, window int, p *pace) (c Collapsed, folded int) {
	hits = hits[:min(max(window, 0), len(hits))]
	more := map[int]int{} // how many members of a leader's group are shown beyond those of the walk
	var groups [][]int
	var leaders leaders
	var kept []int
	for rank := range hits {
		if p.expired(rank) {
			break
		}
		hit := &hits[rank]
		if at := leaderOf(w.leaders, hit); at >= 0 {
			if l := &w.leaders[at]; l.n+more[at] < l.hit.profile().Keep {
				more[at]++
				kept = append(kept, rank)
			} else {
				folded++
			}
			continue
		}
		if g := leaders.group(hit); g >= 0 {
			groups[g] = append(groups[g], rank)
			continue
		}
		leaders.add(hit, len(groups))
		groups = append(groups, []int{rank})
	}
	c = shown(hits, groups)
	c.Shown = append(c.Shown, kept...)
	slices.Sort(c.Shown)
	return c, folded
}

// leaderOf returns the place of the first leader that a hit folds into, or -1.
func leaderOf(leaders []leader, hit *Hit) int {
	if hit.neverFolds() {
		return -1
	}
	p := newProbe(hit)
	for i := range leaders {
		if l := &leaders[i]; p.folds(l) {
			return i
		}
	}
	return -1
}

// Forget drops the leaders. It is for ranks beyond the window, where nothing folds.
func (w *Walk) Forget() { w.leaders = nil }

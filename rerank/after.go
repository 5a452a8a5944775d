package rerank

import "slices"

// after returns the collapsed list of hits that follow what was walked, window of them being within the window, and how many of
// them fold into leaders that were walked. Those, and the further members of the leaders' groups that are shown, are in no group
// of the list.
func (w *Walk) after(hits []Hit, window int, p *pace) (c Collapsed, folded int) {
	hits = hits[:min(max(window, 0), len(hits))]
	more := map[int]int{} // how many members of a leader's group are shown beyond those of the walk
	var groups [][]int
	var leaders leaders
	var kept []int
	for rank := range hits {
		if p.out(rank) {
			break
		}
		hit := &hits[rank]
		if at := earlier(w.leaders, hit); at >= 0 {
			if l := &w.leaders[at]; l.shown+more[at] < l.hit.profile().Keep {
				more[at]++
				kept = append(kept, rank)
				continue
			}
			folded++
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

// earlier returns the place of the first leader that a hit folds into, or -1.
func earlier(leaders []walked, hit *Hit) int {
	if hit.leads() {
		return -1
	}
	p := newProbe(hit)
	for i := range leaders {
		if l := &leaders[i]; !p.apart(&l.outline) && p.near(l.hit) {
			return i
		}
	}
	return -1
}

// Forget has the leaders forgotten, for the ranks that follow lie beyond the window: nothing more folds.
func (w *Walk) Forget() { w.leaders = nil }

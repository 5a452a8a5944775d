package typesense

// slice is one page of the engine's list: the ranks [(page-1)×size, page×size).
type slice struct{ page, size int }

func (s slice) from() int { return (s.page - 1) * s.size }
func (s slice) to() int   { return s.page * s.size }

// cover returns as few pages as hold the ranks [from, to), in order; they can overlap. fixed, if above 0, is the only size that there is.
// No page ends behind limit, if that is above 0, and to does not lie behind it.
func cover(from, to, fixed, limit int) []slice {
	var list []slice
	to = max(to, from+1)
	for at := from; at < to; {
		best := farthest(at, to, fixed, limit)
		if best.size == 0 {
			return list
		}
		list = append(list, best)
		at = best.to()
	}
	return list
}

// farthest returns the page with the rank at that reaches farthest up to to, the smallest of several; none if there is none.
func farthest(at, to, fixed, limit int) (best slice) {
	least, most := 1, maxPerPage
	if fixed > 0 {
		least, most = fixed, fixed
	}
	for size := least; size <= most; size++ {
		s := slice{at/size + 1, size}
		if limit > 0 && s.to() > limit {
			continue
		}
		if best.size == 0 || min(s.to(), to) > min(best.to(), to) {
			best = s
		}
	}
	return best
}

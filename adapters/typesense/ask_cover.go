package typesense

// slice is one page of the engine's list: the ranks [(page-1)×size, page×size).
type slice struct{ page, size int }

func (s slice) from() int { return (s.page - 1) * s.size }
func (s slice) to() int   { return s.page * s.size }

// sizes are the sizes that a page can have, from the least to the most.
type sizes struct{ least, most int }

// cover returns as few pages as hold the ranks [from, to), in order; they can overlap. No page ends behind limit, and to does not
// lie behind it.
func cover(from, to int, sizes sizes, limit int) []slice {
	var list []slice
	to = max(to, from+1)
	for at := from; at < to; {
		best := farthest(at, to, sizes, limit)
		if best.size == 0 {
			return list
		}
		list = append(list, best)
		at = best.to()
	}
	return list
}

// farthest returns the page with the rank at that reaches farthest up to to, the smallest of several; none if there is none.
func farthest(at, to int, sizes sizes, limit int) (best slice) {
	for size := sizes.least; size <= sizes.most; size++ {
		s := slice{at/size + 1, size}
		if s.to() > limit {
			continue
		}
		if best.size == 0 || min(s.to(), to) > min(best.to(), to) {
			best = s
		}
	}
	return best
}

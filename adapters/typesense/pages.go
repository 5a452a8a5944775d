package typesense

import (
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
)

// page is a page of the engine's list: the ranks [from, to).
type page struct{ number, size int }

func (p page) from() int { return (p.number - 1) * p.size }

func (p page) to() int { return p.number * p.size }

// pages returns pages that hold what is wanted of a reading. No page of neighbours ends after the number that is looked for, if the reading
// does not: the engine would look for more, and might find others.
func (q *query) pages(r *adapters.Reading) []page {
	limit := q.asked.Limit
	if r.Neighbours > 0 && r.To <= r.Neighbours {
		limit = min(r.Neighbours, limit)
	}
	switch {
	case r.Own, r.From == r.To: // no other hits than the client's
		return []page{q.page}
	case r.Ranks != nil:
		return q.scatter(r.Ranks, limit)
	}
	return q.cover(r.From, r.To, limit)
}

// cover returns as few pages as hold the ranks [from, to), in order; they can overlap. No page ends after limit, and to is not greater.
func (q *query) cover(from, to, limit int) (list []page) {
	least, most := 1, q.most
	if size := q.fixedSize(); size > 0 {
		least, most = size, size
	}
	to = max(to, from+1)
	if pages := (to + most - 1) / most; from == 0 && least < most { // alike, since they are read at once
		if size := (to + pages - 1) / pages; size*pages <= limit {
			for i := range pages {
				list = append(list, page{i + 1, size})
			}
			return list
		}
	}
	for at := from; at < to; at = list[len(list)-1].to() {
		best := page{} // the page with the rank that reaches farthest, the smallest of several
		for size := least; size <= most; size++ {
			p := page{at/size + 1, size}
			if p.to() <= limit && min(p.to(), to) > min(best.to(), to) {
				best = p
			}
		}
		if best.size == 0 {
			return list
		}
		list = append(list, best)
	}
	return list
}

// worthAPage is how many hits that nobody needs are read rather than asking for one more page. (Measured where 30,000 documents match:
// one more search takes 5 ms, as long as a hundred hits of 1.5 KB, whose bytes have to be moved, too.)
const worthAPage = 50

// scatter returns small pages that hold the ranks, which ascend: neighbours share one where what lies between them costs less than
// another page. Where that makes more pages than are read at once, more is read in fewer of them, as far as that helps.
func (q *query) scatter(ranks []int, limit int) []page {
	for gap := worthAPage; ; gap *= 2 {
		var list []page
		for i := 0; i < len(ranks); {
			end := i + 1
			for end < len(ranks) && ranks[end]-ranks[end-1] <= gap {
				end++
			}
			list = append(list, q.cover(ranks[i], ranks[end-1]+1, limit)...)
			i = end
		}
		if list = slices.Compact(list); len(list) <= q.atOnce || gap > maxPerPage {
			return list
		}
	}
}

// Narrowed implements adapters.Search: some servers are configured to grant smaller pages.
func (q *query) Narrowed(err error) adapters.Search {
	declined, is := errors.AsType[*adapters.Declined](err)
	if !is || declined.Most == 0 || declined.Most < q.page.size || declined.Most >= q.most {
		return nil
	}
	narrowed := *q
	narrowed.most = declined.Most
	return &narrowed
}

package rerank

import (
	"iter"
	"math"
	"slices"
)

const (
	// fullReading is the most ranks that are read with their sources at once where it is not known what that takes, except for first pages.
	fullReading = 50
	// mostSurplus is how many bytes of unused hits a reading with sources may bring, however little time it takes: they are held in memory.
	mostSurplus = 1 << 20
)

// Page says which page is wanted, and what is known about reading it.
type Page struct {
	// From and Size cut [From, From+Size) out of the collapsed list.
	From, Size int
	// Window is W, the number of ranks that are collapsed.
	Window int
	// Limit is how many ranks can be read from the engine; 0 is no limit.
	Limit int
	// Widening decides how long the first reading is, and what it brings.
	Widening
	// SketchFirst reads sketches before any sources. It is for searches whose sources do not hold all that a sketch needs. SketchOnly reads
	// no sources at all.
	SketchFirst, SketchOnly bool
	// First is the least length of the first reading, where the ranks are of use.
	First int
	// Whole reads the whole window before the page is cut. Representatives that are not chosen by rank need it, and totals of the
	// collapsed list.
	Whole bool
	// Transitive groups by connected components, which needs the whole window too.
	Transitive bool
	// FoldedToo reads every rank with its sources, to show those of folded hits too.
	FoldedToo bool
	// Deadline, if not nil, ends the page with ErrLate when it comes.
	Deadline Deadline
	// After, if not nil, is the part of the list before rank 0, whose leaders still hide hits. Window counts from rank 0. Such a list is
	// grouped by leaders, and its groups show their leaders.
	After *Walk
}

// end returns where the page ends in the collapsed list.
func (p Page) end() int { return p.From + p.Size }

// Found is what is known of a page, in the end or between two readings.
type Found struct {
	// Ranks are the engine's ranks of the page's hits, in the order of the page.
	Ranks []int
	// Shown are the ranks of the collapsed list, by the last reading from rank 0. The page is cut from them. Groups say what is folded.
	Shown  []int
	Groups []Group
	// WithSources says that the readings from rank 0 on bring their hits with their sources. Otherwise sketches are enough.
	WithSources bool
	page        Page
	hits        []Hit // of that reading
	earlier     int   // how many of them fold into leaders in front of the list
	end         int   // the length of the engine's list, or unknown
	to          int   // the reading that is made: up to here
	picked      []int // or of these ranks alone
	moved       bool  // the page's hits were not at their ranks any more
	readings    int
	// folds is how many hits were expected to fold in front of the page's end, deviation by how much that number differs.
	folds, deviation float64
	times            [kinds]ReadTime
}

// unknown is the end of a list that was not read to its end.
const unknown = math.MaxInt

// FindPage finds one page of the collapsed list in a few readings of the engine's list: range over its Readings.
func FindPage(page Page) *Found {
	page.Whole = page.Whole || page.Transitive
	return &Found{page: page, end: unknown}
}

// Readings yields the readings that find the page: the ranks [0, to), or, if ranks is not nil, those ranks alone, in ascending order. The
// hits of each go into Add before the next one is made. A reading of ranks alone brings the page's hits with their sources. They were compared before: Add
// only checks that they are still the same documents.
//
// The readings of a page agree with one another: either one reading held everything, or the reading of the page's hits showed the same
// documents as the reading of the sketches. Ranks beyond the window are read once, so a list that changes meanwhile can shift them, as it
// does between any two pages of the engine itself.
func (f *Found) Readings() iter.Seq2[int, []int] {
	return func(yield func(to int, ranks []int) bool) {
		for to := f.first(); ; {
			for to > 0 { // until it is known which ranks the page consists of
				if f.to, f.picked = to, nil; !yield(to, nil) {
					return
				}
				to = f.missing()
			}
			f.Ranks = f.pageRanks()
			if f.WithSources || f.page.SketchOnly || len(f.Ranks) == 0 {
				return
			}
			f.picked = slices.Sorted(slices.Values(f.Ranks))
			if !yield(0, f.picked) || !f.moved {
				return
			}
			// The list has moved: it is read again, with all sources at once.
			if f.WithSources, to = true, f.picked[len(f.picked)-1]+1; f.page.Whole {
				to = max(to, len(f.hits))
			}
		}
	}
}

// Add takes the hits of a reading, fewer where the list ends before. Those from rank 0 on are collapsed; those of ranks alone have to be the same documents as
// before. Its error is ErrLate.
func (f *Found) Add(hits []Hit) error {
	f.readings++
	if f.picked != nil {
		f.moved = !f.Agrees(f.picked, hits)
		if !f.moved && len(hits) < len(f.picked) {
			f.end = f.picked[len(hits)]
			f.Ranks = f.pageRanks()
		}
		return nil
	}
	f.hits, f.end = hits[:min(len(hits), f.to)], unknown
	pace := pace{Deadline: f.page.Deadline}
	if f.Groups, f.Shown, f.earlier = collapse(f.hits, f.page, &pace); pace.late {
		return ErrLate
	}
	if len(f.hits) < f.to {
		f.end = len(f.hits)
	}
	return nil
}

// first returns how long the first reading is, and decides whether it brings the sources.
func (f *Found) first() int {
	page := &f.page
	need, rate, window := float64(page.end()), min(max(page.Rate, 0), 0.95), float64(max(page.Window, 0))
	f.folds = need * rate / (1 - rate)
	f.deviation = deviation(f.folds, rate, need)
	// Nothing folds beyond the window, which bounds the folds.
	most := window * rate
	spread := deviation(most*(1-rate), rate, window)
	var lengths [margins]int
	for i := range lengths {
		margin := leastMargin + step*float64(i)
		lengths[i] = int(need + math.Ceil(max(0, min(f.folds+margin*f.deviation, most+margin*spread, window-1))))
	}
	bounded := func(kind int) int {
		first := max(page.First, page.length(&lengths, kind))
		if page.Whole {
			first = max(first, page.Window)
		}
		return first
	}
	if page.FoldedToo || !page.SketchFirst && !page.SketchOnly {
		first := bounded(withSources)
		if f.WithSources = page.FoldedToo || page.atOnce(first); f.WithSources {
			return f.clamp(first)
		}
	}
	return f.clamp(bounded(bySketches))
}

// atOnce reports whether the page is read with its sources at once, given the length of the first reading: where that is expected to take less time
// than to read the sketches first.
func (p *Page) atOnce(first int) bool {
	usual := p.From == 0 || first <= fullReading
	if p.Whole {
		first = max(p.Window, p.end())
		usual = first <= fullReading
	}
	return float64(first-p.Size)*p.HitBytes <= mostSurplus && p.costs.atOnce(first, p.Size, usual)
}

// Agrees reports whether hits are of the documents that were compared at the ranks, as far as any were: in the order of the ranks, and fewer
// where the list ends before the rest.
func (f *Found) Agrees(ranks []int, hits []Hit) bool {
	for i, rank := range ranks {
		if rank < len(f.hits) && (i >= len(hits) || hits[i].ID != f.hits[rank].ID) {
			return false
		}
	}
	return true
}

// clamp bounds a reading by what can be of use, which is the window and, where the page is read with it, what the page needs beyond it; and
// by the engine's limit.
func (f *Found) clamp(to int) int {
	most := max(f.page.Window, f.page.First)
	if f.WithSources {
		most += f.page.From + f.page.Size
	}
	if f.page.Limit > 0 {
		most = min(most, f.page.Limit)
	}
	return min(to, most)
}

// missing returns up to which rank the list must be read again before the page's ranks are known, or 0 if they are.
func (f *Found) missing() int {
	n, lacking := len(f.hits), f.page.end()-len(f.Shown)
	switch {
	case f.end != unknown:
		return 0
	case f.page.Whole && n < f.clamp(f.page.Window):
		return f.clamp(f.page.Window)
	case lacking <= 0 || f.page.Size == 0:
		return 0
	}
	// The missing hits come right after the window at the latest.
	to := f.clamp(min(max(2*n, n+2*lacking), f.page.Window+lacking))
	if to <= n {
		return 0
	}
	return to
}

// pageRanks returns the ranks of the part of the page that is known. Ranks beyond the window count as present until a reading shows the end.
func (f *Found) pageRanks() []int {
	end := f.end
	if f.WithSources {
		end = len(f.hits)
	}
	if f.page.Limit > 0 {
		end = min(end, f.page.Limit)
	}
	var ranks []int
	if size := min(f.page.end(), end) - f.page.From; size > 0 {
		ranks = make([]int, 0, min(size, len(f.hits)))
	}
	for at := f.page.From; at < f.page.end(); at++ {
		rank := 0
		switch {
		case at < len(f.Shown):
			rank = f.Shown[at]
		case len(f.hits) < f.page.Window:
			return ranks
		default:
			rank = f.page.Window + at - len(f.Shown)
		}
		if rank >= end {
			return ranks
		}
		ranks = append(ranks, rank)
	}
	return ranks
}

// Hit returns the hit of a rank, and nil if its sketch was not read.
func (f *Found) Hit(rank int) *Hit {
	if rank < 0 || rank >= len(f.hits) {
		return nil
	}
	return &f.hits[rank]
}

// Stats says what the readings showed, for the response header and for [Widening.Learn].
type Stats struct {
	// Read is how many ranks were compared, Folded how many of them were folded.
	Read, Folded int
	// Ended says that every rank of the list, or of the window, was compared: Folded is final.
	Ended bool
	// Limited says that the engine's limit cut the page short.
	Limited bool
	// Length is how many ranks the list has, as far as the readings showed: more than there can be where they did not. It counts where the page is short.
	Length int
	// Reach is the number, from 1 on, of the least length of a first reading that would have been enough for the page, of those that were weighed. It is
	// 0 where they were not weighed by a learned rate.
	Reach int
	// HitBytes is the mean size of the hits that were read with their sources, 0 for none. The caller sets it.
	HitBytes int
	// Times says how long readings took, the last of each kind: from rank 0 on with sources, without, and of the page's own hits.
	Times [kinds]ReadTime
}

// NoteTime notes how long the reading took that was yielded last. Where it is not called, nothing is learned of that.
func (f *Found) NoteTime(t ReadTime) {
	kind := bySketches
	switch {
	case f.picked != nil:
		kind = ofThePage
	case f.WithSources:
		kind = withSources
	}
	f.times[kind] = t
}

// Stats returns what the readings so far showed.
func (f *Found) Stats() Stats {
	s := Stats{Read: len(f.hits), Folded: f.earlier, Ended: f.end != unknown || len(f.hits) >= f.page.Window, Times: f.times}
	if end := f.page.end(); f.page.known && f.deviation > 0 && f.page.Size > 0 && !f.page.Whole && end <= len(f.Shown) {
		s.Reach = marginFor((float64(f.Shown[end-1]+1-end) - f.folds) / f.deviation)
	}
	for _, g := range f.Groups {
		s.Folded += len(g.Folded)
	}
	limit := f.page.Limit
	if s.Length = f.end; limit > 0 {
		s.Length = min(s.Length, limit)
	}
	s.Limited = limit > 0 && f.end == unknown && len(f.pageRanks()) < f.page.end()-f.page.From
	return s
}

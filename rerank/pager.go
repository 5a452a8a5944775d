package rerank

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// ErrUnsettled means that the engine's list kept changing between readings, or that readings made no progress. The page is not known.
var ErrUnsettled = errors.New("rerank: the list kept changing")

const (
	// fullReading is the most ranks that are read with their sources at once. Up to here a second request costs more than the sources that
	// it saves.
	fullReading = 50
	// mostSurplus is how many bytes of unused hits a reading with sources may bring and still be cheaper than a second request.
	mostSurplus = 64 << 10
	// maxReadings bounds the readings of a page. Every reading at least doubles the ranks, so the largest window is reached before.
	maxReadings = 16
)

// Page says which page is wanted, and what is known about reading it.
type Page struct {
	// From and Size cut [From, From+Size) out of the collapsed list.
	From, Size int
	// Window is W, the number of ranks that are collapsed.
	Window int
	// Limit is how many ranks can be read from the engine; 0 is no limit.
	Limit int
	// Rate is the share of hits expected to fold, 0 to 1. Margin is how many standard deviations the first reading goes beyond that; 0 is
	// 2.5. They decide only how long the first reading is: see [Widening].
	Rate, Margin float64
	// HitBytes is the usual size of a hit with its sources, 0 if unknown. Of large hits the sketches are read first.
	HitBytes float64
	// SketchFirst reads sketches before any sources. It is for searches whose sources do not hold all that a sketch needs.
	SketchFirst bool
	// First is the least length of the first reading, where the ranks are of use.
	First int
	// Length cuts the collapsed list; 0 leaves it whole.
	Length int
	// Whole reads the whole window before the page is cut. Representatives that are not chosen by rank need it, and totals of the
	// collapsed list.
	Whole bool
	// Transitive groups by connected components, which needs the whole window too.
	Transitive bool
	// Sources reads every rank with its sources, to show those of folded hits.
	Sources bool
	// Deadline, if not nil, ends the page with ErrLate when it comes.
	Deadline Deadline
	// After, if not nil, is the part of the list before rank 0, whose leaders still hide hits. Window counts from rank 0. Such a list is
	// grouped by leaders, and its groups show their leaders.
	After *Walk
}

// end returns where the page ends in the collapsed list.
func (p Page) end() int {
	if p.Length > 0 {
		return max(p.From, min(p.From+p.Size, p.Length))
	}
	return p.From + p.Size
}

// Span is a reading of the ranks [From, To). With SketchOnly the sketches are enough; sources are read later.
type Span struct {
	From, To   int
	SketchOnly bool
	// Ranks, if not nil, are the ranks of the span that are needed, ascending. The caller may read these alone and pass them to [Pager.Pick]
	// in place of [Pager.Take].
	Ranks []int
}

// Pager finds one page of the collapsed list in a few readings of the engine's list. The readings of a page agree with one another: either
// one reading held everything, or the reading of the page's hits showed the same documents as the reading of the sketches, at the same
// ranks if it shows ranks ([Pager.Pick] gets none). Ranks beyond the window are read once, so a list that changes meanwhile can shift them,
// as it does between any two pages of the engine itself. A Pager is for one page and not safe for concurrent use.
//
//	for {
//		span, more := pager.Next()
//		if !more { break }
//		hits := read(span) // fewer than asked for: the list ends there
//		pager.Take(span, hits)
//	}
//	ranks, err := pager.Ranks()
type Pager struct {
	page     Page
	hits     []Hit // ranks [0, len(hits)) of the last reading from rank 0
	list     Collapsed
	earlier  int    // how many hits fold into leaders in front of the list
	end      int    // the length of the engine's list, or unknown
	full     places // the ranks whose sources were read, all in one reading, and their places in it
	whole    bool   // read everything with sources in one reading, from rank 0
	next     int    // the end of the next reading from rank 0; 0 when none is needed
	readings int
	short    bool // the first reading was not enough
	moved    int  // how often a reading showed that the list had moved
	err      error
}

// unknown is the end of a list that was not read to its end.
const unknown = math.MaxInt

// NewPager returns a Pager for the page.
func NewPager(page Page) *Pager {
	page.Whole = page.Whole || page.Transitive
	p := &Pager{page: page, end: unknown}
	switch {
	case page.Sources:
		p.whole = true
	case page.SketchFirst:
	case page.Whole:
		p.whole = max(page.Window, page.end()) <= fullReading
	default:
		first := p.firstReading()
		p.whole = (page.From == 0 || first <= fullReading) && float64(first-page.Size)*page.HitBytes <= mostSurplus
	}
	p.next = p.clamp(p.firstReading())
	return p
}

// Next returns what to read next, and false when the page is known or the search for it has failed.
func (p *Pager) Next() (Span, bool) {
	if p.err == nil && p.readings >= maxReadings {
		p.err = ErrUnsettled
	}
	if p.err != nil {
		return Span{}, false
	}
	if p.next > 0 {
		return Span{To: p.next, SketchOnly: !p.whole}, true
	}
	ranks := p.ranks()
	slices.Sort(ranks)
	if !slices.ContainsFunc(ranks, func(rank int) bool { return !p.has(rank) }) {
		return Span{}, false
	}
	return Span{From: ranks[0], To: ranks[len(ranks)-1] + 1, Ranks: ranks}, true
}

// has reports whether the sources of a rank were read.
func (p *Pager) has(rank int) bool {
	_, ok := p.full.find(rank)
	return ok
}

// places are the places of ranks in a reading: of consecutive ranks from first on, or of picked ones.
type places struct {
	first, count int
	picked       map[int]int
}

// find returns the place of a rank, and false if it has none.
func (p *places) find(rank int) (place int, ok bool) {
	if p.picked != nil {
		place, ok = p.picked[rank]
		return place, ok
	}
	return rank - p.first, rank >= p.first && rank < p.first+p.count
}

// Take adds the hits read for the span that Next returned last.
func (p *Pager) Take(span Span, hits []Hit) {
	p.readings++
	hits = hits[:min(len(hits), span.To-span.From)]
	if p.next == 0 {
		p.takePage(span, hits)
		return
	}
	p.hits, p.end = hits, unknown
	pace := pace{Deadline: p.page.Deadline}
	switch {
	case p.page.After != nil:
		p.list, p.earlier = p.page.After.after(hits, p.page.Window, &pace)
	case p.page.Transitive:
		p.list = collapse(hits, p.page.Window, components, &pace)
	default:
		p.list = collapse(hits, p.page.Window, grouped, &pace)
	}
	if pace.over {
		p.err = ErrLate
		return
	}
	if len(hits) < span.To {
		p.end = len(hits)
	}
	if p.whole {
		p.full = places{count: len(hits)}
	}
	p.next = p.missing()
	p.short = p.short || p.next > 0 && p.readings == 1
}

// Pick adds the hits of the ranks that the Span of Next names, one for each and in their order; fewer where the list ends before the rest.
func (p *Pager) Pick(span Span, hits []Hit) {
	p.readings++
	hits = hits[:min(len(hits), len(span.Ranks))]
	full := make(map[int]int, len(hits))
	for i, rank := range span.Ranks {
		switch {
		case i < len(hits) && (rank >= len(p.hits) || hits[i].ID == p.hits[rank].ID):
			full[rank] = i
		case i == len(hits) && rank >= len(p.hits):
			p.full, p.end = places{picked: full}, rank
			return
		default:
			p.restart(span.To)
			return
		}
	}
	p.full = places{picked: full}
}

// restart reads the list again, with all sources at once.
func (p *Pager) restart(to int) {
	p.moved++
	if p.page.Whole {
		to = max(to, len(p.hits))
	}
	p.whole, p.next = true, to
}

// takePage accepts the sources of the page's ranks if they belong to the documents whose sketches were read. Otherwise the list has moved,
// and sketches and sources are read again together.
func (p *Pager) takePage(span Span, hits []Hit) {
	end := span.From + len(hits)
	same := end == span.To || end >= len(p.hits)
	for i := 0; same && i < len(hits) && span.From+i < len(p.hits); i++ {
		same = hits[i].ID == p.hits[span.From+i].ID
	}
	if !same {
		p.restart(span.To)
		return
	}
	p.full = places{first: span.From, count: len(hits)}
	if end < span.To {
		p.end = end
	}
}

// firstReading returns how many ranks to read at first: what the page needs if the expected share of hits folds, and a margin, since a
// second reading costs more than a few extra ranks.
func (p *Pager) firstReading() int {
	need, rate, window := float64(p.page.end()), min(max(p.page.Rate, 0), 0.95), float64(max(p.page.Window, 0))
	margin := cmp.Or(max(p.page.Margin, 0), defaultMargin)
	folds := need * rate / (1 - rate)
	folds += margin * deviation(folds, rate, need)
	// Nothing folds beyond the window, which bounds the folds.
	most := window * rate
	most += margin * deviation(most*(1-rate), rate, window)
	first := max(p.page.First, int(need+math.Ceil(min(folds, most, max(window-1, 0)))))
	if p.page.Whole {
		first = max(first, p.page.Window)
	}
	return first
}

// guessed reports whether the length of the first reading was a guess, and so could be too short.
func (p *Pager) guessed() bool {
	return p.readings > 0 && !p.page.Whole && p.page.Size > 0 && p.firstReading() == p.clamp(p.firstReading()) && p.page.First < p.firstReading()
}

// clamp bounds a reading by what can be of use, which is the window and, where the page is read with it, what the page needs beyond it; and
// by the engine's limit.
func (p *Pager) clamp(to int) int {
	most := max(p.page.Window, p.page.First)
	if p.whole {
		most += p.page.From + p.page.Size
	}
	if p.page.Limit > 0 {
		most = min(most, p.page.Limit)
	}
	return min(to, most)
}

// missing returns up to which rank the list must be read again before the page's ranks are known, or 0 if they are.
func (p *Pager) missing() int {
	n, lacking := len(p.hits), p.page.end()-len(p.list.Shown)
	switch {
	case p.end != unknown:
		return 0
	case p.page.Whole && n < p.clamp(p.page.Window):
		return p.clamp(p.page.Window)
	case lacking <= 0 || p.page.end() == p.page.From:
		return 0
	}
	// The missing hits come right after the window at the latest.
	to := p.clamp(min(max(2*n, n+2*lacking), p.page.Window+lacking))
	if to <= n {
		return 0
	}
	return to
}

// Judged reports whether the sketches of a span from Next are compared. Otherwise only its IDs are.
func (p *Pager) Judged(span Span) bool { return span.SketchOnly || p.whole }

// Ranks returns the engine's ranks of the page's hits, in the order of the page, when Next has returned false; or ErrUnsettled or ErrLate.
func (p *Pager) Ranks() ([]int, error) {
	if p.err != nil {
		return nil, p.err
	}
	return p.ranks(), nil
}

// ranks returns the part of the page that is known. Ranks beyond the window count as present until a reading shows the end.
func (p *Pager) ranks() []int {
	end := p.end
	if p.whole {
		end = len(p.hits)
	}
	if p.page.Limit > 0 {
		end = min(end, p.page.Limit)
	}
	var ranks []int
	if size := min(p.page.end(), end) - p.page.From; size > 0 {
		ranks = make([]int, 0, min(size, len(p.hits)))
	}
	for at := p.page.From; at < p.page.end(); at++ {
		rank := 0
		switch {
		case at < len(p.list.Shown):
			rank = p.list.Shown[at]
		case len(p.hits) < p.page.Window:
			return ranks
		default:
			rank = p.page.Window + at - len(p.list.Shown)
		}
		if rank >= end {
			return ranks
		}
		ranks = append(ranks, rank)
	}
	return ranks
}

// At returns the place of a rank in the reading with the page's sources, and false if it is not in it.
func (p *Pager) At(rank int) (place int, ok bool) {
	return p.full.find(rank)
}

// Hit returns the hit of a rank, and nil if its sketch was not read.
func (p *Pager) Hit(rank int) *Hit {
	if rank < 0 || rank >= len(p.hits) {
		return nil
	}
	return &p.hits[rank]
}

// Moved returns how often a reading showed that the list had moved since the one before.
func (p *Pager) Moved() int { return p.moved }

// Stats says what the readings showed, for the response header and for [Widening.Learn].
type Stats struct {
	// Read is how many ranks were compared, Folded how many of them were folded, Readings how often the engine was asked.
	Read, Folded, Readings int
	// Ended says that every rank of the list, or of the window, was compared: Folded is final.
	Ended bool
	// Limited says that the engine's limit cut the page short.
	Limited bool
	// Short says that the first reading was not enough, Guessed that its length was a guess, since it was shorter than the window.
	Short, Guessed bool
	// HitBytes is the mean size of the hits that were read with their sources, 0 for none. The caller sets it.
	HitBytes int
}

// Stats returns what the readings so far showed.
func (p *Pager) Stats() Stats {
	s := Stats{Read: len(p.hits), Readings: p.readings, Folded: p.earlier, Ended: p.end != unknown || len(p.hits) >= p.page.Window}
	s.Short, s.Guessed = p.short, p.guessed()
	for _, g := range p.list.Groups {
		s.Folded += len(g.Folded)
	}
	limit := p.page.Limit
	s.Limited = limit > 0 && p.end == unknown && len(p.ranks()) < p.page.end()-p.page.From
	return s
}

// Groups returns the groups of the ranks read, ordered by leader.
func (p *Pager) Groups() []Group { return slices.Clone(p.list.Groups) }

package rerank

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

func collapsedBy(hits []Hit, window int, transitive bool) Collapsed {
	if transitive {
		return CollapseTransitive(hits, window)
	}
	return Collapse(hits, window)
}

func TestCollapseIsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	for i := range effort.Rounds(1500) {
		k := randomKind(r, false)
		hits, window, transitive := k.list(r, r.IntN(70)), r.IntN(80), r.IntN(2) == 0
		list, _, groups := defined(hits, window, transitive)
		got := collapsedBy(hits, window, transitive)
		expect.By{cmpopts.EquateEmpty()}.Must(t, groups, got.Groups, "case %d, transitive %v: groups", i, transitive)
		expect.By{cmpopts.EquateEmpty()}.Must(t, list[:len(list)-max(0, len(hits)-window)], got.Shown, "case %d, transitive %v: shown", i, transitive)
		for _, rank := range pinned(hits[:min(window, len(hits))]) {
			if !slices.Contains(got.Shown, rank) {
				t.Fatalf("case %d: pinned rank %d is not shown", i, rank)
			}
		}
	}
}

func pinned(hits []Hit) (ranks []int) {
	for rank := range hits {
		if hits[rank].Pinned {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// engine answers the readings of a page from a list that may change between them.
type engine struct {
	// state returns the list at the time of a reading, counted from 0.
	state    func(reading int) []Hit
	readings int
	// ranks read, and those with sources among them.
	read, sources int
	picked        bool        // the last reading was of the page's ranks alone
	moved         int         // how often the list was read again after that
	full          map[int]Hit // the last reading with sources, by rank
}

// serve finds a page and returns the ids of it.
func (e *engine) serve(t testing.TB, page Page) ([]string, *Found, error) {
	f := FindPage(page)
	for to, picked := range f.Readings() {
		list := e.state(e.readings)
		e.readings++
		ranks := picked
		for rank := range to {
			ranks = append(ranks, rank)
		}
		if last := ranks[len(ranks)-1]; page.Limit > 0 && last >= page.Limit || to > 0 == (picked != nil) {
			t.Fatalf("page %+v asks for %v %v", page, to, picked)
		}
		if to > 0 && e.picked {
			e.moved++
		}
		e.picked = picked != nil
		var hits []Hit
		for _, rank := range ranks[:min(len(ranks), sort.SearchInts(ranks, len(list)))] {
			h := list[rank]
			if picked != nil {
				h = Hit{ID: h.ID}
			}
			hits = append(hits, h)
		}
		if e.read += len(hits); picked != nil || f.WithSources {
			e.full, e.sources = map[int]Hit{}, e.sources+len(hits)
			for i, h := range hits {
				e.full[ranks[i]] = h
			}
		}
		if err := f.Add(hits); err != nil {
			return nil, f, err
		}
	}
	got := []string{}
	for _, rank := range f.Ranks {
		full, ok := e.full[rank]
		if !ok {
			t.Fatalf("page %+v: rank %d has no sources", page, rank)
		}
		got = append(got, full.ID)
		if h := f.Hit(rank); h != nil && h.ID != full.ID {
			t.Fatalf("page %+v: the sources at rank %d are those of %s, the sketch that of %s", page, rank, full.ID, h.ID)
		}
	}
	return got, f, nil
}

// still is an engine whose list stands still.
func still(hits []Hit) *engine {
	return &engine{state: func(int) []Hit { return hits }}
}

// randomPage draws a page over lists of about n hits.
func randomPage(r *rand.Rand, n int) Page {
	page := Page{From: r.IntN(n + 10), Size: 1 + r.IntN(250), Window: 1 + r.IntN(n+20), Widening: Widening{Rate: r.Float64()}, SketchFirst: r.IntN(4) == 0}
	if r.IntN(3) == 0 {
		page.HitBytes = float64(r.IntN(100_000))
	}
	page.costs = randomCosts(r)
	if r.IntN(2) == 0 {
		page.Size = 1 + r.IntN(12)
	}
	if r.IntN(3) == 0 {
		page.From = 0
	}
	if r.IntN(4) == 0 {
		page.First = r.IntN(n)
	}
	page.FoldedToo = r.IntN(5) == 0
	return page
}

func TestPagerIsASliceOfTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	for i := range effort.Rounds(2000) {
		ranked := r.IntN(2) == 0
		k, n := randomKind(r, ranked), 1+r.IntN(150)
		hits, page := k.list(r, n), randomPage(r, n)
		page.Transitive = !ranked && r.IntN(2) == 0
		page.Whole = !ranked || r.IntN(4) == 0
		readable := hits
		if r.IntN(4) == 0 {
			page.Limit = max(1, r.IntN(n+20))
			page.First = min(page.First, page.Limit)
			readable = hits[:min(page.Limit, n)]
		}
		list, folded, _ := defined(readable, page.Window, page.Transitive)
		e := still(hits)
		got, p, err := e.serve(t, page)
		if err != nil {
			t.Fatalf("case %d, page %+v: %v", i, page, err)
		}
		expect.Must(t, ids(hits, cut(list, page.From, page.Size)), got, "case %d: page %+v of %d hits", i, page, n)
		checkReadings(t, page, p, e, folded)
		if page.Limit > 0 && page.Limit < n && p.Stats().Limited != (len(got) < page.Size) {
			t.Fatalf("page %+v of %d hits has %d, and Limited is %v", page, n, len(got), p.Stats().Limited)
		}
	}
}

// checkReadings: what a page says of its readings, and what they were to hold.
func checkReadings(t *testing.T, page Page, f *Found, e *engine, folded int) {
	t.Helper()
	s := f.Stats()
	expect.Must(t, 0, e.moved, "page %+v: read again, in %d readings of a list that stands still", page, e.readings)
	if (page.Whole || page.Transitive) && s.Folded != folded {
		t.Fatalf("page %+v: %d folded, want %d of the whole window", page, s.Folded, folded)
	}
	if page.FoldedToo {
		for rank := range s.Read {
			if _, ok := e.full[rank]; !ok {
				t.Fatalf("page %+v: rank %d was read without its source", page, rank)
			}
		}
	}
}

// TestLargeWindows: windows up to the largest, with few leaders so that the definition can be computed.
func TestLargeWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 1))
	windows := []int{1, 10, 1000}
	if !testing.Short() {
		windows = append(windows, 10_000)
	}
	for _, window := range windows {
		for _, ranked := range []bool{true, false} {
			k := randomKind(r, ranked)
			k.duplicates, k.families = 0.9, 12
			hits := k.list(r, window+50)
			page := Page{Window: window, Whole: !ranked, Widening: Widening{Rate: 0.9}}
			list, _, _ := defined(hits, window, false)
			for _, size := range []int{1, 100, 250} {
				for _, from := range []int{0, len(list) / 2, max(0, len(list)-60)} {
					page.From, page.Size = from, size
					got, _, err := still(hits).serve(t, page)
					if diff := cmp.Diff(ids(hits, cut(list, from, size)), got); diff != "" || err != nil {
						t.Fatalf("page %+v: %v %s", page, err, diff)
					}
				}
			}
		}
	}
}

// TestOneStateOfAMovingList: whatever changes between readings, a page is that of one of the list's states, or none.
func TestOneStateOfAMovingList(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 1))
	answered, moved := 0, 0
	for i := range effort.Rounds(1500) {
		ranked := r.IntN(2) == 0
		k, n := randomKind(r, ranked), 40+r.IntN(150)
		states := movingList(r, k, n)
		page := randomPage(r, n)
		page.Size, page.Transitive = 1+r.IntN(30), !ranked && r.IntN(2) == 0
		page.Whole = !ranked || r.IntN(4) == 0
		if r.IntN(4) == 0 {
			page.Limit = max(page.First, 1+r.IntN(n))
		}
		e := &engine{state: func(reading int) []Hit { return states[min(reading, len(states)-1)] }}
		got, _, err := e.serve(t, page)
		expect.OK(t, err)
		moved += e.moved
		var want [][]string
		beyond := false
		for _, hits := range states {
			if page.Limit > 0 {
				hits = hits[:min(len(hits), page.Limit)]
			}
			list, folded, _ := defined(hits, page.Window, page.Transitive)
			beyond = beyond || len(hits) > page.Window && page.end() > page.Window-folded
			want = append(want, ids(hits, cut(list, page.From, page.Size)))
		}
		if beyond {
			continue // ranks beyond the window have no sketch to tell a change by
		}
		answered++
		if !slices.ContainsFunc(want, func(ids []string) bool { return slices.Equal(ids, got) }) {
			t.Fatalf("case %d: page %+v is of no state: %v\n%v", i, page, got, want)
		}
	}
	if answered < effort.Rounds(500) || moved < effort.Rounds(75) {
		t.Errorf("%d answers were judged and %d readings showed a change: the lists do not move enough", answered, moved)
	}
	t.Logf("%d answers judged, %d changes seen", answered, moved)
}

// movingList draws the states of a list in which hits come, go and change places.
func movingList(r *rand.Rand, k kind, n int) [][]Hit {
	fresh := k.list(r, n+60)
	states := [][]Hit{fresh[:n]}
	for i := range r.IntN(5) {
		next := slices.Clone(states[i])
		for range r.IntN(4) {
			at := r.IntN(len(next))
			switch r.IntN(3) {
			case 0:
				next = slices.Delete(next, at, at+1)
			case 1:
				next = slices.Insert(next, at, fresh[n+i*12+r.IntN(3)])
				next = slices.CompactFunc(next, func(a, b Hit) bool { return a.ID == b.ID })
			default:
				other := r.IntN(len(next))
				next[at], next[other] = next[other], next[at]
			}
		}
		states = append(states, next)
	}
	return states
}

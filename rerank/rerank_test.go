package rerank

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/sketch"
)

// trials is how many random cases a test takes: a tenth in a short run.
func trials(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

var profile = &Profile{Threshold: 0.8}

// hit makes a hit of a family of texts: members of one family agree on all positions but those in which they differ.
func hit(id string, family byte, differ int) Hit {
	payload := make([]byte, 100)
	for i := range payload {
		payload[i] = family*31 + byte(i)
		if i < differ {
			payload[i] = byte(differ*7) ^ family ^ byte(i*13) ^ 0x55
		}
	}
	return Hit{ID: id, Profile: profile, Sketch: &sketch.Sketch{Scheme: 1, Shingles: 100, Bits: 8, Fingerprint: uint64(family)<<32 | uint64(differ), Payload: payload}}
}

func randomHits(r *rand.Rand, n int, duplicates float64) []Hit {
	hits := make([]Hit, n)
	for i := range hits {
		family, differ := byte(r.IntN(250)), 0
		if i > 0 && r.Float64() < duplicates {
			family, differ = byte(r.IntN(1+min(i, 12))), r.IntN(40)
		}
		hits[i] = hit(fmt.Sprint("h", i), family, differ)
		if r.IntN(15) == 0 {
			hits[i].Sketch, hits[i].Profile = nil, nil
		}
		if hits[i].Sketch != nil && r.IntN(20) == 0 {
			hits[i].Sketch.Scheme = 2
		}
	}
	return hits
}

// collapsed is the collapsed list by its definition, written out on its own: the oracle of everything else here.
func collapsed(hits []Hit, window int) []int {
	var list, leaders []int
	for i := range hits {
		if i >= window {
			list = append(list, i)
			continue
		}
		kept := true
		for _, l := range leaders {
			a, b := hits[i].Sketch, hits[l].Sketch
			if a == nil || b == nil || a.Scheme != b.Scheme {
				continue
			}
			agreement, _ := a.Agreement(b)
			kept = kept && agreement < profile.Threshold && a.Fingerprint != b.Fingerprint
		}
		if kept {
			leaders, list = append(leaders, i), append(list, i)
		}
	}
	return list
}

func cut(list []int, from, size int) []int {
	return list[min(from, len(list)):min(from+size, len(list))]
}

func TestCollapseKeepsEveryRankOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range trials(300) {
		hits, window := randomHits(r, r.IntN(80), r.Float64()), r.IntN(90)
		var ranks, leaders []int
		for _, g := range Collapse(hits, window, false).Groups {
			leaders = append(leaders, g.Leader)
			ranks = append(append(ranks, g.Leader), g.Folded...)
			for _, f := range g.Folded {
				if f <= g.Leader || hits[f].Sketch == nil {
					t.Fatalf("rank %d must not fold into %d", f, g.Leader)
				}
			}
		}
		if !slices.IsSorted(leaders) {
			t.Fatalf("leaders out of order: %v", leaders)
		}
		slices.Sort(ranks)
		for i, rank := range ranks {
			if i != rank {
				t.Fatalf("ranks in groups = %v, want every rank of the window once", ranks)
			}
		}
		want := collapsed(hits, window)
		for i := window; i < len(hits); i++ {
			leaders = append(leaders, i)
		}
		if diff := cmp.Diff(want, leaders); diff != "" {
			t.Fatalf("collapsed list differs from its definition: %s", diff)
		}
	}
}

func TestCollapseOfLeadersChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		hits := randomHits(r, 60, 0.7)
		var leaders []Hit
		for _, g := range Collapse(hits, 60, false).Groups {
			leaders = append(leaders, hits[g.Leader])
		}
		for _, g := range Collapse(leaders, 60, false).Groups {
			if len(g.Folded) != 0 {
				t.Fatalf("leaders fold among themselves: %v", g)
			}
		}
	}
}

func TestShortTextsFoldByFingerprintAlone(t *testing.T) {
	short := &Profile{Threshold: 0.5, MinShingles: 200}
	same, near := hit("b", 1, 0), hit("c", 1, 3)
	same.Profile, near.Profile = short, short
	hits := []Hit{hit("a", 1, 0), near, same}
	if diff := cmp.Diff([]Group{{Leader: 0, Representative: 0, Folded: []int{2}}, {Leader: 1, Representative: 1}}, Collapse(hits, 3, false).Groups); diff != "" {
		t.Error(diff)
	}
}

// page runs a Pager against list(), which is called anew for every reading.
func page(t *testing.T, p *Pager, list func() []Hit) []string {
	t.Helper()
	var read []Hit
	for {
		span, more := p.Next()
		if !more {
			break
		}
		hits := list()
		got := hits[min(span.From, len(hits)):min(span.To, len(hits))]
		if !span.SketchOnly {
			read = slices.Clone(got)
		}
		p.Take(span, got)
	}
	ranks, err := p.Ranks()
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, rank := range ranks {
		at, _ := p.At(rank)
		ids = append(ids, read[at].ID)
	}
	return ids
}

func ids(hits []Hit, ranks []int) []string {
	list := []string{}
	for _, r := range ranks {
		list = append(list, hits[r].ID)
	}
	return list
}

func TestPagerAgreesWithTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range trials(3000) {
		hits := randomHits(r, r.IntN(400), r.Float64())
		want := Page{From: r.IntN(150), Size: 1 + r.IntN(40), Window: 1 + r.IntN(300), Rate: r.Float64()}
		if r.IntN(3) == 0 {
			want.From = 0
		}
		want.SketchFirst = r.IntN(3) == 0
		list := collapsed(hits, want.Window)
		if r.IntN(4) == 0 {
			want.First, want.Length = r.IntN(200), 1+r.IntN(200)
			list = list[:min(len(list), want.Length)]
		}
		oracle := ids(hits, cut(list, want.From, want.Size))
		got := page(t, NewPager(want), func() []Hit { return hits })
		if diff := cmp.Diff(oracle, got); diff != "" {
			t.Fatalf("case %d: page %+v of %d hits: %s", i, want, len(hits), diff)
		}
	}
}

func TestPagerEndsAtTheEnginesLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range trials(500) {
		hits, limit := randomHits(r, 300, 0.5), 50+r.IntN(200)
		size := 1 + r.IntN(20)
		want := Page{From: r.IntN(limit - size), Size: size, Window: 1 + r.IntN(300), Limit: limit, Rate: 0.3}
		list := slices.DeleteFunc(collapsed(hits, want.Window), func(rank int) bool { return rank >= limit })
		p := NewPager(want)
		got := page(t, p, func() []Hit { return hits })
		if diff := cmp.Diff(ids(hits, cut(list, want.From, want.Size)), got); diff != "" {
			t.Fatalf("page %+v: %s", want, diff)
		}
		if short := len(got) < size; short != p.Stats().Limited {
			t.Fatalf("page %+v: %d hits but Limited = %v", want, len(got), p.Stats().Limited)
		}
	}
}

// A list that changes between readings must give the page of one of its states, never a mixture.
func TestPagerAnswersFromOneState(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for i := range trials(1000) {
		before := randomHits(r, 200+r.IntN(100), r.Float64())
		after := slices.Clone(before)
		for range 1 + r.IntN(5) {
			at := r.IntN(len(after))
			after = slices.Delete(after, at, at+1)
		}
		want := Page{From: r.IntN(120), Size: 1 + r.IntN(20), Window: 1 + r.IntN(250), Rate: r.Float64()}
		at, n := r.IntN(3), 0
		got := page(t, NewPager(want), func() []Hit {
			if n++; n > at {
				return after
			}
			return before
		})
		one := ids(before, cut(collapsed(before, want.Window), want.From, want.Size))
		two := ids(after, cut(collapsed(after, want.Window), want.From, want.Size))
		if beyond := len(collapsed(before, want.Window)) - len(before) + want.Window; want.From+want.Size > beyond-5 {
			continue // ranks beyond the window have no sketch to tell a change by
		}
		if !slices.Equal(got, one) && !slices.Equal(got, two) {
			t.Fatalf("case %d: page %+v is of neither state: %v\nbefore %v\nafter  %v", i, want, got, one, two)
		}
	}
}

func TestPagerReadsLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	once, cases, read := 0, trials(2000), 0
	for range cases {
		hits := make([]Hit, 300)
		for i := range hits {
			hits[i] = hit(fmt.Sprint(i), byte(i), 90)
			if i > 0 && r.Float64() < 0.3 {
				hits[i] = hits[r.IntN(i)]
			}
		}
		p := NewPager(Page{Size: 10, Window: 200, Rate: 0.3})
		page(t, p, func() []Hit { return hits })
		if p.Stats().Readings == 1 {
			once++
		}
		read += p.Stats().Read
	}
	if share := float64(once) / float64(cases); share < 0.95 {
		t.Errorf("page 1 took one reading in %.1f %% of cases, want at least 95 %%", share*100)
	}
	t.Logf("one reading in %.1f %%, %.1f ranks read for 10 hits", 100*float64(once)/float64(cases), float64(read)/float64(cases))
}

// A page takes a few allocations, however many hits it holds.
func TestAPageAllocatesLittle(t *testing.T) {
	hits := noneFolds(50) // fewer than an index is made for
	if n := testing.AllocsPerRun(20, func() {
		p := NewPager(Page{Size: len(hits), Window: 1000})
		span, _ := p.Next()
		p.Take(span, hits)
		if _, more := p.Next(); more {
			t.Fatal("the page is not settled")
		}
		if ranks, err := p.Ranks(); err != nil || len(ranks) != len(hits) {
			t.Fatal(ranks, err)
		}
	}); n > 12 {
		t.Errorf("%v allocations for %d hits", n, len(hits))
	}
}

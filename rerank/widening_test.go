package rerank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// duplicates draws which earlier hit each of n hits repeats, or -1: about 30 of 100 repeat one, in several patterns.
var duplicates = map[string]func(r *rand.Rand, n int) []int{
	// Any earlier hit, strewn evenly.
	"strewn": func(r *rand.Rand, n int) []int { return strewn(r, n, 0.3) },
	// A few texts have most of the copies.
	"heavy tail": func(r *rand.Rand, n int) []int {
		of := fresh(n)
		for i := 1; i < n; i++ {
			if r.Float64() < 0.3 {
				of[i] = int(float64(i) * r.Float64() * r.Float64() * r.Float64())
			}
		}
		return of
	},
	// One list in ten begins with a run of copies of one text.
	"bursts": func(r *rand.Rand, n int) []int {
		of := strewn(r, n, 0.28)
		if r.IntN(10) == 0 {
			for i, at := 0, 1+r.IntN(5); i < 8; i++ {
				of[at+i] = at - 1
			}
		}
		return of
	},
}

func fresh(n int) []int {
	of := make([]int, n)
	for i := range of {
		of[i] = -1
	}
	return of
}

func strewn(r *rand.Rand, n int, rate float64) []int {
	of := fresh(n)
	for i := 1; i < n; i++ {
		if r.Float64() < rate {
			of[i] = r.IntN(i)
		}
	}
	return of
}

// searches draws the first pages of many searches, one after another with what was learned from those before. It
// returns how many took one reading, and all ranks read (every reading counts whole) and needed (up to the last rank of the page, the least
// that any way of reading has to see).
func searches(t *testing.T, r *rand.Rand, cases int, page Page, keep int, draw func(*rand.Rand, int) []int) (once, read, needed int) {
	profile := &Profile{Threshold: 0.8, Keep: keep}
	known := Widening{Rate: DefaultRate}
	sketches, hits := make([]*sketch.Sketch, 8*page.Size), make([]Hit, 8*page.Size)
	for i := range sketches {
		sketches[i] = distinct(r)
	}
	for range cases {
		for rank, of := range draw(r, len(hits)) {
			hits[rank] = Hit{ID: fmt.Sprint(rank), Profile: profile, Sketch: sketches[rank]}
			if of >= 0 {
				hits[rank].Sketch = hits[of].Sketch
			}
		}
		e := still(hits)
		page.Widening = known
		_, p, err := e.serve(t, page)
		expect.OK(t, err)
		s := p.Stats()
		known = known.Learn(s)
		if e.readings == 1 {
			once++
		}
		ranks := p.Ranks
		read, needed = read+e.read, needed+ranks[len(ranks)-1]+1
	}
	return once, read, needed
}

// TestFirstPagesTakeOneReading: at 30 duplicates of 100, in whatever pattern, 95 of 100 first pages take one reading, and no more is read
// than 1.6 times what was needed. Pages of ten of lists that differ much from one another can't have both: 1.8 times there.
func TestFirstPagesTakeOneReading(t *testing.T) {
	for name, draw := range duplicates {
		for _, size := range []int{10, 20, 50} {
			for _, keep := range []int{1, 2, 3} {
				if testing.Short() && size*keep > 10 {
					continue
				}
				t.Run(fmt.Sprintf("%s/size=%d/keep=%d", name, size, keep), func(t *testing.T) {
					t.Parallel()
					r := rand.New(rand.NewPCG(uint64(size), uint64(keep)))
					const cases = 1000
					once, read, needed := searches(t, r, cases, Page{Size: size, Window: 200}, keep, draw)
					share, ratio := float64(once)/cases, float64(read)/float64(needed)
					t.Logf("%.1f %% in one reading, %.2f ranks read for one needed", 100*share, ratio)
					if share < 0.95 {
						t.Errorf("%.1f %% of first pages took one reading, want 95 %%", 100*share)
					}
					most := 1.6
					if size == 10 && name == "bursts" {
						most = 1.8
					}
					if ratio > most {
						t.Errorf("%.2f ranks were read for one needed, want no more than %.1f", ratio, most)
					}
				})
			}
		}
	}
}

// TestFirstPagesAtOnce: a hundred searches begin before anything is known, of a list that folds less than is assumed. What they read teaches the rate, but
// not that pages end before they are expected to: the next page takes one reading.
func TestFirstPagesAtOnce(t *testing.T) {
	hits := noneFolds(200)
	hits[8].Sketch = hits[7].Sketch
	for i := range hits {
		hits[i].Profile = &Profile{Threshold: 0.8}
	}
	known := Widening{Rate: DefaultRate}
	for range 100 {
		_, p, err := still(hits).serve(t, Page{Size: 12, Window: 200, Widening: Widening{Rate: DefaultRate}})
		expect.OK(t, err)
		known = known.Learn(p.Stats())
	}
	e := still(hits)
	_, _, err := e.serve(t, Page{Size: 12, Window: 200, Widening: known})
	if expect.OK(t, err); e.readings != 1 || e.read > 24 {
		t.Errorf("%d readings of %d ranks", e.readings, e.read)
	}
}

// noneFolds is a list of which nothing folds: the most comparisons.
func noneFolds(n int) []Hit {
	r := rand.New(rand.NewPCG(5, 6))
	hits := make([]Hit, n)
	for i := range hits {
		hits[i] = hit("", byte(i), 0)
		hits[i].Sketch = distinct(r)
	}
	return hits
}

// TestReadingsCostLittleMore: whatever runs copies come in and whatever a request costs, pages take no more than a seventh longer than with the one length
// of first readings that suits the list best. A page that reaches farther takes another reading of twice that length, and so on.
func TestReadingsCostLittleMore(t *testing.T) {
	for _, run := range []func(r *rand.Rand) float64{
		func(r *rand.Rand) float64 { return 1 + 39*float64(r.IntN(50)/49) },
		func(r *rand.Rand) float64 { return min(200, 1/r.Float64()) },
		func(r *rand.Rand) float64 { return 1 + 2*float64(r.IntN(5)/3) },
	} {
		for _, hit := range []float64{0.01, 0.03} { // of the time of a request
			r, known, took, reaches := rand.New(rand.NewPCG(47, 1)), Widening{}, 0.0, make([]int, 3000)
			cost := func(length, reach int) float64 {
				cost := 1 + hit*float64(length)
				for ; length < reach; length *= 2 {
					cost += 1 + 2*hit*float64(length)
				}
				return cost
			}
			for i := range reaches {
				for range 10 {
					reaches[i] += int(run(r))
				}
				f := FindPage(Page{Size: 10, Window: 1000, Widening: known, FoldedToo: true})
				length := f.first()
				took += cost(length, reaches[i])
				s := Stats{Read: reaches[i], Folded: reaches[i] - 10, Reach: marginFor((float64(reaches[i]-10) - f.folds) / f.deviation)}
				s.Times[withSources] = ReadTime{length, 1 + hit*float64(length)}
				known = known.Learn(s)
			}
			best := math.Inf(1)
			for length := 1; length < 300; length++ {
				sum := 0.0
				for _, reach := range reaches {
					sum += cost(length, reach)
				}
				best = min(best, sum)
			}
			if t.Logf("%.2f of the best", took/best); took > 1.15*best {
				t.Errorf("a hit takes %v of a request: %.2f times the best", hit, took/best)
			}
		}
	}
}

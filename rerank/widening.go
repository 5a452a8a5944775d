package rerank

import "math"

// DefaultRate is the share of hits expected to fold while nothing is known: about 30 % of web pages are near-duplicates (Manning and Raghavan's slides).
const DefaultRate = 0.3

const (
	// margins is how many lengths of a first reading are weighed against one another: each a step longer than the one before, in standard deviations
	// of the number of folds, from leastMargin on. A heavy tail of long runs of copies needs the whole range.
	margins           = 25
	leastMargin, step = -3, 0.5
	// fading is what is left of a page's weight after one more search.
	fading = 0.98
	// requestWorth is how many hits take as long as the fixed part of a reading while that is not known. leastWorth and mostWorth bound it: the time
	// of the engine's replies leaves out what a request costs us.
	requestWorth, leastWorth, mostWorth = 55, 30, 1000
)

// assumed is how far pages are assumed to reach, with the weight of one page in all.
var assumed = func() (a [margins]float64) {
	sum := 0.0
	for i := range a {
		a[i] = math.Exp(-1.2 * math.Abs(leastMargin+step*float64(i)))
		sum += a[i]
	}
	for i := range a {
		a[i] /= sum
	}
	return a
}()

// Widening holds what past searches of a target say about how long a first reading must be, and what it should bring. The zero Widening knows nothing.
type Widening struct {
	// Rate is the share of hits expected to fold, 0 to 1.
	Rate float64
	// HitBytes is the usual size of a hit with its sources, 0 if unknown.
	HitBytes float64
	// reaches says how far pages reached, in the units of assumed.
	reaches [margins]float32
	known   bool // Rate is learned
	costs   costs
}

// Unweighed returns the Widening without what it says of the length of hits and the time of readings: for a page that differs in these from most of
// the target.
func (w Widening) Unweighed() Widening {
	w.HitBytes, w.costs = 0, costs{}
	return w
}

// Learn returns the Widening after one more search. The rate is a moving mean over the last few.
func (w Widening) Learn(s Stats) Widening {
	if s.Read == 0 {
		return w
	}
	switch {
	case s.HitBytes > 0 && w.HitBytes == 0:
		w.HitBytes = float64(s.HitBytes)
	case s.HitBytes > 0:
		w.HitBytes = 0.8*w.HitBytes + 0.2*float64(s.HitBytes)
	}
	w.costs = w.costs.learn(s.Times)
	rate := float64(s.Folded) / float64(s.Read)
	if w.known {
		rate = 0.8*w.Rate + 0.2*rate
	}
	w.Rate, w.known = rate, true
	if s.Reach > 0 {
		for i := range w.reaches {
			w.reaches[i] *= fading
		}
		w.reaches[min(s.Reach, margins)-1]++
	}
	return w
}

// marginFor returns the number, from 1 on, of the least margin that is enough for a page in front of whose end that many standard deviations more hits
// fold than were expected to.
func marginFor(deviations float64) int {
	return 1 + min(max(int(math.Ceil((deviations-leastMargin)/step)), 0), margins-1)
}

// length returns the length of the first reading that is expected to take the least time, given the lengths with each margin, in ascending order, and
// the kind of the reading. A page that reaches farther takes another one of twice that length, and so on.
func (w *Widening) length(lengths *[margins]int, kind int) (best int) {
	request := w.costs.of[kind].request()
	least := math.Inf(1)
	for i, length := range lengths {
		first, again, weight := request+float64(length), 0.0, 0.0
		for j := range lengths {
			each := assumed[j] + float64(w.reaches[j])
			weight += each
			for to := length; to < lengths[j]; {
				to *= 2
				again += each * (request + float64(to))
			}
		}
		if expected := first + again/weight; i == 0 || expected < least {
			best, least = length, expected
		}
	}
	return best
}

// deviation returns the standard deviation of the number of folds, given its mean, before need leaders are found. If each hit folded
// independently it would be negative binomial, with a variance of the mean over 1 - rate. The other two terms are there because lists
// differ in their rates and copies come in runs.
func deviation(folds, rate, need float64) float64 {
	return math.Sqrt(folds/(1-rate) + 0.1*folds*folds + 0.04*need)
}

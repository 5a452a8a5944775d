package rerank

import "math"

const (
	// DefaultRate is the share of hits expected to fold while nothing is known: about 30 % of web pages are near-duplicates
	// (Manning and Raghavan's slides).
	DefaultRate = 0.3
	// defaultMargin is the Margin while nothing is known: small, since many first searches at once hold the most memory of all.
	defaultMargin = 1.5

	// leastMargin and mostMargin bound what is learned.
	leastMargin, mostMargin = 1, 8
	// tooShort is the share of first readings that turn out too short once the margin has settled.
	tooShort = 0.03
	// step is how much the margin grows when one does.
	step = 0.4
)

// Widening holds what past searches of a target say about how long a first reading must be, and what it should bring. The zero Widening knows nothing.
type Widening struct {
	// Rate is the share of hits expected to fold, 0 to 1. Margin is how many standard deviations the first reading goes beyond that; 0 is
	// 1.5. Both are 0 until something is known.
	Rate, Margin float64
	// HitBytes is the usual size of a hit with its sources, 0 if unknown.
	HitBytes float64
	costs    costs
}

// Unweighed returns the Widening without what it says of the length of hits and the time of readings: for a page that differs in these from most of
// the target.
func (w Widening) Unweighed() Widening {
	w.HitBytes, w.costs = 0, costs{}
	return w
}

// Learn returns the Widening after one more search. The rate is a moving mean over the last few. The margin follows a quantile: it grows
// after a first reading that was too short and shrinks a little after any other, so it settles where 3 % of them are too short, however
// unevenly duplicates are spread.
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
	w.costs = w.costs.learn(s.Took)
	rate := float64(s.Folded) / float64(s.Read)
	if w.Margin == 0 {
		w.Rate, w.Margin = rate, defaultMargin
	} else {
		w.Rate = 0.8*w.Rate + 0.2*rate
	}
	switch {
	case s.Short:
		w.Margin += step
	case s.Guessed:
		w.Margin -= step * tooShort / (1 - tooShort)
	}
	w.Margin = min(max(w.Margin, leastMargin), mostMargin)
	return w
}

// deviation returns the standard deviation of the number of folds, given its mean, before need leaders are found. If each hit folded
// independently it would be negative binomial, with a variance of the mean over 1 - rate. The other two terms are there because lists
// differ in their rates and copies come in runs.
func deviation(folds, rate, need float64) float64 {
	return math.Sqrt(folds/(1-rate) + 0.1*folds*folds + 0.04*need)
}

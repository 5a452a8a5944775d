package rerank

import "math"

// A page is read in one of two ways: in one reading with sources, or by its sketches and then the sources of its own hits. Which takes less time
// depends on the engine, its documents and its load. So it is learned from what readings of the target took: of each kind a fixed part and a
// part per hit.

const (
	// fade is what is left of an observation's weight after one more search.
	fade = 0.98
	// tryEach is in how many searches the other way is tried once, as only that shows that it has become the better one. It is a prime, which
	// keeps no step with clients that repeat themselves.
	tryEach = 61
	// prior is the weight of the assumption that half of the time does not depend on the hits. It matters while all readings had about one length.
	prior = 0.01
	// reach is how many times as long as those seen a reading may be for its time to be known.
	reach = 3
	// forgotten is the weight below which nothing is known.
	forgotten = 1e-6
	// outlier is how many times the expected time an observation counts for at most: a pause of the engine is not to change the way of many
	// searches.
	outlier = 4
)

// The kinds of readings.
const (
	withSources = iota // from rank 0 on, with sources
	bySketches         // from rank 0 on, without
	ofThePage          // the page's own hits, once their ranks are known
	kinds
)

// ReadTime says how long a reading took.
type ReadTime struct {
	// Hits is how many hits it brought. Time is how long that took, in milliseconds; 0 where it is not known.
	Hits int
	Time float64
}

// costs are what readings took lately, by their kind. The zero costs know nothing.
type costs struct {
	of       [kinds]cost
	searches int // learned from
}

// learn returns the costs after one more search.
func (c costs) learn(took [kinds]ReadTime) costs {
	if took == [kinds]ReadTime{} {
		return c
	}
	c.searches++
	for i, t := range took {
		c.of[i] = c.of[i].and(t)
	}
	return c
}

// atOnce reports whether a page of size hits is to be read in one reading of that length. As long as the times are not known, usual is the answer.
func (c costs) atOnce(length, size int, usual bool) bool {
	whole, known := c.of[withSources].expected(length)
	sketches, too := c.of[bySketches].expected(length)
	page, all := c.of[ofThePage].expected(size)
	best := usual
	if known && too && all {
		best = whole <= sketches+page
	}
	return best != (c.searches%tryEach == tryEach-1)
}

// cost holds what readings of one kind took: the sums of a linear regression of time on hits. Old readings fade. A reading counts for all searches since
// the last reading of its kind: due is their weight.
type cost struct{ weight, hits, hits2, time, hitsTime, due float64 }

// and returns the cost after one more search, with the reading of this kind if there was one.
func (c cost) and(t ReadTime) cost {
	if t.Time > 0 {
		if expected, known := c.expected(t.Hits); known {
			t.Time = min(t.Time, outlier*expected)
		}
	}
	c = cost{fade * c.weight, fade * c.hits, fade * c.hits2, fade * c.time, fade * c.hitsTime, fade*c.due + 1}
	if t.Time > 0 {
		w, hits := c.due, float64(t.Hits)
		c = cost{c.weight + w, c.hits + w*hits, c.hits2 + w*hits*hits, c.time + w*t.Time, c.hitsTime + w*hits*t.Time, 0}
	}
	return c
}

// expected returns how long a reading of that many hits is likely to take, and false if that is not known.
func (c cost) expected(hits int) (time float64, known bool) {
	if c.weight < forgotten || c.hits == 0 || float64(hits) > reach*math.Sqrt(c.hits2/c.weight) {
		return 0, false
	}
	x, y, share := c.line()
	return y * (1 + share*(float64(hits)/x-1)), true
}

// line returns the mean of the hits and of the time, and which share of that is not fixed: in units of the means, the line of the regression goes through
// (1, 1) and rises by it.
func (c cost) line() (hits, time, share float64) {
	hits, time = c.hits/c.weight, c.time/c.weight
	spread, joint := c.hits2/c.weight/(hits*hits)-1, c.hitsTime/c.weight/(hits*time)-1
	return hits, time, min(max((joint+prior/2)/(spread+prior), 0), 1)
}

// request returns how many hits take as long as the fixed part of a reading.
func (c cost) request() float64 {
	if c.weight < forgotten || c.hits == 0 {
		return requestWorth
	}
	hits, _, share := c.line()
	return min(max(hits*(1-share)/max(share, 1e-3), leastWorth), mostWorth)
}

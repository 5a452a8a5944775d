package sketch

import "math"

// AtLeast returns p(r), the probability that at least matches of positions independent positions agree in the sketches of two
// documents of resemblance r:
//
//	p(r) = Σ C(positions, k) r^k (1-r)^(positions-k)   for k = matches … positions
//
// It is the curve of CS124 lecture 12, which calls two documents similar where 90 of 100 positions agree. The lecture's
// permutations are independent, and so are those of [Permutations]; the positions of [FastSimilarity] vary less, so there the
// true curve is steeper. Where only b bits of each position are kept, the r to put in is r + (1-r)/2^b: positions then agree by
// chance as well.
//
// The relative error is below 1e-12 for up to 1024 positions and a result down to 1e-300. It grows with the positions, as does the time. A
// result below the smallest float64 is 0. An r below 0 counts as 0 and an r above 1 as 1; NaN gives NaN. Zero or fewer matches are always
// reached (1, even with no position), more matches than positions never (0).
func AtLeast(r float64, matches, positions int) float64 {
	switch r = min(max(r, 0), 1); {
	case math.IsNaN(r):
		return r
	case matches <= 0:
		return 1
	case matches > positions:
		return 0
	}
	if float64(matches) > r*float64(positions) {
		return tail(r, matches, positions)
	}
	// Below the mean the sum would start with its smallest terms. The complement is a sum of the same kind from the other end: at least
	// positions-matches+1 positions disagree.
	return 1 - tail(1-r, positions-matches+1, positions)
}

// tail is the sum of AtLeast for r < 1 and more matches than expected: its terms decrease from the first on, so it ends as soon
// as a term is too small to count.
func tail(r float64, matches, positions int) float64 {
	term := binomial(r, matches, positions)
	sum, odds := term, r/(1-r)
	for k := matches; k < positions; k++ {
		term *= float64(positions-k) / float64(k+1) * odds
		if sum+term == sum {
			break
		}
		sum += term
	}
	return sum
}

// binomial is the probability that exactly k of n positions agree, C(n,k) r^k (1-r)^(n-k). It would suffice to add logarithms;
// however each costs digits in proportion to its size. Instead the factors above 1 and those below 1 are taken in
// such an order that the product stays near 1 while there is a choice: nothing overflows, and what underflows is the result.
func binomial(r float64, k, n int) float64 {
	product, agree, differ := 1.0, k, n-k
	below := func() {
		if agree > 0 {
			product, agree = product*r, agree-1
		} else {
			product, differ = product*(1-r), differ-1
		}
	}
	short := min(k, n-k)
	for i := 1; i <= short; i++ {
		for product > 1 && agree+differ > 0 {
			below()
		}
		product *= float64(n-short+i) / float64(i)
	}
	for agree+differ > 0 && product > 0 {
		below()
	}
	return product
}

// Candidate returns the probability that the sketches of two documents of resemblance r share at least one band, where each of
// bands bands is made of rows independent positions of its own: 1 - (1 - r^rows)^bands (Leskovec, Rajaraman, Ullman: "Mining
// of Massive Datasets", section 3.4).
//
// The relative error is below 1e-13, for tiny results too. An r below 0 counts as 0 and an r above 1 as 1; a NaN gives NaN.
// Without a band, or with bands of no position, nothing is shared: 0.
func Candidate(r float64, bands, rows int) float64 {
	r = min(max(r, 0), 1)
	if math.IsNaN(r) {
		return r
	}
	if bands <= 0 || rows <= 0 {
		return 0
	}
	return -math.Expm1(float64(bands) * math.Log1p(-math.Pow(r, float64(rows))))
}

package sketch

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// exactTails returns, for every number of matches from 0 to positions, the sum of AtLeast in numbers of 400 bits: no term is
// negative, so nothing is lost by adding.
func exactTails(r float64, positions int) []*big.Float {
	wide := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
	agree, differ := []*big.Float{wide(1)}, []*big.Float{wide(1)} // powers
	for i := range positions {
		agree = append(agree, wide(0).Mul(agree[i], wide(r)))
		differ = append(differ, wide(0).Mul(differ[i], wide(0).Sub(wide(1), wide(r))))
	}
	tails, sum := make([]*big.Float, positions+1), wide(0)
	for k := positions; k >= 0; k-- {
		ways := wide(0).SetInt(new(big.Int).Binomial(int64(positions), int64(k)))
		sum = wide(0).Add(sum, ways.Mul(ways, wide(0).Mul(agree[k], differ[positions-k])))
		tails[k] = sum
	}
	return tails
}

func relativeError(got float64, want *big.Float) float64 {
	gap := new(big.Float).Sub(want, big.NewFloat(got))
	quotient, _ := gap.Quo(gap.Abs(gap), want).Float64()
	return quotient
}

// TestAtLeastAgainstExactSums holds every result down to 1e-300 to the documented error, and what lies near 1 to the last
// digits of what is missing from it.
func TestAtLeastAgainstExactSums(t *testing.T) {
	tiny, nearOne := 0, 0
	for _, positions := range []int{1, 2, 7, 8, 64, 100, 128, 200, 511, 1024} {
		for i, r := range []float64{1e-12, 1e-3, 0.01, 0.1, 0.25, 0.4, 0.5, 0.6, 0.8, 0.9, 0.95, 0.96, 0.99, 0.999, 1 - 1e-12} {
			if testing.Short() && positions > 64 && i%4 != 0 {
				continue
			}
			for matches, want := range exactTails(r, positions) {
				got := AtLeast(r, matches, positions)
				if want.Cmp(big.NewFloat(1e-300)) < 0 {
					if got > 1.0001e-300 {
						t.Errorf("AtLeast(%v, %d, %d) = %v, want %.4g", r, matches, positions, got, want)
					}
					continue
				}
				wrong := relativeError(got, want)
				if wrong > 1e-12 || got > 1 {
					t.Errorf("AtLeast(%v, %d, %d) = %v, want %.20g: relative error %.2g", r, matches, positions, got, want, wrong)
				}
				missing, _ := new(big.Float).Sub(big.NewFloat(1), want).Float64()
				if math.Abs((1-got)-missing) > 2.3e-16+1e-12*missing {
					t.Errorf("1 - AtLeast(%v, %d, %d) = %v, want %v", r, matches, positions, 1-got, missing)
				}
				if got < 1e-200 {
					tiny++
				}
				if missing < 1e-6 {
					nearOne++
				}
			}
		}
	}
	if tiny < 10 || nearOne < 10 {
		t.Errorf("%d tiny results and %d near 1 are too few to say anything", tiny, nearOne)
	}
	// Far more positions than any sketch has: neither overflow nor underflow on the way, and the error grows no faster than they do.
	if testing.Short() {
		return
	}
	for matches, want := range exactTails(0.5, 3000) {
		if got := AtLeast(0.5, matches, 3000); want.Cmp(big.NewFloat(1e-300)) > 0 && relativeError(got, want) > 3e-12 {
			t.Errorf("AtLeast(0.5, %d, 3000) = %v, want %.20g", matches, got, want)
		}
	}
}

func TestAtLeastOfAnyArguments(t *testing.T) {
	for _, c := range []struct {
		r                  float64
		matches, positions int
		want               float64
	}{
		{0, 1, 100, 0}, {0, 0, 100, 1}, {1, 100, 100, 1}, {1, 101, 100, 0}, {0.5, 0, 100, 1}, {0.5, -3, 100, 1},
		{0.5, 101, 100, 0}, {0.5, 0, 0, 1}, {0.5, 1, 0, 0}, {0.5, 1, -5, 0}, {0.5, 0, -5, 1}, {-0.1, 1, 10, 0}, {1.1, 10, 10, 1},
		{math.Inf(-1), 1, 10, 0}, {math.Inf(1), 10, 10, 1}, {math.Copysign(0, -1), 1, 10, 0}, {0.25, 1, 1, 0.25},
		{1e-3, 1024, 1024, 0}, {math.NaN(), 1, 10, math.NaN()}, {math.NaN(), 0, 10, math.NaN()},
	} {
		got := AtLeast(c.r, c.matches, c.positions)
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("AtLeast(%v, %d, %d) = %v, want %v", c.r, c.matches, c.positions, got, c.want)
		}
	}
}

// TestAtLeastOfTheLecture holds the figures that CS124 prints. Its "almost 10^-18" for resemblance 0.5 is that of 91
// matches: for 90 it is 1.53e-17.
func TestAtLeastOfTheLecture(t *testing.T) {
	for _, line := range lecture(t, "cs124")("curve") {
		r, err1 := strconv.ParseFloat(line[0], 64)
		bound, err2 := strconv.ParseFloat(line[3], 64)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		matches := atoi(t, line[1])
		p := AtLeast(r, matches, 100)
		switch line[2] {
		case "below":
			if p >= bound || p < bound*0.9 {
				t.Errorf("p(%v) = %v, printed below %v", r, p, bound)
			}
		case "above":
			if p <= bound || p > bound+0.001 {
				t.Errorf("p(%v) = %v, printed above %v", r, p, bound)
			}
		case "almost":
			next := AtLeast(r, matches+1, 100)
			if fmt.Sprintf("%.3g %.3g", p, next) != "1.53e-17 1.66e-18" || p < 10*bound || next > 2*bound || next < bound {
				t.Errorf("p(%v) = %.3g, for one match more %.3g; printed almost %v", r, p, next, bound)
			}
		default:
			t.Errorf("relation %q", line[2])
		}
	}
}

// TestCandidate holds the S-curve against exact arithmetic and the figures of "Mining of Massive Datasets" for 20 bands of 5.
func TestCandidate(t *testing.T) {
	for r, want := range map[float64]string{0.2: "0.006", 0.3: "0.047", 0.4: "0.186", 0.5: "0.470", 0.6: "0.802", 0.7: "0.975"} {
		expect.Same(t, want, fmt.Sprintf("%.3f", Candidate(r, 20, 5)), "Candidate(%v, 20, 5)", r)
	}
	one := func() *big.Float { return new(big.Float).SetPrec(3000).SetInt64(1) }
	power := func(x *big.Float, n int) *big.Float {
		p := one()
		for range n {
			p.Mul(p, x)
		}
		return p
	}
	for _, r := range []float64{1e-9, 1e-3, 0.1, 0.3, 0.5, 0.8, 0.9, 0.99, 1 - 1e-9} {
		for _, c := range []struct{ bands, rows int }{{1, 1}, {1, 20}, {20, 5}, {16, 8}, {32, 4}, {128, 1}, {1024, 30}} {
			each := power(new(big.Float).SetPrec(3000).SetFloat64(r), c.rows)
			want := one().Sub(one(), power(each.Sub(one(), each), c.bands))
			if wrong := relativeError(Candidate(r, c.bands, c.rows), want); wrong > 1e-13 {
				t.Errorf("Candidate(%v, %d, %d): relative error %.2g of %.6g", r, c.bands, c.rows, wrong, want)
			}
		}
	}
	for _, c := range []struct {
		r           float64
		bands, rows int
		want        float64
	}{{0, 4, 4, 0}, {1, 4, 4, 1}, {-1, 4, 4, 0}, {2, 4, 4, 1}, {0.5, 0, 4, 0}, {0.5, 4, 0, 0}, {1, -1, 4, 0}, {1, 4, -1, 0}} {
		expect.Same(t, c.want, Candidate(c.r, c.bands, c.rows), "Candidate(%v, %d, %d)", c.r, c.bands, c.rows)
	}
	if got := Candidate(math.NaN(), 0, 4); !math.IsNaN(got) {
		t.Errorf("Candidate of NaN = %v", got)
	}
}

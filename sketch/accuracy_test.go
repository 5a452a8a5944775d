package sketch

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// The tests of this file hold every family's estimator against the truth over many random pairs of sets: the mean of the
// estimates (bias), their spread (RMSE), and the standard error that they claim. A set is a list of random hashes, as shingles
// are under a random seed. -v prints the tables. The bounds follow from the number of trials: NEARDUP_SOAK=1 makes the most, -short the fewest.

// setPairCase is a pair of sets: their sizes and how many elements are in both.
type setPairCase struct{ a, b, both int }

func (c setPairCase) resemblance() float64 { return float64(c.both) / float64(c.a+c.b-c.both) }

// angle is the true angle of the two sets as vectors of zeros and ones.
func (c setPairCase) angle() float64 { return math.Acos(float64(c.both) / math.Sqrt(float64(c.a*c.b))) }

// targets are the resemblances at which estimators are looked at, or the nearest that two sets of one size can have.
var targets = []float64{0.2, 0.5, 0.8, 0.9, 0.95, 0.99}

// casesOf returns the pairs of sets of n elements that come nearest to the targets, each once.
func casesOf(n int) (list []setPairCase) {
	for _, target := range targets {
		best := setPairCase{n, n, 0}
		for both := range n + 1 {
			c := setPairCase{n, n, both}
			if math.Abs(c.resemblance()-target) <= math.Abs(best.resemblance()-target) {
				best = c
			}
		}
		if !slices.Contains(list, best) {
			list = append(list, best)
		}
	}
	return list
}

// soaking: all trials are made, which takes minutes.
var soaking = os.Getenv("NEARDUP_SOAK") != ""

func sizesToMeasure() []int {
	if soaking {
		return []int{1, 3, 10, 30, 100, 300, 3000}
	}
	return []int{1, 3, 10, 30, 100, 300}
}

// accuracyTrials is how many pairs of sets are drawn for one figure.
func accuracyTrials() int {
	if soaking {
		return 20_000
	}
	return effort.Rounds(4000)
}

// tally collects estimates of one value.
type tally struct {
	n, sum, squares, fourths float64
	// claimed is the sum of the squares of the standard errors that the estimates claim.
	claimed float64
}

func (t *tally) add(e Estimate, truth float64) {
	gap := e.Value - truth
	t.n, t.sum, t.squares, t.fourths = t.n+1, t.sum+gap, t.squares+gap*gap, t.fourths+gap*gap*gap*gap
	t.claimed += e.Error * e.Error
}

func (t *tally) bias() float64 { return t.sum / t.n }
func (t *tally) mse() float64  { return t.squares / t.n }
func (t *tally) rmse() float64 { return math.Sqrt(t.mse()) }

// biasError is the standard error of bias.
func (t *tally) biasError() float64 { return math.Sqrt(max(0, t.mse()-t.bias()*t.bias()) / t.n) }

// mseError is the standard error of mse.
func (t *tally) mseError() float64 { return math.Sqrt(max(0, t.fourths/t.n-t.mse()*t.mse()) / t.n) }

// honesty is the claimed mean square error over that observed, NaN where no estimate was wrong.
func (t *tally) honesty() float64 {
	if t.squares == 0 {
		return math.NaN()
	}
	return t.claimed / t.squares
}

// unbiased reports whether the bias is what chance can explain.
func (t *tally) unbiased() bool { return math.Abs(t.bias()) <= max(4.5*t.biasError(), 0.002) }

// honest reports whether the claimed mean square error is at least low times that observed, and at most high times that and some
// more, where chance can't explain the rest.
func (t *tally) honest(low, high, more float64) bool {
	slack, claimed := 4.5*t.mseError(), t.claimed/t.n
	return claimed >= low*(t.mse()-slack)-1e-12 && claimed <= high*(t.mse()+slack)+more
}

// drawer draws random pairs of sets.
type drawer struct {
	r    *rand.Rand
	room []uint64
}

// newDrawer is seeded with what is measured.
func newDrawer(what string, c setPairCase) *drawer {
	h := fnv.New64a()
	fmt.Fprint(h, what, c)
	return &drawer{r: rand.New(rand.NewPCG(124, h.Sum64())), room: make([]uint64, c.a+c.b)}
}

// draw returns two sets that stay as they are until the next call; they share the room of their common elements.
func (d *drawer) draw(c setPairCase) (a, b []uint64) {
	all := d.room[:c.a+c.b-c.both]
	for i := range all {
		all[i] = d.r.Uint64()
	}
	return all[:c.a], all[c.a-c.both:]
}

// maker makes sketches of ready hashes without making room anew.
type maker struct {
	s *Sketcher
	w workspace
}

func (m *maker) sketch(k *Sketch, set []uint64) {
	m.w.set = append(m.w.set[:0], set...)
	k.Scheme, k.Cut, k.Shingles = m.s.id, false, uint32(len(set))
	m.s.summarise(k, &m.w)
}

// measure calls f with trials pairs of sketches.
func measure(t *testing.T, scheme Scheme, c setPairCase, trials int, f func(a, b *Sketch)) {
	t.Helper()
	s := expect.Value(New(scheme))(t)
	m, d := &maker{s: s}, newDrawer(string(scheme.Family), c)
	var one, other Sketch
	for range trials {
		a, b := d.draw(c)
		m.sketch(&one, a)
		m.sketch(&other, b)
		f(&one, &other)
	}
}

// half is what half a position (or element) more adds to the mean square error that an estimate from n of them claims, so that
// no error is claimed to be 0.
func half(n, bits int) float64 {
	chance := math.Exp2(-float64(bits))
	return 0.5 / float64(n) / float64(n+1) / (1 - chance) / (1 - chance)
}

// positionsFor is how many positions a family gets whose cost is positions times elements: as many as there is time for. Whether
// an estimate is unbiased and its error honest does not depend on them.
func positionsFor(n int) int {
	cost := 10_000
	if soaking {
		cost = 50_000
	}
	return max(8, min(defaultPositions, cost/n/8*8))
}

// eachSize runs f for every size of sets, side by side.
func eachSize(t *testing.T, f func(t *testing.T, n int)) {
	t.Parallel()
	for _, n := range sizesToMeasure() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			f(t, n)
		})
	}
}

// check fails where an estimate is biased or its claims are not honest, and prints a line of the table.
func check(t *testing.T, what string, c setPairCase, truth float64, seen *tally, low, high, more float64) {
	t.Helper()
	if !seen.unbiased() {
		t.Errorf("%s %+v: bias %+.5f is more than chance allows, %.5f", what, c, seen.bias(), max(4.5*seen.biasError(), 0.002))
	}
	if !seen.honest(low, high, more) {
		t.Errorf("%s %+v: claims an error of %.5f; that observed is %.5f", what, c, math.Sqrt(seen.claimed/seen.n), seen.rmse())
	}
	logLine(t, what, c, truth, seen)
}

// logLine prints a line of the table: the sizes of the sets and of what they share, then the figures.
func logLine(t *testing.T, what string, c setPairCase, truth float64, seen *tally) {
	t.Helper()
	t.Logf("%-28s %4d %4d %4d  truth %.4f  bias %+.5f ± %.5f  RMSE %.5f  claimed²/observed² %.3f",
		what, c.a, c.b, c.both, truth, seen.bias(), seen.biasError(), seen.rmse(), seen.honesty())
}

// theory is the RMSE of k independent positions that are compared in full.
func theory(j float64, k int) float64 { return math.Sqrt(j * (1 - j) / float64(k)) }

// slotsOf returns how a family fills the slots of its positions.
func slotsOf(family Family) func(slots, set []uint64) {
	if family == Permutations {
		return permutations
	}
	room := new(slotArray)
	return func(slots, set []uint64) {
		room.fill(len(slots), set)
		copy(slots, room.slots[:])
	}
}

// widths are the numbers of bits kept of a position: those of [Scheme.Bits], and all.
var widths = []int{1, 2, 4, 8, 64}

// packings are the tallies of the same trials by the bits kept.
type packings struct {
	by map[int]*tally
	// cross is the sum of the products of the squared errors at 8 and at 64 bits.
	cross float64
}

// loss is the RMSE at 8 bits over that at 64, and its standard error by the delta method.
func (p *packings) loss() (ratio, err float64) {
	few, all := p.by[8], p.by[64]
	square := few.mse() / all.mse()
	spread := (few.fourths - 2*square*p.cross + square*square*all.fourths) / all.n
	ratio = math.Sqrt(square)
	return ratio, math.Sqrt(max(0, spread)/all.n) / (2 * ratio * all.mse())
}

// measurePositions draws pairs and estimates their resemblance from the same slots at every width.
func measurePositions(family Family, c setPairCase, positions, trials int) packings {
	seen := packings{by: map[int]*tally{}}
	for _, width := range widths {
		seen.by[width] = new(tally)
	}
	fill, d := slotsOf(family), newDrawer(string(family), c)
	one, other := make([]uint64, positions), make([]uint64, positions)
	a := Sketch{Form: Positions, Shingles: uint32(c.a)}
	b := Sketch{Form: Positions, Shingles: uint32(c.b)}
	for range trials {
		first, second := d.draw(c)
		fill(one, first)
		fill(other, second)
		product := 1.0
		for _, width := range widths {
			e := Estimate{Value: float64(agreeing(one, other)) / float64(positions)}
			if width <= 8 {
				a.Bits, b.Bits = uint8(width), uint8(width)
				a.Payload, b.Payload = pack(a.Payload[:0], one, width), pack(b.Payload[:0], other, width)
				e, _ = a.estimate(&b)
			}
			seen.by[width].add(e, c.resemblance())
			if gap := e.Value - c.resemblance(); width >= 8 {
				product *= gap * gap
			}
		}
		seen.cross += product
	}
	return seen
}

func TestPermutationsAccuracy(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		k := positionsFor(n)
		// A variance that is estimated from k positions is too small by 1/k on average.
		low := 0.95 * (1 - 1/float64(k))
		for _, c := range casesOf(n) {
			seen := measurePositions(Permutations, c, k, accuracyTrials())
			for _, width := range widths[:4] {
				check(t, fmt.Sprintf("permutations %d×%d", k, width), c, c.resemblance(), seen.by[width], low, 1.05, half(k, width))
			}
			if j := c.resemblance(); j > 0 && j < 1 {
				full := seen.by[64]
				within(t, fmt.Sprint("RMSE over that of theory ", c), full.rmse()/theory(j, k), 0.95, 1.05, 4.5*full.mseError()/full.mse()/2)
			}
		}
	})
}

// within fails where a figure lies outside of bounds by more than an allowance for chance.
func within(t *testing.T, what string, figure, least, most, slack float64) {
	t.Helper()
	if !(figure >= least-slack && figure <= most+slack) {
		t.Errorf("%s is %.4f, want %.3f to %.3f (± %.4f)", what, figure, least, most, slack)
	}
}

// fastError bounds the RMSE of the default scheme over that of independent positions, by the number of elements. Few elements are
// drawn nearly without replacement, one in several positions each; many are as good as independent.
var fastError = map[int]float64{3: 0.88, 10: 0.80, 30: 0.75, 100: 0.77, 300: 0.86, 3000: 1.0}

// TestFastSimilarityAccuracy also holds the default scheme to an error that independent positions do not reach, and to lose no
// more than 1.5 % of it by keeping 8 bits of each position (on average; 2.5 % in any case: where the resemblance is low, chance
// equalities are a larger part of the error).
func TestFastSimilarityAccuracy(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		low, high := 0.95, 2.1
		var ratio, packed, slack, packedSlack, cases float64
		for _, c := range casesOf(n) {
			seen, j := measurePositions(FastSimilarity, c, defaultPositions, accuracyTrials()), c.resemblance()
			for _, width := range widths[:4] {
				check(t, fmt.Sprintf("fast_similarity %d×%d", defaultPositions, width), c, j, seen.by[width], low, high, 2*half(defaultPositions, width))
			}
			if j > 0 && j < 1 {
				of8 := seen.by[8]
				loss, lossError := seen.loss()
				within(t, fmt.Sprint("RMSE at 8 bit over that at 64 ", c), loss, 0.99, 1.025, 4.5*lossError)
				ratio, packed, cases = ratio+of8.rmse()/theory(j, defaultPositions), packed+loss, cases+1
				slack, packedSlack = slack+of8.mseError()/of8.mse()/2, packedSlack+lossError
			}
		}
		if cases > 0 {
			// The errors of the cases are independent, so that of their mean is less than the mean of them.
			within(t, "RMSE over that of theory", ratio/cases, fastError[n]-0.1, fastError[n], 4.5*slack/cases/math.Sqrt(cases))
			within(t, "RMSE at 8 bit over that at 64", packed/cases, 1, 1.015, 4.5*packedSlack/cases/math.Sqrt(cases))
			t.Logf("%d elements: RMSE over that of theory %.4f; at 8 bit over that at 64: %.4f", n, ratio/cases, packed/cases)
		}
	})
}

func TestMSmallestAccuracy(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		for _, c := range casesOf(n) {
			var seen tally
			measure(t, Scheme{Family: MSmallest}, c, accuracyTrials(), func(a, b *Sketch) {
				e, _ := a.estimate(b)
				seen.add(e, c.resemblance())
			})
			check(t, fmt.Sprint("m_smallest ", defaultPositions), c, c.resemblance(), &seen, 0.95, 1.05, half(defaultPositions, 64))
			if n <= defaultPositions && (seen.squares != 0 || seen.claimed != 0) {
				t.Errorf("%+v: sketches that hold all elements are not exact", c)
			}
		}
	})
}

// TestZeroModMAccuracy leaves out the pairs that are not comparable because neither sketch holds anything, and holds their
// share, and that of empty sketches, against (1-1/m)^(repeats · elements).
func TestZeroModMAccuracy(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		for _, c := range casesOf(n) {
			var seen tally
			trials, empty := float64(accuracyTrials()), 0.0
			measure(t, Scheme{Family: ZeroModM}, c, accuracyTrials(), func(a, b *Sketch) {
				if len(a.Payload) == 0 {
					empty++
				}
				if e, ok := a.estimate(b); ok {
					seen.add(e, c.resemblance())
				}
			})
			none := func(elements int) float64 { return math.Pow(1-1.0/defaultModulus, float64(defaultRepeats*elements)) }
			for _, rate := range []struct {
				what      string
				got, want float64
			}{
				{"empty sketches", empty / trials, none(c.a)},
				{"pairs that are not comparable", 1 - seen.n/trials, none(c.a + c.b - c.both)},
			} {
				slack := 4.5 * math.Sqrt(rate.want*(1-rate.want)/trials)
				within(t, fmt.Sprint("share of ", rate.what, c), rate.got, rate.want, rate.want, slack)
			}
			// What is looked at is one hash at least, and on average so many.
			looked := min(defaultPositions, float64(defaultRepeats*(c.a+c.b-c.both))/defaultModulus)
			low, high := 0.95*(1-min(0.5, 2/looked)), 1.15
			check(t, "zero_mod_m 4×16", c, c.resemblance(), &seen, low, high, math.Pow(max(1, looked), -2))
		}
	})
}

// TestSimHashAccuracy looks at the angle, which is what the family estimates, and at the resemblance that is made of it.
func TestSimHashAccuracy(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		k := positionsFor(n)
		for _, c := range casesOf(n) {
			var angle, seen tally
			measure(t, Scheme{Family: SimHash, Positions: k}, c, accuracyTrials(), func(a, b *Sketch) {
				e, _ := a.angle(b)
				angle.add(e, c.angle())
				e, _ = a.estimate(b)
				seen.add(e, c.resemblance())
			})
			low, more := 0.95*(1-1/float64(k)), math.Pi*math.Pi*half(k, 64)
			check(t, fmt.Sprintf("simhash angle %d", k), c, c.angle(), &angle, low, 1.05, more)
			if k == defaultPositions && math.Abs(seen.bias()) > 0.25*seen.rmse()+4.5*seen.biasError() {
				t.Errorf("%+v: the resemblance is biased by %+.5f at a standard error of %.5f", c, seen.bias(), seen.rmse())
			}
			logLine(t, "  its resemblance", c, c.resemblance(), &seen)
		}
	})
}

// TestContainmentAccuracy: an excerpt in a whole, the whole in the excerpt, and sets that merely overlap. Read off a list of values it has no
// bias, and where one set holds all of the other it is 1 every time. What is made of a resemblance by a curved line is off by a part of its
// error; where one set holds all of the other, the values beyond are cut off and what is left is off by half of a normal distribution.
func TestContainmentAccuracy(t *testing.T) {
	t.Parallel()
	for _, family := range []Family{FastSimilarity, Permutations, MSmallest, ZeroModM, SimHash} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			listed := family == MSmallest || family == ZeroModM
			cases := []setPairCase{
				{30, 100, 25}, {100, 30, 25}, {100, 300, 90}, {300, 100, 90}, {40, 200, 10}, {60, 50, 0},
				{100, 300, 100}, {300, 100, 100}, {30, 200, 30},
			}
			if listed { // small excerpts, of which the other families know next to nothing
				cases = append(cases, setPairCase{100, 2000, 80}, setPairCase{100, 2000, 100})
			}
			for _, c := range cases {
				truth, share := float64(c.both)/float64(c.a), 0.25
				if c.both == min(c.a, c.b) {
					share = 0.6
				}
				if listed {
					share = 0
				}
				var seen tally
				measure(t, Scheme{Family: family}, c, accuracyTrials()/4, func(a, b *Sketch) {
					if e, ok := a.Containment(b); ok {
						seen.add(e, truth)
					}
				})
				if math.Abs(seen.bias()) > share*seen.rmse()+4.5*seen.biasError()+1e-12 {
					t.Errorf("%+v: bias %+.5f at a standard error of %.5f", c, seen.bias(), seen.rmse())
				}
				more := 4 * half(defaultPositions, 8)
				if family == ZeroModM {
					more = 0.005 // of a few hashes half a hash is much
				}
				if listed && c.both == c.a { // no sketch can know that there is nothing else
					if seen.rmse() != 0 {
						t.Errorf("%+v: all of it is there, and yet estimates vary by %.5f", c, seen.rmse())
					}
				} else if !seen.honest(0.9, 3.5, more) {
					t.Errorf("%+v: claims an error of %.5f; that observed is %.5f", c, math.Sqrt(seen.claimed/seen.n), seen.rmse())
				}
				logLine(t, string(family)+" containment", c, truth, &seen)
			}
		})
	}
}

// TestContainmentOfSmallSets: where neither list is cut, it is exact.
func TestContainmentOfSmallSets(t *testing.T) {
	s := newSketcher(t, func(s *Scheme) { s.Family, s.Positions = MSmallest, 128 })
	r := rand.New(rand.NewPCG(8, 8))
	for range 300 {
		common, own := r.IntN(60), 1+r.IntN(60)
		a, b := pair(r, common, own)
		e, ok := sketchOf(s, a).Containment(sketchOf(s, b))
		if want := Containment(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))); !ok || e != (Estimate{Value: want}) {
			t.Fatalf("%d of %d elements: %v, %v, want %v without an error", common, common+own, e, ok, want)
		}
	}
}

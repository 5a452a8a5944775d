// Package ask finds the threshold that fits what a person calls the same, and asks about few pairs.
//
// A [Session] holds candidate pairs of an index, how many such pairs the index has at each agreement, and the answers so far. It
// assumes that the probability that a person calls two documents the same rises with their agreement a along a logistic curve,
//
//	P(same | a) = 1 / (1 + exp(-(a-t)/s))
//
// and that one answer in ten is a slip. It keeps how probable each (t, s) is on a grid. The next pair is taken from the middle of where
// t may lie. The threshold is the one with the greatest expected F1 over the pairs of the index.
//
// The package does no I/O and reads no clock, so that a terminal and a page can use it alike. A Session is not safe for concurrent use.
package ask

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Pair is a candidate.
type Pair struct {
	A         string
	B         string
	Agreement float64
	// Shingles is how many the shorter of the two has.
	Shingles int
	// Groups are those that the two documents belong to: documents that are like one another, directly or by others between them.
	Groups [2]int
}

// Verdict is what a person says of a pair.
type Verdict string

// The verdicts. A skipped pair is not asked again and teaches nothing. Undo takes an earlier answer back where answers are kept.
const (
	Same      Verdict = "same"
	Different Verdict = "different"
	Skip      Verdict = "skip"
	Undo      Verdict = "undo"
)

// Answer is a verdict on a pair, as it is kept.
type Answer struct {
	A       string    `json:"a"`
	B       string    `json:"b"`
	Verdict Verdict   `json:"verdict"`
	At      time.Time `json:"at"`
}

// Counts says how many pairs of an index have each agreement, by hundredths, without those that no threshold decides.
type Counts [101]float64

// Hundredth returns the place of an agreement in Counts.
func Hundredth(agreement float64) int { return min(100, int(max(0, agreement)*100+1e-6)) }

// Least is the least agreement that is asked about: below it pairs share no more wording than texts do by chance.
const Least = 0.15

// Finding is what follows from the answers.
type Finding struct {
	// Threshold has the greatest expected F1. With a probability of 90 % the best one lies from Low to High.
	Threshold float64 `json:"threshold"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	// Precision and Recall are expected at the threshold, of the pairs of the index with another text.
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	// Gain is by how much F1 is expected to be higher at the best threshold, if it were known.
	Gain float64 `json:"gain"`
	// Loss is by how much F1 may be lower than at the best threshold: with a probability of 90 % not by more.
	Loss float64 `json:"loss"`
	// More is how many more pairs of the index fold than at the present threshold, about. It is negative if fewer do.
	More      int `json:"more"`
	Same      int `json:"same"`
	Different int `json:"different"`
	Skipped   int `json:"skipped"`
	// Contradicting is how many answers contradict the others: even the threshold that fits them best gets these wrong.
	Contradicting int `json:"contradicting"`
	// Settled says that more answers would hardly change the threshold.
	Settled bool `json:"settled"`
}

// Judged is how many answers say the same or different.
func (f Finding) Judged() int { return f.Same + f.Different }

// Expected says in words what precision and recall are expected.
func (f Finding) Expected() string {
	return fmt.Sprintf("Right folds: %.0f %%. Found duplicates: %.0f %%.", 100*f.Precision, 100*f.Recall)
}

// Progress says in a sentence whether it is time to stop.
func (f Finding) Progress() string {
	switch judged := f.Judged(); {
	case judged == 0:
		return fmt.Sprintf("Judge %d pairs first.", Fewest)
	case judged < Fewest:
		return fmt.Sprintf("Judge %d more before you stop.", Fewest-judged)
	case f.sure() && f.High-f.Low > wide:
		return fmt.Sprintf("You can stop: from %.2f to %.2f all thresholds are about as good.", f.Low, f.High)
	case f.sure():
		return "You can stop: more answers would hardly change the threshold."
	case f.Settled:
		return fmt.Sprintf("You have judged %d pairs: more answers help little.", judged)
	default:
		return fmt.Sprintf("More answers may still change the threshold: go on, for up to %d more.", most-judged)
	}
}

// Contradictions says how many answers contradict the others, or nothing if none does.
func (f Finding) Contradictions() string {
	switch f.Contradicting {
	case 0:
		return ""
	case 1:
		return "1 answer contradicts the others."
	default:
		return fmt.Sprintf("%d answers contradict the others.", f.Contradicting)
	}
}

// Change says how many pairs of the index fold more or less than now, or nothing if as many do.
func (f Finding) Change() string {
	switch {
	case f.More > 0:
		return fmt.Sprintf("About %d more pairs of the index fold.", f.More)
	case f.More < 0:
		return fmt.Sprintf("About %d fewer pairs of the index fold.", -f.More)
	default:
		return ""
	}
}

// sure says that no threshold that may be the best one is much better.
func (f Finding) sure() bool { return f.Judged() >= Fewest && f.Gain <= enough && f.Loss <= tolerable }

// Place says which of the questions one is, such as 11 of about 20.
func Place(number int) string {
	switch {
	case number <= usual:
		return fmt.Sprintf("Pair %d of about %d", number, usual)
	case number <= most:
		return fmt.Sprintf("Pair %d of at most %d", number, most)
	default:
		return fmt.Sprintf("Pair %d", number)
	}
}

const (
	// slips is the probability of an answer that is not meant, or that the curve does not explain.
	slips = 0.1
	// spread is the standard deviation of the thresholds that fit around the present one, before any answer.
	spread = 0.3
	// interval is the probability that the best threshold lies outside on one side.
	interval = 0.05
	// even is how much expected F1 may differ on a plateau, in the middle of which the threshold is set.
	even = 0.001
	// enough is the gain below which it is settled.
	enough = 0.005
	// wide is the width above which a person who may stop is shown the interval.
	wide = 0.1
	// tolerable is the loss up to which it is settled.
	tolerable = 0.015
)

// Nothing is settled before Fewest pairs are judged. With most it always is: over labelled sets ten more answers raise F1 by less than 0.001.
// usual is how many are enough for most indices.
const Fewest, usual, most = 10, 20, 30

// widths are the values of s on the grid. quantiles are those of t at which pairs are asked, in turn.
var (
	widths    = []float64{0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.095}
	quantiles = []float64{0.5, 0.4, 0.6}
)

// curve is a point of the grid: a logistic curve with its middle t and its width s.
type curve struct {
	t, s   float64
	log    float64 // of how probable it is, up to a constant
	weight float64
	same   Counts // P(same) at the middle of each hundredth
}

func (c *curve) at(agreement float64) float64 { return 1 / (1 + math.Exp(-(agreement-c.t)/c.s)) }

// Session is one conversation about one index.
type Session struct {
	present float64 // what fold now
	guess   float64 // around which thresholds are likely before any answer
	pairs   []Pair
	places  map[[2]string]int
	passed  map[int]bool // places of pairs that can't be shown
	counts  Counts
	answers []Answer
	curves  []curve
}

// New begins a conversation: with candidates in an order that has nothing to do with their agreement, the counts of the index, and the present threshold.
func New(pairs []Pair, counts Counts, present float64) *Session {
	s := &Session{present: present, guess: present, pairs: pairs, places: map[[2]string]int{}, passed: map[int]bool{}, counts: counts}
	for i, p := range pairs {
		s.places[key(p.A, p.B)] = i
	}
	clear(s.counts[:Hundredth(Least)])
	for t := Hundredth(Least); t <= 100; t++ {
		for _, width := range widths {
			c := curve{t: float64(t) / 100, s: width}
			for i := range c.same {
				c.same[i] = c.at((float64(i) + 0.5) / 100)
			}
			s.curves = append(s.curves, c)
		}
	}
	s.learn()
	return s
}

// SetPresent changes the threshold that a [Finding] is compared with.
func (s *Session) SetPresent(threshold float64) { s.present = threshold }

// key names a pair, whichever of the two comes first.
func key(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// Find returns the candidate of two ids.
func (s *Session) Find(a, b string) (Pair, bool) {
	place, known := s.places[key(a, b)]
	if !known {
		return Pair{}, false
	}
	return s.pairs[place], true
}

// Answer takes an answer to a candidate. It replaces an earlier answer to the same pair.
func (s *Session) Answer(a Answer) error {
	if !slices.Contains([]Verdict{Same, Different, Skip}, a.Verdict) {
		return fmt.Errorf("verdict: %.40q is unknown: use %s, %s or %s", a.Verdict, Same, Different, Skip)
	}
	if _, known := s.Find(a.A, a.B); !known {
		return fmt.Errorf("a, b: %.80q and %.80q are no pair that can be asked about", a.A, a.B)
	}
	before := len(s.answers)
	s.answers = slices.DeleteFunc(s.answers, func(b Answer) bool { return key(a.A, a.B) == key(b.A, b.B) })
	if len(s.answers) < before {
		s.learn()
	}
	s.answers = append(s.answers, a)
	s.take(a)
	s.weigh()
	return nil
}

// Pass leaves a pair out of what is asked, without an answer: it can't be shown any more.
func (s *Session) Pass(p Pair) { s.passed[s.places[key(p.A, p.B)]] = true }

// TakeBack drops the last answer and returns it, or false if there was no answer.
func (s *Session) TakeBack() (last Answer, ok bool) {
	if len(s.answers) == 0 {
		return Answer{}, false
	}
	last = s.answers[len(s.answers)-1]
	s.answers = s.answers[:len(s.answers)-1]
	s.learn()
	return last, true
}

// Answers returns the answers, the oldest first.
func (s *Session) Answers() []Answer { return slices.Clone(s.answers) }

// learn weighs the curves by all answers.
func (s *Session) learn() {
	for i := range s.curves {
		off := (s.curves[i].t - s.guess) / spread
		s.curves[i].log = -off * off / 2
	}
	for _, a := range s.answers {
		s.take(a)
	}
	s.weigh()
}

// take adds an answer to the logarithms.
func (s *Session) take(a Answer) {
	pair, _ := s.Find(a.A, a.B)
	for i := range s.curves {
		c := &s.curves[i]
		same := slips + (1-2*slips)*c.at(pair.Agreement)
		switch a.Verdict {
		case Same:
			c.log += math.Log(same)
		case Different:
			c.log += math.Log(1 - same)
		}
	}
}

// weigh makes weights of the logarithms. The greatest is taken away first: thousands of answers would leave nothing but zeros.
func (s *Session) weigh() {
	highest, sum := math.Inf(-1), 0.0
	for i := range s.curves {
		highest = max(highest, s.curves[i].log)
	}
	for i := range s.curves {
		s.curves[i].weight = math.Exp(s.curves[i].log - highest)
		sum += s.curves[i].weight
	}
	for i := range s.curves {
		s.curves[i].weight /= sum
	}
}

// middle returns a quantile of t.
func (s *Session) middle(quantile float64) float64 {
	sum := 0.0
	for i := range s.curves { // in ascending order of t
		if sum += s.curves[i].weight; sum >= quantile {
			return s.curves[i].t
		}
	}
	return 1
}

// Penalties, in agreement: what a candidate loses for each earlier question about one of its documents, one of their groups, or a pair of its length.
const (
	perDocument, perGroup, perLength = 0.1, 0.03, 0.002
	// near is what counts as no distance.
	near = 0.02
)

// Next returns the pair to ask about next, or false if no candidate is left.
func (s *Session) Next() (Pair, bool) {
	documents, groups, lengths, asked := map[string]float64{}, map[int]float64{}, map[int]float64{}, map[int]bool{}
	judged := 0
	for _, a := range s.answers {
		place := s.places[key(a.A, a.B)]
		pair := &s.pairs[place]
		asked[place] = true
		documents[pair.A]++
		documents[pair.B]++
		groups[pair.Groups[0]]++
		if pair.Groups[1] != pair.Groups[0] {
			groups[pair.Groups[1]]++
		}
		lengths[lengthOf(pair.Shingles)]++
		if a.Verdict != Skip {
			judged++
		}
	}
	target := s.middle(quantiles[judged%len(quantiles)])
	best, least := -1, math.Inf(1)
	for i := range s.pairs {
		p := &s.pairs[i]
		if p.Agreement < Least || asked[i] || s.passed[i] {
			continue
		}
		cost := max(0, math.Abs(p.Agreement-target)-near)
		if cost >= least {
			continue
		}
		cost += perDocument*(documents[p.A]+documents[p.B]) + perGroup*(groups[p.Groups[0]]+groups[p.Groups[1]]) + perLength*lengths[lengthOf(p.Shingles)]
		if cost < least {
			best, least = i, cost
		}
	}
	if best < 0 {
		return Pair{}, false
	}
	return s.pairs[best], true
}

// lengthOf is the class of a length.
func lengthOf(shingles int) int {
	class, _ := slices.BinarySearch([]int{60, 150, 400}, shingles+1)
	return class
}

// Finding returns what follows from the answers so far.
func (s *Session) Finding() Finding {
	var f Finding
	for _, a := range s.answers {
		switch a.Verdict {
		case Same:
			f.Same++
		case Different:
			f.Different++
		default:
			f.Skipped++
		}
	}
	var f1, precision, recall, best Counts // expected at each threshold; and how probably it is the best one
	top, highests := 0.0, make([]float64, len(s.curves))
	values := make([]Counts, len(s.curves)) // F1 of each curve at each threshold
	for i := range s.curves {
		c := &s.curves[i]
		all, right, said := 0.0, 0.0, 0.0
		for j, n := range s.counts {
			all += n * c.same[j]
		}
		highestF1, at := -1.0, 100
		for j := 100; j >= Hundredth(Least); j-- {
			right += s.counts[j] * c.same[j]
			said += s.counts[j]
			value := share(2*right, said+all)
			values[i][j] = value
			f1[j] += c.weight * value
			precision[j] += c.weight * share(right, said)
			recall[j] += c.weight * share(right, all)
			if value > highestF1 {
				highestF1, at = value, j
			}
		}
		highests[i] = highestF1
		top += c.weight * highestF1
		best[at] += c.weight
	}
	highest := Hundredth(Least)
	for j := range f1 {
		if f1[j] > f1[highest] {
			highest = j
		}
	}
	from, to := highest, highest
	for from > Hundredth(Least) && f1[from-1] >= f1[highest]-even {
		from--
	}
	for to < 100 && f1[to+1] >= f1[highest]-even {
		to++
	}
	low, high, sum := 0, 100, 0.0
	for j, weight := range best {
		if sum += weight; sum <= interval {
			low = j + 1
		}
		if sum >= 1-interval {
			high = min(high, j)
		}
	}
	low, high = min(low, highest), max(high, highest)
	at := min(max((from+to)/2, low), high)
	f.Threshold, f.Low, f.High = float64(at)/100, float64(low)/100, float64(high)/100
	f.Precision, f.Recall, f.Gain = precision[at], recall[at], max(0, top-f1[at])
	f.Loss = s.loss(at, values, highests)
	f.Contradicting = s.contradicting()
	more := 0.0
	for j, n := range s.counts {
		if j >= at {
			more += n
		}
		if j >= Hundredth(s.present) {
			more -= n
		}
	}
	f.More = int(math.Round(more))
	f.Settled = f.sure() || f.Judged() >= most
	return f
}

// loss returns by how much F1 at a threshold may be below the highest F1. It leaves out the worst curves, which together have a probability of 1 in 10.
func (s *Session) loss(at int, values []Counts, highests []float64) float64 {
	order := make([]int, len(s.curves))
	for i := range order {
		order[i] = i
	}
	lost := func(i int) float64 { return highests[i] - values[i][at] }
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(lost(j), lost(i)) })
	sum := 0.0
	for _, i := range order {
		if sum += s.curves[i].weight; sum > 2*interval {
			return lost(i)
		}
	}
	return 0
}

// contradicting returns how many answers are wrong at the threshold that fits them best.
func (s *Session) contradicting() int {
	var answers []Answer
	for _, a := range s.answers {
		if a.Verdict != Skip {
			answers = append(answers, a)
		}
	}
	agreement := func(a Answer) float64 { p, _ := s.Find(a.A, a.B); return p.Agreement }
	slices.SortStableFunc(answers, func(a, b Answer) int { return cmp.Compare(agreement(a), agreement(b)) })
	wrong := 0 // at a threshold below all: those that are different
	for _, a := range answers {
		if a.Verdict == Different {
			wrong++
		}
	}
	least := wrong
	for i, a := range answers { // at a threshold just above it
		if a.Verdict == Different {
			wrong--
		} else {
			wrong++
		}
		if i == len(answers)-1 || agreement(a) < agreement(answers[i+1]) {
			least = min(least, wrong)
		}
	}
	return least
}

// share is part of a whole, and 1 of nothing.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return 1
	}
	return part / whole
}

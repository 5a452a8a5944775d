package sketch

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Estimate is a value estimated from two sketches.
type Estimate struct {
	Value float64
	// Error is the standard error: in two cases of three the truth is no farther away. 0 where the value is exact.
	Error float64
}

// comparable reports whether two sketches can be compared: same scheme, something to compare, and of vectors the same dimensions.
func (s *Sketch) comparable(t *Sketch) bool {
	return s.Scheme == t.Scheme && s.Form == t.Form && s.Bits == t.Bits && s.Shingles != 0 && t.Shingles != 0 &&
		(s.Form != VectorSides || s.Shingles == t.Shingles) &&
		(s.Form == Values || s.Form == Sample || len(s.Payload) == len(t.Payload) && len(s.Payload) > 0)
}

// Agreement estimates |A∩B| / |A∪B| of the two documents' sets from their sketches: the number that a threshold is compared with. The estimators:
//
//   - fast_similarity, permutations: the share of equal positions, less those that are equal by chance in the b bits kept of each
//     (Li and König 2010).
//   - m_smallest: the share of common values among the m smallest of the union (Broder 1997; not among the m of either set, which would
//     be biased). Exact where neither set has more than m elements.
//   - zero_mod_m: the share of common values among all that were kept. Not comparable where neither sketch kept any.
//   - simhash: from the angle between the two sets and their sizes. The angle is unbiased, and what is made of it nearly so: with
//     128 positions it is off by less than a quarter of the standard error.
//   - hamming: the share of equal bits.
//   - vectors: the cosine of the angle between the two, from the share of equal sides (Charikar 2002). Below 0 if the angle is obtuse.
//
// The first three are unbiased, so they are sometimes a little below 0 if the truth is near 0. It reports false if the two are not
// comparable.
func (s *Sketch) Agreement(t *Sketch) (agreement float64, comparable bool) {
	// The usual case is [Sketch.estimate] for positions of 8 bits, which no other form has, with one division: (equal/k - 1/256) / (1 - 1/256).
	k := len(s.Payload)
	if s.Bits == 8 && t.Bits == 8 && s.Scheme == t.Scheme && k == len(t.Payload) && k > 0 && s.Shingles != 0 && t.Shingles != 0 {
		return float64(256*equalBytes(s.Payload, t.Payload)-k) / float64(255*k), true
	}
	e, ok := s.estimate(t)
	return e.Value, ok
}

// StandardError returns the standard error of [Sketch.Agreement]: in two cases of three the truth is no farther away. It is 0 where the
// agreement is exact and where the two are not comparable. For fast_similarity and permutations it is that of independent positions, an
// upper bound for fast_similarity; there it is never 0, since half a position is added to either side.
func (s *Sketch) StandardError(t *Sketch) float64 {
	e, _ := s.estimate(t)
	return e.Error
}

// estimate returns the agreement with its standard error.
func (s *Sketch) estimate(t *Sketch) (Estimate, bool) {
	if !s.comparable(t) {
		return Estimate{}, false
	}
	switch s.Form {
	case Values, Sample:
		return s.fromValues(t)
	case Sides:
		return s.fromSides(t), true
	case VectorSides:
		angle, _ := s.angle(t)
		return Estimate{Value: math.Cos(angle.Value), Error: math.Sin(max(angle.Value, angle.Error)) * angle.Error}, true
	case Ready:
		return Estimate{Value: 1 - float64(differentBits(s.Payload, t.Payload))/float64(8*len(s.Payload))}, true
	}
	k := 8 * len(s.Payload) / int(s.Bits)
	equal := equalPositions(s.Payload, t.Payload, int(s.Bits))
	values := 1 << s.Bits // of a position: one pair of positions in this many is equal by chance
	return Estimate{
		Value: float64(values*equal-k) / float64((values-1)*k),
		Error: shareError(equal, k) * float64(values) / float64(values-1),
	}, true
}

// shareError is the standard error of count/n for n independent values. Half a value is added to either side.
func shareError(count, n int) float64 {
	share := (float64(count) + 0.5) / float64(n+1)
	return math.Sqrt(share * (1 - share) / float64(n))
}

// Containment estimates |A∩B| / |A|, the share of the receiver's set that is in t's. The estimators:
//
//   - m_smallest, zero_mod_m: the share of the receiver's values that t has too, among those that t would show if it had them
//     (Broder, "On the resemblance and containment of documents", 1997: |V(A)∩V(B)| / |V(A)|; there for 0 mod m alone, here also for
//     the m smallest, since a cut list is complete up to its last value, which itself does not count). Unbiased. Exactly 1 if all of A is in B. Exact if neither
//     set of m_smallest has more than m elements. Not comparable if no value is left to compare.
//   - the others: from the resemblance and the two sizes. Error by the delta method: that of the resemblance times
//     (|A|+|B|) / (|A|·(1+r)²), so about |B|/|A| times as large for a small excerpt of a large text. A value above 1 is cut to 1, so
//     if all of A is in B the mean is about 0.4 standard errors below 1.
//
// It reports false for sketches that are not comparable, and for ready values and vectors, which are not sets.
func (s *Sketch) Containment(t *Sketch) (Estimate, bool) {
	if s.Form == Values || s.Form == Sample {
		if !s.comparable(t) {
			return Estimate{}, false
		}
		return s.within(t)
	}
	r, ok := s.estimate(t)
	if !ok || s.Form == Ready || s.Form == VectorSides {
		return Estimate{}, false
	}
	ratio := (float64(s.Shingles) + float64(t.Shingles)) / float64(s.Shingles)
	// Below 0 the slope stays that at 0: the curve itself has a pole at -1, and with one bit a position an estimate can get there.
	union := 1 + max(0, r.Value)
	return Estimate{
		Value: min(1, ratio*r.Value/union),
		Error: ratio * r.Error / (union * union),
	}, true
}

// within is Containment of lists of values.
func (s *Sketch) within(t *Sketch) (Estimate, bool) {
	looked, both := overlap(s.Payload, t.Payload, t.Cut)
	if looked == 0 {
		return Estimate{}, false
	}
	e := Estimate{Value: float64(both) / float64(looked), Error: shareError(both, looked)}
	if s.Form == Values { // each element counts once: the error is 0 if all were compared
		e.Error *= math.Sqrt(max(0, 1-float64(looked)/float64(s.Shingles)))
	}
	return e, true
}

// SameText reports whether both are sketches of the same text: same scheme, same fingerprint.
func (s *Sketch) SameText(t *Sketch) bool {
	return s.Scheme == t.Scheme && s.Fingerprint == t.Fingerprint && s.Shingles != 0 && t.Shingles != 0
}

// SameWords reports whether both are sketches of the same words in the same order, as far as sketches tell: all that they say of the two
// texts but the fingerprint is equal. Case, accents, spaces and punctuation may differ. A sample ([ZeroModM]) says too little, so there the
// fingerprints must be equal.
func (s *Sketch) SameWords(t *Sketch) bool {
	if s.Form == Sample || s.Form == Ready || s.Form == VectorSides {
		return s.SameText(t)
	}
	return s.comparable(t) && s.Shingles == t.Shingles && s.Words == t.Words && s.Numbers == t.Numbers && bytes.Equal(s.Payload, t.Payload)
}

// WordsKey returns a hash that is equal for the same words ([Sketch.SameWords]), and hardly ever for others.
func (s *Sketch) WordsKey() uint64 {
	var numbers [12]byte
	binary.LittleEndian.PutUint32(numbers[:], s.Shingles)
	binary.LittleEndian.PutUint32(numbers[4:], s.Words)
	binary.LittleEndian.PutUint32(numbers[8:], s.Numbers)
	d := xxhash.New()
	_, _ = d.Write(numbers[:])
	_, _ = d.Write(s.Payload)
	return d.Sum64()
}

func (s *Sketch) fromValues(t *Sketch) (Estimate, bool) {
	looked, both := merge(s.Payload, t.Payload, s.Cut, t.Cut)
	if looked == 0 {
		return Estimate{}, false
	}
	e := Estimate{Value: float64(both) / float64(looked)}
	if s.Form == Values && !s.Cut && !t.Cut {
		return e, true
	}
	e.Error = shareError(both, looked)
	// A sample without repetition varies less than independent values. Those of zero_mod_m may be drawn once in every repeat.
	union := (float64(s.Shingles) + float64(t.Shingles)) / (1 + e.Value)
	if s.Form == Values && float64(looked) < union {
		e.Error *= math.Sqrt(1 - float64(looked)/union)
	}
	return e, true
}

// angle estimates the angle between two sets or vectors under [SimHash], in radians: 0 for equal sets, π/2 for disjoint ones. It reports
// false for sketches of other families and where the two are not comparable.
func (s *Sketch) angle(t *Sketch) (Estimate, bool) {
	if s.Form != Sides && s.Form != VectorSides || !s.comparable(t) {
		return Estimate{}, false
	}
	bits, differ := 8*len(s.Payload), differentBits(s.Payload, t.Payload)
	return Estimate{Value: math.Pi * float64(differ) / float64(bits), Error: math.Pi * shareError(differ, bits)}, true
}

// fromSides goes from the angle to the resemblance: the cosine of the angle is |A∩B| / sqrt(|A|·|B|).
func (s *Sketch) fromSides(t *Sketch) Estimate {
	angle, _ := s.angle(t)
	a, b := float64(s.Shingles), float64(t.Shingles)
	both := math.Cos(angle.Value) * math.Sqrt(a*b)
	both = min(both, a, b)
	union := a + b - both
	slope := math.Sqrt(a*b) * math.Sin(max(angle.Value, angle.Error)) * (a + b) / (union * union)
	return Estimate{Value: both / union, Error: slope * angle.Error}
}

// equalPositions counts the positions of the given width in bits that are equal.
func equalPositions(a, b []byte, width int) int {
	if width == 8 {
		return equalBytes(a, b)
	}
	equal := 8 * len(a) / width
	for i, x := range a {
		y := x ^ b[i]
		switch width {
		case 2:
			y = (y | y>>1) & 0x55
		case 4:
			y |= y >> 2
			y = (y | y>>1) & 0x11
		}
		equal -= bits.OnesCount8(y)
	}
	return equal
}

// equalBytes counts the bytes that are equal, eight at a time. Eight such words share one count of ones, each moved to a bit of its own.
func equalBytes(a, b []byte) int {
	equal := len(a)
	for len(a) >= 64 && len(b) >= 64 {
		p, q := (*[64]byte)(a), (*[64]byte)(b)
		ones := differs(p[0:8], q[0:8]) | differs(p[8:16], q[8:16])>>1 | differs(p[16:24], q[16:24])>>2 | differs(p[24:32], q[24:32])>>3 |
			differs(p[32:40], q[32:40])>>4 | differs(p[40:48], q[40:48])>>5 | differs(p[48:56], q[48:56])>>6 | differs(p[56:64], q[56:64])>>7
		equal -= bits.OnesCount64(ones)
		a, b = a[64:], b[64:]
	}
	for len(a) >= 8 && len(b) >= 8 {
		equal -= bits.OnesCount64(differs(a, b))
		a, b = a[8:], b[8:]
	}
	return equal
}

// differs has the top bit of each of eight bytes set where two slices differ.
func differs(a, b []byte) uint64 {
	x := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b)
	return (x&sevens + sevens | x) & tops
}

func differentBits(a, b []byte) int {
	n := 0
	for i, x := range a {
		n += bits.OnesCount8(x ^ b[i])
	}
	return n
}

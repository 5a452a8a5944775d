package calibrate

import (
	"math"
	"slices"

	"github.com/neardup/sidecar/sketch"
)

// Precision says how exact the agreements are of sketches of a scheme, for documents about as large as those at hand.
type Precision struct {
	scheme sketch.Scheme
	middle int // shingles of the document in the middle
}

// NewPrecision returns the precision for documents of that many shingles each.
func NewPrecision(s sketch.Scheme, shingles []uint32) Precision {
	p := Precision{scheme: s}
	if len(shingles) > 0 {
		p.middle = int(slices.Sorted(slices.Values(shingles))[len(shingles)/2])
	}
	return p
}

// Counts reports whether agreements are counted in positions that agree or not.
func (p Precision) Counts() bool {
	switch p.scheme.Family {
	case sketch.FastSimilarity, sketch.Permutations, sketch.SimHash:
		return true
	case sketch.MSmallest:
		return !p.exact()
	}
	return false
}

// exact reports whether most sketches hold all that their documents have.
func (p Precision) exact() bool {
	return p.scheme.Family == sketch.MSmallest && p.middle <= p.scheme.Positions
}

// Matching is how probable it is that a position agrees in the sketches of two documents of a resemblance, of about the same
// size. What b bits keep of a position agrees by chance as well; two sets lie on the same side of a plane by the angle between
// them.
func (p Precision) Matching(r float64) float64 {
	switch p.scheme.Family {
	case sketch.FastSimilarity, sketch.Permutations:
		return r + (1-r)/float64(int(1)<<p.scheme.Bits)
	case sketch.SimHash:
		return 1 - math.Acos(min(1, 2*r/(1+r)))/math.Pi
	}
	return r
}

// Deviation is the standard error of an agreement at a resemblance: that of so many independent positions, times what a
// position's share says of the resemblance.
func (p Precision) Deviation(r float64) float64 {
	const step = 1e-4
	s := p.scheme
	n := float64(s.Positions)
	switch {
	case p.exact():
		return 0
	case s.Family == sketch.ZeroModM: // what is kept of a document in the middle
		n = float64(max(1, min(s.Positions, p.middle/max(1, s.Modulus)*max(1, s.Repeats))))
	}
	low, high := max(0, r-step), min(1, r+step)
	q, slope := p.Matching(r), (p.Matching(high)-p.Matching(low))/(high-low)
	return math.Sqrt(max(0, q*(1-q)/n)) / slope
}

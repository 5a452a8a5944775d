package measured

import (
	"math"
	"testing"
)

// TestExponent holds the fit to costs whose power is known.
func TestExponent(t *testing.T) {
	for _, power := range []float64{0.5, 1, 2} {
		var points []Point
		for _, n := range []float64{1e6, 3e6, 1e7, 1e8} {
			points = append(points, Point{n, 7e-6 * math.Pow(n*math.Log(n), power)})
		}
		if got := Exponent(points); math.Abs(got-power) > 1e-9 {
			t.Errorf("the power %v is taken for %v", power, got)
		}
	}
}

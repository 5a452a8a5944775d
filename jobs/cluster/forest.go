package cluster

import "sync/atomic"

// Forest holds the connected components of numbers as they are joined: each number leads to a lesser one of its component, or is
// the least. Which components come out does not depend on the order in which numbers are joined. It is safe for concurrent use.
type Forest []atomic.Uint32

// NewForest returns a forest of n numbers, each alone.
func NewForest(n int) Forest {
	f := make(Forest, n)
	for i := range f {
		f[i].Store(uint32(i))
	}
	return f
}

// Of returns the least number of a number's component.
func (f Forest) Of(i uint32) uint32 {
	for {
		p := f[i].Load()
		if p == i {
			return i
		}
		g := f[p].Load()
		if g != p {
			f[i].CompareAndSwap(p, g) // shortens the way; that another one did so first does no harm
		}
		i = g
	}
}

// Join makes one component of those of two numbers.
func (f Forest) Join(a, b uint32) {
	for {
		a, b = f.Of(a), f.Of(b)
		if a == b {
			return
		}
		if a > b {
			a, b = b, a
		}
		if f[b].CompareAndSwap(b, a) { // only while b is still the least of its own
			return
		}
	}
}

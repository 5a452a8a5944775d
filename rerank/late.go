package rerank

import "errors"

// ErrLate: the time for the page was over before it was known.
var ErrLate = errors.New("rerank: it takes too long")

// betweenLooks is how many hits are compared between two looks at the time. One hit against ten thousand leaders takes some 0.5 ms.
const betweenLooks = 8

// pace looks at the time while hits are compared.
type pace struct {
	late func() bool // nil: there is all the time
	over bool
}

// out reports whether the time is over by the hit of a rank.
func (p *pace) out(rank int) bool {
	if !p.over && p.late != nil && rank%betweenLooks == 0 {
		p.over = p.late()
	}
	return p.over
}

package rerank

import "errors"

// ErrLate means that [Page.Deadline] ended the search for the page.
var ErrLate = errors.New("rerank: the time for the page is over")

// Deadline says when the time for something is over. A nil one never comes.
type Deadline interface {
	// Late reports whether it is over: once it is, it stays so. It is asked wherever work can grow.
	Late() bool
}

// betweenLooks is how many hits are compared between two looks at the Deadline. One hit against ten thousand leaders takes some 0.5 ms.
const betweenLooks = 8

// pace ends the comparing of hits when the time is over.
type pace struct {
	Deadline // nil: there is all the time
	over     bool
}

// expired reports whether the time is over when the hit of a rank comes.
func (p *pace) expired(rank int) bool {
	if !p.over && p.Deadline != nil && rank%betweenLooks == 0 {
		p.over = p.Late()
	}
	return p.over
}

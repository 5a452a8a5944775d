package rerank

import "errors"

// ErrLate means that [Page.Late] ended the search for the page.
var ErrLate = errors.New("rerank: the time for the page is over")

// betweenLooks is how many hits are compared between two calls of Page.Late. One hit against ten thousand leaders takes some 0.5 ms.
const betweenLooks = 8

// pace ends the comparing of hits when the time is over.
type pace struct {
	page *Page // nil: there is all the time
	over bool
}

// expired reports whether the time is over when the hit of a rank comes.
func (p *pace) expired(rank int) bool {
	if !p.over && p.page != nil && p.page.Late != nil && rank%betweenLooks == 0 {
		p.over = p.page.Late()
	}
	return p.over
}

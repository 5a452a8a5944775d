package adapters

import (
	"errors"

	"github.com/neardup/sidecar/rerank"
)

// ErrLate: the time for collapsing a search was over before its page was known, and no reply that is at hand holds the client's own page.
var ErrLate = rerank.ErrLate

// MaxSearches is how many searches one request may hold to be collapsed. Each of them is kept in some 4 kB while they are answered.
const MaxSearches = 1000

// BetweenLooks is how many hits a dialect judges between two looks at the time, beside the one before each sketch that is computed.
const BetweenLooks = 4

// Struck reports whether the time for the search is over.
func (p Plan) Struck() bool { return p.Deadline != nil && p.Deadline.Late() }

// WasLate reports whether a search of the answer was given up because the time was over.
func (a *Answer) WasLate() bool {
	for _, o := range a.Outcomes {
		if o.Reason == ReasonDeadline {
			return true
		}
	}
	return false
}

// IsLate reports whether an error says that the time was over.
func IsLate(err error) bool { return errors.Is(err, ErrLate) }

package typesense

import (
	"cmp"
	"errors"

	"github.com/neardup/sidecar/adapters"
)

// A hybrid search is one for words and for the neighbours of a vector: the client's (vector_query), or one that the engine makes of the words where query_by names
// a field of embeddings. Releases from 0.25 on fuse the two lists by rank; 0.24 refuses such a search. Of the words they rank the first fusedRanks, and look for
// k neighbours. Where the search names no k, that is fusedNeighbours. If a page ends later, both numbers grow to its end, which can change the order of what is
// before. So no rank beyond them is read, k is written down, and a page can be shorter than the client asks for. (Source: the engine's Index::search, in 0.25 to 30.)
const (
	fusedRanks      = 250
	fusedNeighbours = 100
)

// fuse notes that no more than the first ranks of a fused list are read. It returns why the search is left alone, or nothing.
func (q *query) fuse(ranks int) adapters.Reason {
	a := &q.asked
	if a.From+a.Size > ranks {
		return adapters.ReasonRankWindow
	}
	q.fuses, a.Scope.Window = true, min(a.Scope.Window, ranks)
	if size := q.fixedSize(); size > 0 {
		ranks = ranks / size * size
	}
	if a.Limit > ranks {
		a.Limit, a.Shorter = ranks, adapters.ReasonRankWindow
	}
	return ""
}

// vectorQuery returns the vector query to send in a reading. It is empty if the search has no vector query, or if the client's own is sent unchanged.
func (q *query) vectorQuery(r *adapters.Reading) string {
	switch k := q.neighbourCount(r); {
	case k > 0:
		return q.vector.raised(k)
	case q.fuses && q.vector != nil:
		return q.vector.raised(cmp.Or(q.vector.own, fusedNeighbours))
	}
	return ""
}

// errFused: the list of a search that names no vector is a fused one.
var errFused = errors.New("the engine has fused two lists")

// checkKind returns an error if the engine's list is of another kind than the search was taken for.
func (q *query) checkKind(res *result) error {
	neighbours, fused := res.holdsNeighbours()
	switch {
	case !neighbours && !fused, q.asked.Neighbours != nil, q.fuses && (fused || q.vector != nil && q.vector.own > 0):
		return nil
	case !fused: // of neighbours alone: the list differs with the page
		return adapters.Alone{Reason: adapters.ReasonVector, Searched: true}
	case q.asked.From+q.asked.Size > fusedNeighbours:
		return adapters.Alone{Reason: adapters.ReasonRankWindow, Searched: true}
	case q.asked.Counting != nil && q.asked.Size == 0:
		return adapters.Alone{Reason: adapters.ReasonUncountable, Searched: true}
	}
	return errFused
}

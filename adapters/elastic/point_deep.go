package elastic

import (
	"errors"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// In a point in time ranks beyond those that the engine lets one read by their number are read in pieces: the ranks up to there, some ranks
// in front of there to find a cursor among them, and the ranks behind that cursor.

// bordering is among how many ranks a cursor is looked for: one whose sort values the next rank does not share, so that the
// engine goes on right behind it.
const bordering = 1000

// scoreSort is the order of scores with sort values: engines tell none where the score is all that counts. No document has the
// other field, so that ties are in the same order.
var scoreSort = []byte(`["_score",{"neardup_none":{"order":"asc","unmapped_type":"long"}}]`)

var errNoBorder = errors.New("the ranks at the engine's limit can't be told apart")

// deep reports whether a reading goes beyond what the engine lets one read.
func deep(r *adapters.Reading) bool { return r.To > maxResultWindow && !r.Picked }

// beyond reports whether no rank up to the limit is wanted.
func beyond(r *adapters.Reading) bool { return r.From >= maxResultWindow }

// requestDeep returns the next request of a reading in pieces: for the ranks up to the limit, for those among which a cursor is looked for, and for
// those behind it.
func (q *pointed) requestDeep(r *adapters.Reading, replies []*adapters.Reply) ([]*adapters.Request, error) {
	piece := *r
	piece.Ranks = nil
	switch len(replies) {
	case 0:
		if beyond(r) {
			piece.From = 0
		}
		piece.To = piece.From + max(1, maxResultWindow-r.From) // without a hit there is no best score
		return q.request(&piece, nil, false)
	case 1:
		list, err := hitsOf(replies[0].Body)
		if err != nil || !beyond(r) && len(list) < maxResultWindow-r.From { // the list ends there
			return nil, err
		}
		return q.request(&adapters.Reading{From: maxResultWindow - bordering, To: maxResultWindow}, q.sorting(q.losesUncounted()), true)
	case 2:
		cursor, rank, err := border(replies[1].Body)
		if err != nil {
			return nil, err
		}
		if r.To-rank > maxResultWindow {
			return nil, errNoBorder
		}
		piece.From, piece.To = 0, r.To-rank
		return q.request(&piece, slices.Concat([]jsonedit.Member{{Key: "search_after", Value: cursor}}, q.sorting(true)), true)
	}
	return nil, nil
}

// joinedDeep returns the pieces of a reading as one reply.
func joinedDeep(r *adapters.Reading, replies []*adapters.Reply) ([]byte, error) {
	list, err := hitsOf(replies[0].Body)
	if err != nil {
		return nil, err
	}
	if beyond(r) {
		list = nil
	}
	if len(replies) > 1 {
		_, rank, err := border(replies[1].Body)
		if err != nil {
			return nil, err
		}
		rest, err := hitsOf(replies[2].Body)
		if err != nil {
			return nil, err
		}
		known := max(r.From, maxResultWindow) - rank // or not wanted
		list = append(list, rest[min(known, len(rest)):]...)
	}
	return withHits(replies[0].Body, list)
}

// sorting is what has hits come with their sort values, and be counted or not.
func (q *pointed) sorting(counted bool) []jsonedit.Member {
	edits := []jsonedit.Member{{Key: "track_total_hits", Value: strconv.AppendBool(nil, counted)}}
	if q.scored {
		edits = append(edits, jsonedit.Member{Key: "sort", Value: scoreSort},
			jsonedit.Member{Key: "track_scores", Value: []byte("true")}) // without, there is no best score
	}
	return edits
}

// border returns a cursor among the last ranks up to the limit, and the first rank behind it.
func border(reply []byte) (cursor []byte, rank int, err error) {
	list, err := hitsOf(reply)
	if err != nil {
		return nil, 0, err
	}
	if len(list) < bordering {
		return nil, 0, adapters.ErrMoved
	}
	for at := len(list) - 2; at >= 0; at-- {
		if canonical(sortOf(list[at])) != canonical(sortOf(list[at+1])) {
			return sortOf(list[at]), maxResultWindow - bordering + at + 1, nil
		}
	}
	return nil, 0, errNoBorder
}

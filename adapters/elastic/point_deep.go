package elastic

import (
	"errors"
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
func (r *reader) deep() bool { return r.To > maxResultWindow && !r.picked }

// beyond reports whether no rank up to the limit is wanted.
func (r *reader) beyond() bool { return r.From >= maxResultWindow }

// deepQueries returns the next piece of a reading, none where all are there.
func (r *reader) deepQueries(pieces []adapters.QueryResult) ([]adapters.Query, error) {
	q, piece := r.q, *r
	piece.Reading = adapters.Reading{From: r.From, To: r.To, Sources: r.Sources, Frame: r.Frame}
	var cursor []byte
	switch len(pieces) {
	case 0:
		if r.beyond() {
			piece.From = 0
		}
		piece.To = piece.From + max(1, maxResultWindow-r.From) // without a hit there is no best score
	case 1:
		list, err := hitsOf(pieces[0].Raw())
		if err != nil || !r.beyond() && len(list) < maxResultWindow-r.From { // the list ends before
			return nil, err
		}
		piece = reader{q: q, Reading: adapters.Reading{From: maxResultWindow - bordering, To: maxResultWindow}, source: sourceOf(nil)}
	case 2:
		var rank int
		var err error
		if cursor, rank, err = border(pieces[1].Raw()); err != nil {
			return nil, err
		}
		if r.To-rank > maxResultWindow {
			return nil, errNoBorder
		}
		piece.From, piece.To = 0, r.To-rank
	default:
		return nil, nil
	}
	queries, err := piece.Queries(nil)
	if err != nil {
		return nil, err
	}
	query := queries[0]
	set := func(key string, value []byte) {
		if err == nil {
			query.Body, err = jsonedit.Set(query.Body, key, value)
		}
	}
	if sorted := len(pieces) > 0; sorted {
		if cursor != nil {
			set("search_after", cursor)
		}
		set("track_total_hits", strconv.AppendBool(nil, cursor != nil || q.losesUncounted()))
		query.Void = append(query.Void, "track_total_hits", "rest_total_hits_as_int")
		if q.point.byScore {
			set("sort", scoreSort)
			set("track_scores", []byte("true")) // without, there is no best score
			query.Void = append(query.Void, "sort")
		}
	}
	if err == nil {
		query, err = q.inPoint(query, len(pieces) > 0)
	}
	return []adapters.Query{query}, err
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

// deepReply returns the pieces of a reading as one reply.
func (r *reader) deepReply(pieces []adapters.QueryResult) ([]byte, error) {
	first := pieces[0].Raw()
	list, err := hitsOf(first)
	if err != nil {
		return nil, err
	}
	if r.beyond() {
		list = nil
	}
	if len(pieces) > 2 {
		_, rank, err := border(pieces[1].Raw())
		if err != nil {
			return nil, err
		}
		rest, err := hitsOf(pieces[2].Raw())
		if err != nil {
			return nil, err
		}
		known := max(r.From, maxResultWindow) - rank // or not wanted
		list = append(list, rest[min(known, len(rest)):]...)
	}
	return withHits(first, list)
}

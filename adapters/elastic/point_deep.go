package elastic

import (
	"errors"
	"strconv"

	"github.com/neardup/sidecar/adapters"
)

// deepReading is one reading of ranks beyond those that the engine lets one read by their number, in pieces: the ranks up to
// there, some ranks in front of there to find a cursor among them, and the ranks behind that cursor.
type deepReading struct {
	whole    *adapters.Request // as the search asks for it
	from, to int
	step     deepStep
	first    *adapters.Reply // the ranks up to the limit, or the list's first where they are not wanted, for what stands beside the hits
	list     [][]byte
	cursor   []byte
	rank     int // the first behind the cursor
}

type deepStep int

const (
	deepFirst deepStep = iota
	deepBorder
	deepRest
)

// bordering is among how many ranks a cursor is looked for: one whose sort values the next rank does not share, so that the
// engine goes on right behind it.
const bordering = 1000

// scoreSort is the order of scores with sort values: engines tell none where the score is all that counts. No document has the
// other field, so that ties are in the same order.
var scoreSort = []byte(`["_score",{"neardup_none":{"order":"asc","unmapped_type":"long"}}]`)

var errNoBorder = errors.New("the ranks at the engine's limit can't be told apart")

// deepOf returns the reading that a body asks for if it goes beyond the limit, or nil.
func deepOf(body []byte) *deepReading {
	from, size := numberIn(body, "from", 0), numberIn(body, "size", 0)
	if from+size <= maxResultWindow {
		return nil
	}
	return &deepReading{from: from, to: from + size}
}

// sorts reports whether the piece under way needs hits with their sort values.
func (r *deepReading) sorts() bool { return r.step != deepFirst }

// beyond reports whether no rank up to the limit is wanted.
func (r *deepReading) beyond() bool { return r.from >= maxResultWindow }

// next returns the request for the next piece.
func (r *deepReading) next(s *pointed, whole *adapters.Request) (*adapters.Request, error) {
	if r.whole == nil {
		r.whole = whole
	}
	out := *r.whole
	var err error
	set := func(key string, value []byte) {
		if err == nil {
			out.Body, err = adapters.Set(out.Body, key, value)
		}
	}
	number := func(key string, n int) { set(key, strconv.AppendInt(nil, int64(n), 10)) }
	count := func(value string) {
		set("track_total_hits", []byte(value))
		out.RawQuery = adapters.RawQuery(adapters.Params(out.RawQuery), func(name string) bool {
			return name != "track_total_hits" && name != "rest_total_hits_as_int"
		})
	}
	switch r.step {
	case deepFirst:
		if r.beyond() {
			number("from", 0)
		}
		number("size", max(1, maxResultWindow-r.from)) // without a hit there is no best score
		return &out, err
	case deepBorder:
		ask := reading{from: maxResultWindow - bordering, size: bordering, sketchOnly: true, settled: true}
		body, void, err := s.q.ask(ask)
		if err != nil {
			return nil, err
		}
		out = *(&single{request: s.request, collapse: s.c}).ask(body, void)
		count("false")
	case deepRest:
		number("from", 0)
		number("size", r.to-r.rank)
		set("search_after", r.cursor)
		count("true") // no hit is passed over then: see query.ask
	}
	if s.byScore() {
		set("sort", scoreSort)
		set("track_scores", []byte("true")) // without, there is no best score
		out.RawQuery = adapters.RawQuery(adapters.Params(out.RawQuery), func(name string) bool { return name != "sort" })
	}
	return &out, err
}

// take takes the reply to a piece and returns the whole reading, or the request for the next piece.
func (r *deepReading) take(s *pointed, reply *adapters.Reply) (*adapters.Reply, *adapters.Request, error) {
	list, _, err := hitsOf(reply.Body)
	if err != nil {
		return nil, nil, err
	}
	switch r.step {
	case deepFirst:
		r.first, r.step = reply, deepBorder
		if r.beyond() {
			break
		}
		if r.list = list; len(list) < maxResultWindow-r.from { // the list ends before
			return r.ended(s)
		}
	case deepBorder:
		if len(list) < bordering {
			return nil, nil, errMoved
		}
		at := len(list) - 2
		for at >= 0 && canonical(sortOf(list[at])) == canonical(sortOf(list[at+1])) {
			at--
		}
		if at < 0 || r.to-(maxResultWindow-bordering+at+1) > maxResultWindow {
			return nil, nil, errNoBorder
		}
		r.cursor, r.rank, r.step = sortOf(list[at]), maxResultWindow-bordering+at+1, deepRest
	case deepRest:
		known := max(r.from, maxResultWindow) - r.rank // or not wanted
		r.list = append(r.list, list[min(known, len(list)):]...)
		return r.ended(s)
	}
	ask, err := r.next(s, nil)
	return nil, ask, err
}

// ended returns the pieces in one reply.
func (r *deepReading) ended(s *pointed) (*adapters.Reply, *adapters.Request, error) {
	out := *r.first
	var err error
	if out.Body, err = withHits(out.Body, r.list); err != nil {
		return nil, nil, err
	}
	plain, err := s.outside(&out)
	return plain, nil, err
}

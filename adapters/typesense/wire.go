package typesense

import (
	"maps"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// wire carries queries as the searches of multi-searches.
type wire struct {
	request  *adapters.Request // a multi-search, but for its searches
	single   bool              // the client asked for the search of one collection
	most     int               // how many searches a request may hold
	sketched []string          // the sketched fields, whose members are kept of each hit
}

var _ adapters.Wire = &wire{}

// worthARequest is how many hits make a request of their own worth while: the engine does the searches of one request one after the other.
// (Measured: 250 sketches take it 12 ms beside the 5 ms of searching.)
const worthARequest = 100

// Join implements adapters.Wire. Each request gets about as many hits that are only judged.
func (w *wire) Join(queries []adapters.Query) (requests []*adapters.Request, parts [][]adapters.Query, err error) {
	if len(queries) == 1 {
		r, err := w.requestFor(queries)
		return []*adapters.Request{r}, [][]adapters.Query{queries}, err
	}
	all, before := 0, 0 // hits that are only judged
	for i := range queries {
		if queries[i].JudgingOnly {
			all += queries[i].Hits
		}
	}
	most := min(max(all/worthARequest, 1), adapters.MaxAtOnce)
	share := func() int { return min(before*most/max(all, 1), most-1) } // the request whose share the next query begins in
	for len(queries) > 0 && len(requests) < adapters.MaxAtOnce {
		n := 0
		for own := share(); n == 0 || n < min(len(queries), w.most) && share() <= own; n++ {
			if queries[n].JudgingOnly {
				before += queries[n].Hits
			}
		}
		r, err := w.requestFor(queries[:n])
		if err != nil {
			return nil, nil, err
		}
		requests, parts, queries = append(requests, r), append(parts, queries[:n]), queries[n:]
	}
	return requests, parts, nil
}

// requestFor returns one request for queries. A reply to judge by alone comes uncompressed: it takes longer to pack and unpack than to send.
func (w *wire) requestFor(queries []adapters.Query) (*adapters.Request, error) {
	r, searches, judging := *w.request, make([][]byte, len(queries)), true
	for i := range queries {
		searches[i], judging = queries[i].Body, judging && queries[i].JudgingOnly
	}
	if judging {
		r.Header = maps.Clone(r.Header)
		delete(r.Header, "Accept-Encoding")
	}
	var err error
	r.Body, err = jsonedit.Set(r.Body, "searches", jsonedit.Array(searches))
	return &r, err
}

// Split implements adapters.Wire. Of raw queries, and of results beyond the queries, it takes the bytes alone.
func (w *wire) Split(queries []adapters.Query, reply *adapters.Reply) ([]adapters.QueryResult, error) {
	if err := refused(reply.Status); err != nil {
		return nil, err
	}
	r := jsonedit.NewReader(reply.Body)
	if !r.Enter('{') {
		return nil, jsonedit.ErrMalformed
	}
	var list []adapters.QueryResult
	for r.Next() {
		if string(r.Key()) != "results" {
			continue
		}
		if list = make([]adapters.QueryResult, 0, len(queries)); !r.Enter('[') {
			return nil, errShape
		}
		for r.Next() {
			switch at := len(list); {
			case at >= len(queries) || queries[at].Raw:
				list = append(list, &result{raw: r.Value()})
			case queries[at].JudgingOnly:
				list = append(list, readResult(&r, reply.Body, queries[at].Hits, nil))
			default:
				list = append(list, readResult(&r, reply.Body, queries[at].Hits, w.sketched))
			}
		}
	}
	if !r.Done() {
		return nil, jsonedit.ErrMalformed
	}
	return list, nil
}

// Body implements adapters.Wire.
func (w *wire) Body(reply *adapters.Reply, results []adapters.Pieces) (adapters.Pieces, error) {
	if w.single {
		return results[0], nil
	}
	list := make([][]byte, len(results))
	for i, r := range results {
		list[i] = r.Bytes()
	}
	body, err := jsonedit.Set(reply.Body, "results", jsonedit.Array(list))
	return adapters.Pieces{body}, err
}

// Declined implements adapters.Decliner.
func (w *wire) Declined(reply *adapters.Reply, d *adapters.Declined) *adapters.Reply {
	out := &adapters.Reply{Status: d.Status, Header: maps.Clone(reply.Header)}
	for _, name := range []string{"Content-Encoding", "Vary", "Accept-Ranges"} { // an error is not encoded
		delete(out.Header, name)
	}
	out.Body = []byte(`{"message": "` + d.Reason + `"}`) // nothing is escaped, as the engine has it
	return out
}

package typesense

import (
	"maps"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// wire carries queries as the searches of multi-searches.
type wire struct {
	request *adapters.Request // a multi-search, but for its body
	body    []byte            // of the request, but for its searches
	single  bool              // the client asked for the search of one collection
	most    int               // how many searches a request may hold
	texts   []string          // the sketched fields, whose members are kept of each hit
}

var _ adapters.Wire = &wire{}

// worthARequest is how many hits make a request of their own worth while: the engine does the searches of one request one after the other.
// (Measured: 250 sketches take it 12 ms beside the 5 ms of searching.)
const worthARequest = 100

// Join implements adapters.Wire. In the order of the queries each request gets about as many bare hits. What is bare is asked for
// uncompressed: it takes longer to pack and unpack than to send.
func (w *wire) Join(queries []adapters.Query) (list []adapters.Joined, err error) {
	all, before := 0, 0
	for i := range queries {
		all += weight(&queries[i])
	}
	requests, share := min(max(all/worthARequest, 1), adapters.MaxAtOnce), -1
	for i := range queries {
		own := min(before*requests/max(all, 1), requests-1) // whose share it begins in
		if len(list) == 0 || own > share || list[len(list)-1].Queries == w.most {
			if len(list) == adapters.MaxAtOnce {
				break
			}
			list, share = append(list, adapters.Joined{Bare: true}), own
		}
		j := &list[len(list)-1]
		j.Queries, j.Bare = j.Queries+1, j.Bare && queries[i].Bare
		before += weight(&queries[i])
	}
	for i := range list {
		if list[i].Request, err = w.requestFor(queries[:list[i].Queries], list[i].Bare); err != nil {
			return nil, err
		}
		queries = queries[list[i].Queries:]
	}
	return list, nil
}

// weight is how much a query counts where queries are parted: a page in the client's content is to cost one request.
func weight(q *adapters.Query) int {
	if !q.Bare {
		return 0
	}
	return q.Hits
}

// requestFor returns the request for queries.
func (w *wire) requestFor(queries []adapters.Query, bare bool) (*adapters.Request, error) {
	searches := make([][]byte, len(queries))
	for i := range queries {
		searches[i] = queries[i].Body
	}
	r := *w.request
	if bare {
		r.Header = maps.Clone(r.Header)
		delete(r.Header, "Accept-Encoding")
	}
	var err error
	r.Body, err = jsonedit.Set(w.body, "searches", jsonedit.Array(searches))
	return &r, err
}

// Split implements adapters.Wire.
func (w *wire) Split(queries []adapters.Query, reply *adapters.Reply) ([]adapters.QueryResult, error) {
	if err := refused(reply.Status); err != nil {
		return nil, err
	}
	return readResults(reply.Body, queries, w.texts)
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

// Declined implements adapters.Wire.
func (w *wire) Declined(reply *adapters.Reply, d *adapters.Declined) *adapters.Reply {
	out := &adapters.Reply{Status: d.Status, Header: maps.Clone(reply.Header)}
	for _, name := range []string{"Content-Encoding", "Vary", "Accept-Ranges"} { // an error comes as it is
		delete(out.Header, name)
	}
	out.Body = []byte(`{"message": "` + d.Reason + `"}`) // nothing is escaped, as the engine has it
	return out
}

package typesense

import (
	"maps"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// wire joins requests as the searches of multi-searches.
type wire struct {
	request  *adapters.Request // a multi-search, but for its searches
	most     int               // how many searches a request may hold
	sketched []string          // the sketched fields, whose members are kept of each hit
}

var _ adapters.Wire = &wire{}

// worthARequest is how many hits make a request of their own worth while: the engine does the searches of one request one after the other.
// (Measured: 250 sketches take it 12 ms beside the 5 ms of searching.)
const worthARequest = 100

// Join implements adapters.Wire. The hits that are only judged are spread evenly over the requests. A reply with no others comes uncompressed: it takes
// longer to pack and unpack than to send.
func (w *wire) Join(requests []*adapters.Request) (joined []*adapters.Request, parts [][]*adapters.Request, err error) {
	all, before := 0, 0 // hits that are only judged
	for _, r := range requests {
		if r.JudgingOnly {
			all += r.Hits
		}
	}
	most := min(max(all/worthARequest, 1), adapters.MaxAtOnce)
	share := func() int { return min(before*most/max(all, 1), most-1) } // the request whose share the next search begins in
	for len(requests) > 0 && len(joined) < adapters.MaxAtOnce {
		r, searches, judging := *w.request, [][]byte(nil), true
		for own := share(); len(searches) == 0 || len(searches) < min(len(requests), w.most) && share() <= own; {
			search := requests[len(searches)]
			if searches = append(searches, search.Body); search.JudgingOnly {
				before += search.Hits
			}
			judging = judging && search.JudgingOnly
		}
		if r.JudgingOnly = judging; judging {
			r.Header = maps.Clone(r.Header)
			delete(r.Header, "Accept-Encoding")
		}
		if r.Body, err = jsonedit.Set(r.Body, "searches", jsonedit.Array(searches)); err != nil {
			return nil, nil, err
		}
		n := len(searches)
		joined, parts, requests = append(joined, &r), append(parts, requests[:n]), requests[n:]
	}
	return joined, parts, nil
}

// Body implements adapters.Envelope, for a multi-search of the client's.
func (w *wire) Body(reply *adapters.Reply, results []adapters.Pieces) (adapters.Pieces, error) {
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

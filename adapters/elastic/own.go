package elastic

import "github.com/neardup/sidecar/adapters"

// asSent asks for the client's own search as the client wrote it. It implements adapters.Reader.
type asSent struct{ q *clientSearch }

// Queries implements adapters.Reader.
func (r asSent) Queries(results []adapters.QueryResult) ([]adapters.Query, error) {
	if len(results) > 0 {
		return nil, nil
	}
	return []adapters.Query{{Body: r.q.line(r.q.body), Void: []string{"filter_path"}, Hits: r.q.asked.Size, Own: true}}, nil
}

// Listing implements adapters.Reader. Nothing need be known of the reply.
func (r asSent) Listing(results []adapters.QueryResult) (*adapters.Listing, error) {
	reply := results[0].Raw()
	if declined := r.q.declined(reply, true); declined != nil {
		return nil, declined
	}
	read, err := parseReply(reply, nil)
	if err != nil {
		read = parsedReply{total: -1}
	}
	h := &hits{reading: &reader{q: r.q}, reply: read}
	if keys, err := h.reading.keysOf(read.hits); err == nil {
		h.list, h.keys = read.hits, keys
	}
	return &adapters.Listing{Hits: h, Total: read.total, AtLeast: read.lowest}, nil
}

package elastic

import "github.com/neardup/sidecar/adapters"

// readAsSent asks for the client's own search as the client wrote it. Nothing need be known of the reply.
func (q *clientSearch) readAsSent(ask adapters.Ask) (*adapters.Listing, error) {
	replies, err := ask(q.sentWith(q.body, []string{"filter_path"}, adapters.Purpose{Hits: q.asked.Size, Own: true}))
	if err != nil {
		return nil, err
	}
	reply := replies[0].Body
	if declined := q.declined(reply, true); declined != nil {
		return nil, declined
	}
	read, err := parseReply(reply, nil)
	if err != nil {
		read = parsedReply{total: -1}
	}
	h := &hits{reading: &reader{q: q}, reply: read}
	if keys, err := h.reading.keysOf(read.hits); err == nil {
		h.list, h.keys = read.hits, keys
	}
	return &adapters.Listing{Hits: h, Total: read.total, AtLeast: read.lowest}, nil
}

package elastic

import "github.com/neardup/sidecar/adapters"

// requestAsWritten is the client's own search as the client wrote it.
func (q *clientSearch) requestAsWritten() []*adapters.Request {
	request := q.sentWith(q.body, []string{"filter_path"}, false)
	request.Hits, request.Own = q.asked.Size, true
	return []*adapters.Request{request}
}

// listingAsWritten lists the hits of the reply to it. A reply that can't be read is an empty list: it goes to the client as it is.
func (q *clientSearch) listingAsWritten(r *adapters.Reading, reply []byte) (*adapters.Listing, error) {
	if declined := q.declined(reply, true); declined != nil {
		return nil, declined
	}
	read, err := parseReply(reply, nil)
	if err != nil {
		read = &parsedReply{total: -1}
	}
	list, err := q.seen(r, read)
	if err != nil {
		list = nil
	}
	return &adapters.Listing{Hits: list, Parsed: read, Total: read.total, AtLeast: read.lowest}, nil
}

package typesense

import (
	"bytes"
	"errors"
	"maps"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// A result is read in one pass. The places that may have to be changed are kept, so that the client's answer is put together from pieces of
// the reply without a second one.

// errShape: a result holds something in another form than the engine's, or a member twice.
var errShape = errors.New("a result of another form")

// wire joins requests as the searches of multi-searches. A search that goes out by itself, for a client that searches one collection, stays such a search:
// of a multi-search the engine parses each result once more, and writes it again.
type wire struct {
	request  *adapters.Request // the client's, but for its searches and the parameters that a reading steers
	lone     bool              // it is the search of one collection
	single   bool              // and can stay one
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
		request := *w.request
		r, searches, judging := &request, make([][]byte, 0, 1), true
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
		n := len(searches)
		if w.staysSingle(requests[:n]) {
			r.Body = nil
			r.RawQuery, err = withParams(r.RawQuery, searches[0])
		} else {
			if w.lone {
				r = asMulti(r)
			}
			r.Body, err = jsonedit.Set(r.Body, "searches", jsonedit.Array(searches))
		}
		if err != nil {
			return nil, nil, err
		}
		joined, parts, requests = append(joined, r), append(parts, requests[:n]), requests[n:]
	}
	return joined, parts, nil
}

// staysSingle reports whether a request for these searches is one of a single collection, whose query the engine takes.
func (w *wire) staysSingle(searches []*adapters.Request) bool {
	return w.single && len(searches) == 1 && len(w.request.RawQuery)+3*len(searches[0].Body) < maxQuery // a byte takes up to three when it is escaped
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
	out.Pieces = adapters.Pieces{[]byte(`{"message": "` + d.Reason + `"}`)} // nothing is escaped, as the engine has it
	return out
}

// Split implements adapters.Wire. Of raw searches, and of results beyond the searches, it takes the bytes alone.
func (w *wire) Split(parts []*adapters.Request, reply *adapters.Reply) ([]*adapters.Reply, error) {
	r := jsonedit.NewReader(reply.Body)
	if w.staysSingle(parts) {
		list := []*adapters.Reply{w.readPart(&r, reply, parts[0])}
		if !r.Done() {
			return nil, jsonedit.ErrMalformed
		}
		return list, nil
	}
	if !r.Enter('{') {
		return nil, jsonedit.ErrMalformed
	}
	var list []*adapters.Reply
	for r.Next() {
		if string(r.Key()) != "results" {
			continue
		}
		if list = make([]*adapters.Reply, 0, len(parts)); !r.Enter('[') {
			return nil, errShape
		}
		for r.Next() {
			if at := len(list); at < len(parts) {
				list = append(list, w.readPart(&r, reply, parts[at]))
			} else {
				list = append(list, &adapters.Reply{Status: reply.Status, Body: r.Value()})
			}
		}
	}
	if !r.Done() {
		return nil, jsonedit.ErrMalformed
	}
	return list, nil
}

// readPart reads the result that comes next in a reply, which is that of a part.
func (w *wire) readPart(in *jsonedit.Reader, reply *adapters.Reply, part *adapters.Request) *adapters.Reply {
	if part.Raw {
		return &adapters.Reply{Status: reply.Status, Body: in.Value()}
	}
	sketched := w.sketched
	if part.JudgingOnly {
		sketched = nil
	}
	res := readResult(in, reply.Body, part.Hits, sketched)
	res.requested, _ = part.For.(enginePage)
	return &adapters.Reply{Status: reply.Status, Body: res.raw, Parsed: res}
}

// resultOf returns what [wire.Split] read of a reply, nothing of one that is handed on as it comes.
func resultOf(reply *adapters.Reply) *result {
	if res, read := reply.Parsed.(*result); read {
		return res
	}
	return &result{raw: reply.Body}
}

// parseResult reads a single result and [result.check]s it.
func parseResult(raw []byte, of *enginePage) (*result, error) {
	in := jsonedit.NewReader(raw)
	res := readResult(&in, raw, 0, nil)
	if !in.Done() {
		return res, jsonedit.ErrMalformed
	}
	return res, res.check(of)
}

// readResult reads the result that comes next in a body: that of a search for at most that many hits, of each of which it keeps the members
// that may lead to one of the texts.
func readResult(in *jsonedit.Reader, body []byte, most int, sketched []string) *result {
	start := in.At()
	res := &result{page: enginePage{-1, -1}, first: -1, found: -1}
	if !in.Enter('{') {
		res.raw, res.err = in.Value(), errShape
		return res
	}
	var reason, code []byte
	for in.Next() {
		var place *extent
		from := in.At() - start
		switch string(in.Key()) {
		case "hits":
			place = &res.atHits
			res.readHits(in, body, most, sketched)
		case "request_params":
			res.readParams(in, start)
		case "union_request_params":
			res.readUnion(in, start)
		case "page":
			place, res.page.number = &res.atPage, whole(in.Value())
		case "found":
			place, res.found = &res.atFound, whole(in.Value())
		case "offset":
			res.first = whole(in.Value())
		case "grouped_hits":
			res.grouped = true
		case "error":
			reason = in.Value()
		case "code":
			code = in.Value()
		}
		res.mark(place, from, in.At()-start)
	}
	res.raw = body[start:in.At()]
	if reason != nil {
		res.err = declined(reason, code, res.raw)
	}
	if res.page.number > 0 && res.page.size >= 0 {
		res.first = res.page.from()
	}
	return res
}

// check returns why a result is not the answer to a search for a page, or to one as the client wrote it if that is nil.
func (res *result) check(of *enginePage) error {
	switch {
	case res.err != nil:
		return res.err
	// A scoped key that could not be read, or a newer engine's option, could have put another page in its place.
	case of != nil && (res.page != *of || res.grouped):
		return errors.New("the reply is of another page than was asked for")
	case res.found < 0 || res.collection == "":
		return errors.New("a result without found or collection_name")
	case res.hits == nil:
		return errors.New("a result without hits")
	case len(res.hits) > res.page.size:
		return errors.New("more hits than were asked for")
	}
	return nil
}

// holdsNeighbours reports whether the list is one of neighbours, wholly or in part, and whether it is fused of two: then it differs with how many ranks are
// asked for.
func (res *result) holdsNeighbours() (neighbours, fused bool) {
	for i := range res.hits {
		neighbours, fused = neighbours || res.hits[i].neighbour, fused || res.hits[i].fused
	}
	return neighbours, fused
}

// mark keeps where a member is, unless place is nil. It may not be repeated.
func (res *result) mark(place *extent, from, to int) {
	if place == nil {
		return
	}
	if *place != (extent{}) && res.err == nil {
		res.err = errShape
	}
	*place = extent{from, to}
}

// readParams reads the parameters that the engine says it was asked.
func (res *result) readParams(in *jsonedit.Reader, start int) {
	if !in.Enter('{') {
		res.err = errShape
		return
	}
	for in.Next() {
		var place *extent
		from, key := in.At()-start, in.Key()
		value := in.Value()
		switch string(key) {
		case "per_page":
			place, res.page.size = &res.atPerPage, whole(value)
		case "page":
			place = &res.atCopy
		case "collection_name", "collection":
			res.collection, _ = jsonedit.Text(value)
		}
		res.mark(place, from, in.At()-start)
	}
}

// readUnion reads the parameters of each search of a union.
func (res *result) readUnion(in *jsonedit.Reader, start int) {
	if !in.Enter('[') {
		res.err = errShape
		return
	}
	for in.Next() {
		one := result{collection: res.collection}
		one.readParams(in, start)
		if one.err != nil || len(res.atPerPages) > 0 && (one.collection != res.collection || one.page.size != res.page.size) {
			res.err = errShape
		}
		res.collection, res.page.size, res.atPerPages = one.collection, one.page.size, append(res.atPerPages, one.atPerPage)
	}
}

// readHits reads the hits.
func (res *result) readHits(in *jsonedit.Reader, body []byte, most int, sketched []string) {
	if !in.Enter('[') {
		res.err = errShape
		return
	}
	most = min(max(most, 1), maxPerPage)
	res.hits, res.ids.Size = make([]hit, 0, most), 16*most
	if len(sketched) > 0 {
		res.members = make([]jsonedit.Member, 0, most*len(sketched))
	}
	for in.Next() {
		h, ok := res.readHit(in, body, sketched)
		if res.hits = append(res.hits, h); !ok {
			res.err = errShape
		}
	}
}

// parseHit reads a single hit. Its id is empty if it is not shown.
func parseHit(raw []byte) (hit, error) {
	in := jsonedit.NewReader(raw)
	h, ok := (&result{}).readHit(&in, raw, nil)
	if !in.Done() || !ok {
		return hit{}, jsonedit.ErrMalformed
	}
	return h, nil
}

// readHit reads the hit that comes next. It is not ok if it has no document.
func (res *result) readHit(in *jsonedit.Reader, body []byte, sketched []string) (h hit, ok bool) {
	start := in.At()
	if !in.Enter('{') {
		return h, false
	}
	for documents := 0; in.Next(); {
		switch string(in.Key()) {
		case "document":
			h.at = in.At() - start
			documents++
			if ok = documents == 1 && in.Enter('{'); ok {
				res.readDocument(&h, in, body, start, sketched)
				h.document = body[start+h.at : in.At()]
			}
		case "search_index":
			h.search = string(in.Value()) + ":"
		case "curated":
			h.curated = string(in.Value()) == "true"
		case "vector_distance":
			h.neighbour = true
		case "hybrid_search_info":
			h.fused = true
		}
	}
	h.raw = body[start:in.At()]
	return h, ok
}

// readDocument reads a hit's document, whose brace the reader has just passed.
func (res *result) readDocument(h *hit, in *jsonedit.Reader, body []byte, start int, sketched []string) {
	before := len(res.members)
	for end := in.At(); in.Next(); end = in.At() {
		key := in.Key()
		name, text := leading(key, sketched)
		value := in.Value()
		h.dotted = h.dotted || bytes.IndexByte(key, '.') >= 0
		switch {
		case string(key) == "id":
			id, _ := jsonedit.TextBytes(value)
			h.id = res.ids.Of(id)
		case bytes.HasPrefix(key, []byte(rule.FieldPrefix)) && rule.Our(string(key)):
			if string(key) == rule.SketchField {
				h.stored, _ = jsonedit.TextBytes(value)
			}
			if h.ours.to == 0 {
				h.ours.from = end - start
			}
			h.scattered = h.scattered || !bytes.HasPrefix(body[end:], []byte(`,"`)) || h.ours.to > 0 && h.ours.to != end-start
			h.ours.to = in.At() - start
		}
		if text {
			res.members = append(res.members, jsonedit.Member{Key: name, Value: value})
		}
	}
	h.members = res.members[before:len(res.members):len(res.members)]
}

// leading returns a key as a part of the name of a text that it may lead to, and false if there is no such text.
func leading(key []byte, sketched []string) (name string, ok bool) {
	for _, text := range sketched {
		if len(key) <= len(text) && text[:len(key)] == string(key) {
			return text[:len(key)], true
		}
	}
	return "", false
}

// whole returns a whole number, or -1.
func whole(value []byte) int {
	n, err := strconv.Atoi(string(value))
	if err != nil {
		return -1
	}
	return n
}

// count returns a whole number, or -1.
func count(members []jsonedit.Member, key string) int { return whole(jsonedit.Get(members, key)) }

// member returns the value that keys lead to in an object, nil if there is none.
func member(object []byte, keys ...string) []byte {
	for _, key := range keys {
		object = jsonedit.Lookup(object, key)
	}
	return object
}

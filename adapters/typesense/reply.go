package typesense

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// A reply is read in one pass. The places that may have to be changed are kept, so that the client's answer is put together from pieces of
// the reply without a second one.

// extent is where something begins and ends in a result or in a hit.
type extent struct{ from, to int }

// places are where members of a result are, perPage and page's copy within the parameters; {} says that there is none.
type places struct{ hits, found, page, perPage, copied extent }

// errShape: a result holds something in another form than the engine's, or a member twice.
var errShape = errors.New("a result of another form")

// readResults reads a reply to a multi-search of these queries, and keeps of each hit the members that may lead to one of the texts. Of raw
// queries, and of results beyond the queries, it takes the bytes alone.
func readResults(body []byte, queries []adapters.Query, texts []string) ([]adapters.QueryResult, error) {
	r := jsonedit.NewReader(body)
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
			if at := len(list); at < len(queries) && !queries[at].Raw {
				kept := texts
				if queries[at].Bare {
					kept = nil
				}
				list = append(list, readResult(&r, body, queries[at].Hits, kept))
			} else {
				list = append(list, &result{raw: r.Value()})
			}
		}
	}
	if !r.Done() {
		return nil, jsonedit.ErrMalformed
	}
	return list, nil
}

// readResult reads the result that comes next in a body: that of a search for at most that many hits.
func readResult(r *jsonedit.Reader, body []byte, most int, texts []string) *result {
	start := r.At()
	list := &result{page: -1, first: -1, perPage: -1, found: -1}
	if !r.Enter('{') {
		list.raw, list.err = r.Value(), errShape
		return list
	}
	var reason, code []byte
	for r.Next() {
		switch from := r.At() - start; string(r.Key()) {
		case "hits":
			list.readHits(r, body, most, texts)
			list.once(&list.places.hits, extent{from, r.At() - start})
		case "request_params":
			list.readParams(r, start)
		case "page":
			list.page = whole(r.Value())
			list.once(&list.places.page, extent{from, r.At() - start})
		case "found":
			list.found = whole(r.Value())
			list.once(&list.places.found, extent{from, r.At() - start})
		case "offset":
			list.first = whole(r.Value())
		case "grouped_hits":
			list.grouped = true
		case "error":
			reason = r.Value()
		case "code":
			code = r.Value()
		}
	}
	list.raw = body[start:r.At()]
	if reason != nil {
		list.err = newRefusal(reason, code)
	}
	if list.page > 0 && list.perPage >= 0 {
		list.first = (list.page - 1) * list.perPage
	}
	return list
}

// once keeps where a member is that may not be repeated.
func (r *result) once(place *extent, e extent) {
	if *place != (extent{}) && r.err == nil {
		r.err = errShape
	}
	*place = e
}

// readParams reads the parameters that the engine says it was asked.
func (r *result) readParams(reader *jsonedit.Reader, start int) {
	if !reader.Enter('{') {
		r.err = errShape
		return
	}
	for reader.Next() {
		switch from := reader.At() - start; string(reader.Key()) {
		case "per_page":
			r.perPage = whole(reader.Value())
			r.once(&r.places.perPage, extent{from, reader.At() - start})
		case "page":
			reader.Value()
			r.once(&r.places.copied, extent{from, reader.At() - start})
		case "collection_name":
			r.collection, _ = jsonedit.Text(reader.Value())
		}
	}
}

// readHits reads the hits.
func (r *result) readHits(reader *jsonedit.Reader, body []byte, most int, texts []string) {
	if !reader.Enter('[') {
		r.err = errShape
		return
	}
	most = min(max(most, 1), maxPerPage)
	r.hits = make([]hit, 0, most)
	if len(texts) > 0 {
		r.members = make([]jsonedit.Member, 0, most*len(texts))
	}
	for reader.Next() {
		h, ok := r.readHit(reader, body, texts)
		if r.hits = append(r.hits, h); !ok {
			r.err = errShape
		}
	}
}

// readHit reads the hit that comes next. It is not ok if it has no document.
func (r *result) readHit(reader *jsonedit.Reader, body []byte, texts []string) (h hit, ok bool) {
	start := reader.At()
	if !reader.Enter('{') {
		return h, false
	}
	for documents := 0; reader.Next(); {
		switch string(reader.Key()) {
		case "document":
			documents++
			if ok = documents == 1 && reader.Enter('{'); ok {
				before := len(r.members)
				r.members = h.readDocument(reader, body, start, texts, r.members)
				h.members = r.members[before:len(r.members):len(r.members)]
			}
		case "curated":
			h.curated = string(reader.Value()) == "true"
		case "vector_distance", "hybrid_search_info":
			h.near = true
		}
	}
	h.raw = body[start:reader.At()]
	return h, ok
}

// readDocument reads a hit's document, whose brace the reader has just passed, and appends the members that may lead to a text to a list.
func (h *hit) readDocument(r *jsonedit.Reader, body []byte, start int, texts []string, list []jsonedit.Member) []jsonedit.Member {
	from := r.At() - 1
	h.at = extent{from: from - start}
	for end := r.At(); r.Next(); end = r.At() {
		key := r.Key()
		name, text := leading(key, texts)
		ours := len(key) > len(rule.FieldPrefix) && rule.Our(string(key))
		h.dotted = h.dotted || bytes.IndexByte(key, '.') >= 0
		value := r.Value()
		switch {
		case string(key) == "id":
			h.id, _ = jsonedit.Text(value)
		case ours:
			if string(key) == rule.SketchField {
				h.stored, _ = jsonedit.TextBytes(value)
			}
			h.mark(body, end, r.At(), start)
		}
		if text {
			list = append(list, jsonedit.Member{Key: name, Value: value})
		}
	}
	h.document = body[from:r.At()]
	h.at.to = r.At() - start
	return list
}

// leading returns a key as a part of the name of a text that it may lead to, and false if there is no such text.
func leading(key []byte, texts []string) (name string, ok bool) {
	for _, text := range texts {
		if len(key) <= len(text) && text[:len(key)] == string(key) {
			return text[:len(key)], true
		}
	}
	return "", false
}

// mark marks a member between two places for being left out. Only members in the form that the engine writes are marked: with nothing
// but commas around, and one after the other.
func (h *hit) mark(body []byte, from, to, start int) {
	if body[from] == ',' {
		from++
	}
	m := extent{from - start, to - start}
	switch {
	case body[from] != '"' || to == len(body) || body[to] != ',' && body[to] != '}':
		h.unmarked = true
	case h.ours == (extent{}):
		h.ours = m
	case h.ours.to+1 == m.from:
		h.ours.to = m.to
	default:
		h.unmarked = true
	}
}

// whole returns a whole number, or -1.
func whole(value []byte) int {
	n, err := strconv.Atoi(string(value))
	if err != nil {
		return -1
	}
	return n
}

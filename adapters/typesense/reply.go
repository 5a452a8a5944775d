package typesense

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// A result is read in one pass. The places that may have to be changed are kept, so that the client's answer is put together from pieces of
// the reply without a second one.

// errShape: a result holds something in another form than the engine's, or a member twice.
var errShape = errors.New("a result of another form")

// parseResult reads a single result and [result.check]s it.
func parseResult(raw []byte, of *enginePage) (*result, error) {
	reader := jsonedit.NewReader(raw)
	r := readResult(&reader, raw, 0, nil)
	if !reader.Done() {
		return r, jsonedit.ErrMalformed
	}
	return r, r.check(of)
}

// readResult reads the result that comes next in a body: that of a search for at most that many hits, of each of which it keeps the members
// that may lead to one of the texts.
func readResult(r *jsonedit.Reader, body []byte, most int, texts []string) *result {
	start := r.At()
	list := &result{page: enginePage{-1, -1}, first: -1, found: -1}
	if !r.Enter('{') {
		list.raw, list.err = r.Value(), errShape
		return list
	}
	var reason, code []byte
	for r.Next() {
		var place *extent
		from := r.At() - start
		switch string(r.Key()) {
		case "hits":
			place = &list.atHits
			list.readHits(r, body, most, texts)
		case "request_params":
			list.readParams(r, start)
		case "page":
			place, list.page.number = &list.atPage, whole(r.Value())
		case "found":
			place, list.found = &list.atFound, whole(r.Value())
		case "offset":
			list.first = whole(r.Value())
		case "grouped_hits":
			list.grouped = true
		case "error":
			reason = r.Value()
		case "code":
			code = r.Value()
		}
		list.mark(place, from, r.At()-start)
	}
	list.raw = body[start:r.At()]
	if reason != nil {
		list.err = declined(reason, code, list.raw)
	}
	if list.page.number > 0 && list.page.size >= 0 {
		list.first = list.page.from()
	}
	return list
}

// mark keeps where a member is, unless place is nil. It may not be repeated.
func (r *result) mark(place *extent, from, to int) {
	if place == nil {
		return
	}
	if *place != (extent{}) && r.err == nil {
		r.err = errShape
	}
	*place = extent{from, to}
}

// readParams reads the parameters that the engine says it was asked.
func (r *result) readParams(reader *jsonedit.Reader, start int) {
	if !reader.Enter('{') {
		r.err = errShape
		return
	}
	for reader.Next() {
		var place *extent
		from, key := reader.At()-start, reader.Key()
		value := reader.Value()
		switch string(key) {
		case "per_page":
			place, r.page.size = &r.atPerPage, whole(value)
		case "page":
			place = &r.atCopy
		case "collection_name":
			r.collection, _ = jsonedit.Text(value)
		}
		r.mark(place, from, reader.At()-start)
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

// parseHit reads a single hit. Its id is empty if it is not shown.
func parseHit(raw []byte) (hit, error) {
	r := jsonedit.NewReader(raw)
	h, ok := (&result{}).readHit(&r, raw, nil)
	if !r.Done() || !ok {
		return hit{}, jsonedit.ErrMalformed
	}
	return h, nil
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
			h.at = reader.At() - start
			documents++
			if ok = documents == 1 && reader.Enter('{'); ok {
				r.readDocument(&h, reader, body, start, texts)
				h.document = body[start+h.at : reader.At()]
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

// readDocument reads a hit's document, whose brace the reader has just passed.
func (r *result) readDocument(h *hit, reader *jsonedit.Reader, body []byte, start int, texts []string) {
	before := len(r.members)
	for end := reader.At(); reader.Next(); end = reader.At() {
		key := reader.Key()
		name, text := leading(key, texts)
		value := reader.Value()
		h.dotted = h.dotted || bytes.IndexByte(key, '.') >= 0
		switch {
		case string(key) == "id":
			h.id, _ = jsonedit.Text(value)
		case bytes.HasPrefix(key, []byte(rule.FieldPrefix)) && rule.Our(string(key)):
			if string(key) == rule.SketchField {
				h.stored, _ = jsonedit.TextBytes(value)
			}
			if h.ours.to == 0 {
				h.ours.from = end - start
			}
			h.scattered = h.scattered || !bytes.HasPrefix(body[end:], []byte(`,"`)) || h.ours.to > 0 && h.ours.to != end-start
			h.ours.to = reader.At() - start
		}
		if text {
			r.members = append(r.members, jsonedit.Member{Key: name, Value: value})
		}
	}
	h.members = r.members[before:len(r.members):len(r.members)]
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
		members, _ := jsonedit.Members(object)
		object = jsonedit.Get(members, key)
	}
	return object
}

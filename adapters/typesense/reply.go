package typesense

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// A reply is read in one pass. The places that may have to be changed are kept, so that the client's answer is put together from pieces of
// the reply without a second one.

// result is the engine's answer to one search.
type result struct {
	raw  []byte
	hits []hit
	// found is the engine's total; collection the real name of what was searched, also behind an alias.
	found      int
	collection string
	// page, the rank of its first hit and perPage are what the engine says to have answered, each -1 if it does not; grouped that it has
	// groups in place of hits.
	page, first, perPage int
	grouped              bool
	// Where members of it are, atPerPage and atCopy, of page, within the parameters; {} says that there is none.
	atHits, atFound, atPage, atPerPage, atCopy extent
	members                                    []jsonedit.Member // room for those of the hits
	err                                        error             // why it can't be taken for an answer, or a *refusal
}

// extent is where something begins and ends in a result or in a hit.
type extent struct{ from, to int }

// hit is one hit as it stands.
type hit struct {
	raw      []byte
	id       string
	document []byte
	at       int    // where in raw the document begins
	stored   []byte // what stands in our field
	// ours is where in raw our fields are, each with the comma in front of it; scattered says that they stand in another way.
	ours      extent
	scattered bool
	curated   bool              // the operator put it in its place
	near      bool              // it is a neighbour of a vector, or ranked as one
	dotted    bool              // the document has a name with a dot in it
	members   []jsonedit.Member // of the document, those that may lead to a sketched text
}

// errShape: a result holds something in another form than the engine's, or a member twice.
var errShape = errors.New("a result of another form")

// parseResult reads the answer to an ask that stands alone. A *refusal is the engine's own error.
func parseResult(raw []byte, a ask) (*result, error) {
	reader := jsonedit.NewReader(raw)
	r := readResult(&reader, raw, a.perPage, nil)
	if !reader.Done() {
		return r, jsonedit.ErrMalformed
	}
	return r, r.check(a)
}

// readResult reads the result that comes next in a body: that of a search for at most that many hits, of each of which it keeps the members
// that may lead to one of the texts.
func readResult(r *jsonedit.Reader, body []byte, most int, texts []string) *result {
	start := r.At()
	list := &result{page: -1, first: -1, perPage: -1, found: -1}
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
			place, list.page = &list.atPage, whole(r.Value())
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
		list.err = newRefusal(reason, code)
	}
	if list.page > 0 && list.perPage >= 0 {
		list.first = (list.page - 1) * list.perPage
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
			place, r.perPage = &r.atPerPage, whole(value)
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

// parseHit takes a hit apart that stands alone. Its id is empty if it is not shown.
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

// Raw implements adapters.QueryResult.
func (r *result) Raw() []byte { return r.raw }

// check reports whether the result can be the answer to an ask. A *refusal is the engine's own error.
func (r *result) check(a ask) error {
	switch {
	case r.err != nil:
		return r.err
	// A scoped key that could not be read, or a newer engine's option, could have put another page in its place.
	case a.content != asSent && (r.page != a.page || r.perPage != a.perPage || r.grouped):
		return errors.New("the reply is of another page than was asked for")
	case r.found < 0 || r.collection == "":
		return errors.New("a result without found or collection_name")
	case r.hits == nil:
		return errors.New("a result without hits")
	case len(r.hits) > r.perPage:
		return errors.New("more hits than were asked for")
	}
	return nil
}

// near reports whether the list is one of neighbours, wholly or in part: then it differs with how many ranks are asked for.
func (r *result) near() bool {
	return slices.ContainsFunc(r.hits, func(h hit) bool { return h.near })
}

// declined returns an error of the result: the engine's own as the port has it.
func (r *result) declined(err error) error {
	refusal, ok := errors.AsType[*refusal](err)
	if !ok {
		return err
	}
	d := &adapters.Declined{Status: refusal.code, Reason: refusal.reason, Raw: r.raw}
	// It can't be for anything that a reading added to the search: nothing it adds names a thing that could be missing.
	d.Final = d.Status == 404 || errors.Is(refused(d.Status), adapters.ErrRefused)
	if d.Status == 422 {
		_, _ = fmt.Sscanf(d.Reason, "Only upto %d hits can be fetched per page.", &d.Most)
	}
	return d
}

// refusal is the engine's answer to a search of a multi-search that it can't or will not do.
type refusal struct {
	code   int
	reason string
}

func (r *refusal) Error() string { return fmt.Sprintf("the engine answers %d: %s", r.code, r.reason) }

// HTTPStatus is for adapters.StatusOf.
func (r *refusal) HTTPStatus() int { return r.code }

// Is implements the interface of errors.Is: the engine has no room for the request just now.
func (r *refusal) Is(target error) bool { return target == adapters.ErrBusy && busy(r.code) }

func busy(code int) bool { return code == 429 || code == 503 }

// newRefusal returns the engine's own error.
func newRefusal(reason, code []byte) error {
	number, err := strconv.Atoi(string(code))
	text, ok := jsonedit.Text(reason)
	if err != nil || !ok {
		return errors.New("an error without code or reason")
	}
	return &refusal{number, text}
}

// refused sorts the engine's refusals by whose fault they can be.
func refused(status int) error {
	switch {
	case status == 401 || status == 403 || status == 408 || status == 429 || status >= 500:
		return adapters.ErrRefused
	case status >= 400:
		return adapters.ErrWidened
	case status != 200:
		return adapters.ErrNotUnderstood
	}
	return nil
}

// plain returns the hit's document [unflattened].
func (h *hit) plain() []byte {
	if !h.dotted {
		return h.document
	}
	return unflattened(h.document)
}

// unflattened returns a stored document less the flattened copies of its nested fields ("meta.text" beside "meta"): engines up to 0.24
// store them with every update, and a text that stands twice would make another sketch.
func unflattened(document []byte) []byte {
	if !bytes.Contains(document, []byte(`.`)) {
		return document
	}
	members, _ := jsonedit.Members(document)
	nested := map[string]bool{"": true}
	for _, m := range members {
		if m.Value[0] == '{' || m.Value[0] == '[' {
			nested[m.Key] = true
		}
	}
	clean, err := jsonedit.Cut(document, func(key string) bool {
		root, _, dotted := strings.Cut(key, ".")
		return dotted && nested[root]
	})
	if err != nil {
		return document
	}
	return clean
}

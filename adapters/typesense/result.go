package typesense

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

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
}

// hit is one hit as it stands.
type hit struct {
	raw      []byte
	id       string
	document []byte
	stored   string // what stands in our field
	curated  bool   // the operator put it in its place
	near     bool   // it is a neighbour of a vector, or ranked as one
}

// near reports whether the list is one of neighbours, wholly or in part: then it differs with how many ranks are asked for.
func (r *result) near() bool {
	return slices.ContainsFunc(r.hits, func(h hit) bool { return h.near })
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

// final says that the refusal can't be for anything that a reading added to the search: nothing it adds names a thing that could be
// missing.
func (r *refusal) final() bool {
	return r.code == 404 || errors.Is(refused(r.code), adapters.ErrRefused)
}

// mostPerPage returns the size of the largest page that the engine grants, 0 if that is not what it refuses.
func (r *refusal) mostPerPage() int {
	most := 0
	if _, err := fmt.Sscanf(r.reason, "Only upto %d hits can be fetched per page.", &most); err != nil || r.code != 422 {
		return 0
	}
	return most
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

// parseResult reads the answer to an ask. A *refusal is the engine's own error.
func parseResult(raw []byte, a ask) (*result, error) {
	members, err := adapters.Members(raw)
	if err != nil {
		return nil, err
	}
	if err := refusalIn(members); err != nil {
		return nil, err
	}
	r := &result{raw: raw}
	asked, err := adapters.Members(adapters.Get(members, "request_params"))
	if err != nil {
		return nil, err
	}
	r.page, r.perPage = count(members, "page"), count(asked, "per_page")
	r.grouped = adapters.Get(members, "grouped_hits") != nil
	if r.first = count(members, "offset"); r.page > 0 && r.perPage >= 0 {
		r.first = (r.page - 1) * r.perPage
	}
	// A scoped key that could not be read, or a newer engine's option, could have put another page in its place.
	if a.content != asSent && (r.page != a.page || r.perPage != a.perPage || r.grouped) {
		return nil, errors.New("the reply is of another page than was asked for")
	}
	r.collection, _ = adapters.Text(adapters.Get(asked, "collection_name"))
	r.found, err = strconv.Atoi(string(adapters.Get(members, "found")))
	if err != nil || r.collection == "" {
		return nil, errors.New("a result without found or collection_name")
	}
	list, err := adapters.Elements(adapters.Get(members, "hits"))
	if err != nil {
		return nil, err
	}
	if len(list) > r.perPage {
		return nil, errors.New("more hits than were asked for")
	}
	r.hits = make([]hit, len(list))
	for i, raw := range list {
		if r.hits[i], err = parseHit(raw); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// refusalIn returns the engine's own error in a result, nil if there is none.
func refusalIn(result []adapters.Member) error {
	reason := adapters.Get(result, "error")
	if reason == nil {
		return nil
	}
	code, err := strconv.Atoi(string(adapters.Get(result, "code")))
	text, ok := adapters.Text(reason)
	if err != nil || !ok {
		return errors.New("an error without code or reason")
	}
	return &refusal{code, text}
}

// count returns a whole number, or -1.
func count(members []adapters.Member, key string) int {
	n, err := strconv.Atoi(string(adapters.Get(members, key)))
	if err != nil {
		return -1
	}
	return n
}

// parseHit takes a hit apart. Its id is empty if it is not shown.
func parseHit(raw []byte) (hit, error) {
	members, err := adapters.Members(raw)
	if err != nil {
		return hit{}, err
	}
	h := hit{raw: raw, document: adapters.Get(members, "document")}
	inside, err := adapters.Members(h.document)
	if err != nil {
		return hit{}, err
	}
	h.id, _ = adapters.Text(adapters.Get(inside, "id"))
	h.curated = string(adapters.Get(members, "curated")) == "true"
	h.near = adapters.Get(members, "vector_distance") != nil || adapters.Get(members, "hybrid_search_info") != nil
	h.stored, _ = adapters.Text(adapters.Get(inside, adapters.SketchField))
	return h, nil
}

// bare returns the hit as the client asked for it.
func (q *query) bare(h hit) ([]byte, error) {
	document, err := q.bareDocument(h)
	if err != nil {
		return nil, err
	}
	if len(document) == len(h.document) {
		return h.raw, nil
	}
	return adapters.Set(h.raw, "document", document)
}

// bareDocument returns the hit's document as the client asked for it.
func (q *query) bareDocument(h hit) ([]byte, error) {
	return adapters.Cut(h.document, func(key string) bool {
		return key == "id" && !q.preset && !q.sees("id") || adapters.Our(key) && !(q.shown && q.sees(key))
	})
}

// clean returns the engine's answer to the search as the client asked for it.
func (q *query) clean(raw []byte) []byte {
	if q.shown {
		return raw
	}
	return adapters.Cleaned(raw, inHit)
}

// present puts the page's hits into a result and makes it one of the client's own page.
func (q *query) present(raw []byte, hits [][]byte) ([]byte, error) {
	if q.unseen() { // it is the client's own already
		return adapters.Set(raw, "hits", array(hits))
	}
	members, err := adapters.Members(raw)
	if err != nil {
		return nil, err
	}
	page, perPage := strconv.AppendInt(nil, int64(q.page), 10), strconv.AppendInt(nil, int64(q.perPage), 10)
	asked := adapters.Get(members, "request_params")
	if asked, err = replace(asked, "per_page", perPage); err != nil {
		return nil, err
	}
	if asked, err = replace(asked, "page", page); err != nil {
		return nil, err
	}
	for _, m := range []struct {
		key   string
		value []byte
	}{{"hits", array(hits)}, {"page", page}, {"request_params", asked}} {
		if raw, err = adapters.Set(raw, m.key, m.value); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// replace sets a member where it stands.
func replace(object []byte, key string, value []byte) ([]byte, error) {
	members, err := adapters.Members(object)
	if err != nil || adapters.Get(members, key) == nil {
		return object, err
	}
	return adapters.Set(object, key, value)
}

// unflattened returns a stored document less the flattened copies of its nested fields ("meta.text" beside "meta"): engines up to 0.24
// store them with every update, and a text that stands twice would make another sketch.
func unflattened(document []byte) []byte {
	if !bytes.Contains(document, []byte(`.`)) {
		return document
	}
	members, err := adapters.Members(document)
	if err != nil {
		return document
	}
	nested := map[string]bool{}
	for _, m := range members {
		if m.Value[0] == '{' || m.Value[0] == '[' {
			nested[m.Key] = true
		}
	}
	clean, err := adapters.Cut(document, func(key string) bool {
		root, _, dotted := strings.Cut(key, ".")
		return dotted && (nested[root] || root == "")
	})
	if err != nil {
		return document
	}
	return clean
}

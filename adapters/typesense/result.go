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
	places               places
	members              []jsonedit.Member // room for those of the hits
	err                  error             // why it can't be taken for an answer, or a *refusal
}

// hit is one hit as it stands.
type hit struct {
	raw      []byte
	id       string
	document []byte
	stored   []byte            // what stands in our field
	curated  bool              // the operator put it in its place
	near     bool              // it is a neighbour of a vector, or ranked as one
	dotted   bool              // the document has a name with a dot in it
	members  []jsonedit.Member // of the document, those that may lead to a sketched text
	// at is where in raw the document stands, ours where in raw our fields do; unmarked says that they stand in another way.
	at, ours extent
	unmarked bool
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

// Raw implements adapters.QueryResult.
func (r *result) Raw() []byte { return r.raw }

// parseResult reads the answer to an ask that stands alone. A *refusal is the engine's own error.
func parseResult(raw []byte, a ask) (*result, error) {
	reader := jsonedit.NewReader(raw)
	r := readResult(&reader, raw, a.perPage, nil)
	if !reader.Done() {
		return r, jsonedit.ErrMalformed
	}
	return r, r.check(a)
}

// declined returns an error of the result: the engine's own as the port has it.
func (r *result) declined(err error) error {
	refusal, ok := errors.AsType[*refusal](err)
	if !ok {
		return err
	}
	return &adapters.Declined{
		Status: refusal.code, Reason: refusal.reason, Final: refusal.final(), Most: refusal.mostPerPage(), Raw: r.raw,
	}
}

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

// refusalIn returns the engine's own error in a result, nil if there is none.
func refusalIn(result []jsonedit.Member) error {
	reason := jsonedit.Get(result, "error")
	if reason == nil {
		return nil
	}
	return newRefusal(reason, jsonedit.Get(result, "code"))
}

// newRefusal returns the engine's own error.
func newRefusal(reason, code []byte) error {
	number, err := strconv.Atoi(string(code))
	text, ok := jsonedit.Text(reason)
	if err != nil || !ok {
		return errors.New("an error without code or reason")
	}
	return &refusal{number, text}
}

// count returns a whole number, or -1.
func count(members []jsonedit.Member, key string) int {
	return whole(jsonedit.Get(members, key))
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
	members, err := jsonedit.Members(document)
	if err != nil {
		return document
	}
	nested := map[string]bool{}
	for _, m := range members {
		if m.Value[0] == '{' || m.Value[0] == '[' {
			nested[m.Key] = true
		}
	}
	clean, err := jsonedit.Cut(document, func(key string) bool {
		root, _, dotted := strings.Cut(key, ".")
		return dotted && (nested[root] || root == "")
	})
	if err != nil {
		return document
	}
	return clean
}

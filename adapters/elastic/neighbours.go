package elastic

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// maxNeighbours is the engines' limit on k and num_candidates.
const maxNeighbours = 10000

// readNeighbours prepares a search for nearest neighbours for a list of at least that many. It leaves any other search alone. Defaults that
// depend on the page's size are written into the body, since readings have other sizes.
func (q *clientSearch) readNeighbours(least int) error {
	pinned, _, err := raised(q.body, q.asked.Size, 0)
	if err != nil {
		return err
	}
	if q.fused != nil {
		q.base = pinned
		return q.readWindow()
	}
	longer, most, err := raised(q.body, q.asked.Size, least)
	if err != nil {
		return err
	}
	if !bytes.Equal(longer, pinned) {
		query := jsonedit.Get(q.members, "query")
		alone, _ := jsonedit.Members(query)
		mixed := query != nil && (jsonedit.Get(q.members, "knn") != nil || len(alone) != 1 || alone[0].Key != "knn")
		q.raised, q.asked.Neighbours = longer, &adapters.Neighbours{Raised: most, Mixed: mixed}
	}
	q.base = pinned
	return nil
}

// raised returns the search with the number of neighbours of every vector clause raised to least, where the client asks for
// fewer: a list of neighbours is no longer than k, so no further hit can fill a page from which hits are folded.
// The body itself comes back where there is nothing to raise. Clauses that only filter are left: there k decides which
// documents match. It goes over the body once, however many clauses there are and however deep. most is the largest number then.
func raised(body []byte, size, least int) (longer []byte, most int, err error) {
	raise := raise{body: body, size: size, least: min(least, maxNeighbours)}
	r := jsonedit.NewReader(body)
	for r.Enter('{'); r.Next(); {
		switch string(r.Key()) {
		case "knn":
			raise.clauses(r.Value())
		case "query":
			raise.query(&r, 1)
		case "retriever":
			raise.retriever(&r)
		}
	}
	if raise.err != nil || !r.Done() {
		return nil, 0, cmp.Or(raise.err, jsonedit.ErrMalformed)
	}
	return raise.edits.Apply(body), raise.most, nil
}

// raise collects what changes in a search.
type raise struct {
	body  []byte
	size  int // what a clause without a k of its own takes for it
	least int // what k is to be at least
	most  int // the largest k
	edits jsonedit.Edits
	err   error
}

// members returns those of an object in the body.
func (r *raise) members(object []byte) []jsonedit.Member {
	members, err := jsonedit.Members(object)
	r.err = cmp.Or(r.err, err)
	return members
}

// clauses raises one clause, or each of a list.
func (r *raise) clauses(value []byte) {
	elements, err := jsonedit.Elements(value)
	if err != nil {
		elements = [][]byte{value}
	}
	for _, element := range elements {
		r.clause(element)
	}
}

// maxQueryDepth is how many objects and lists of a query may lie within one another for its vector clauses to be raised. Engines grant 30
// queries within one another (indices.query.bool.max_nested_depth), of up to four such each.
const maxQueryDepth = 126

// query descends a query to its vector clauses.
func (r *raise) query(in *jsonedit.Reader, depth int) {
	if depth > maxQueryDepth {
		r.err = cmp.Or(r.err, errTooDeep)
		return
	}
	if in.Enter('[') {
		for in.Next() {
			r.query(in, depth+1)
		}
		return
	}
	if !in.Enter('{') {
		return
	}
	for in.Next() {
		switch string(in.Key()) {
		case "filter", "must_not":
		case "knn":
			if value := in.Value(); len(value) > 0 && value[0] == '{' {
				r.clause(value)
			}
		default:
			r.query(in, depth+1)
		}
	}
}

var errTooDeep = errors.New("the query is nested too deep")

// retriever descends the retrievers whose list is that of a query or of neighbours.
func (r *raise) retriever(in *jsonedit.Reader) {
	if !in.Enter('{') {
		return
	}
	for in.Next() {
		switch string(in.Key()) {
		case "knn":
			r.clause(in.Value())
		case "standard":
			r.query(in, 2)
		}
	}
}

// clause raises the number of neighbours of one clause: {"field", "query_vector", "k", "num_candidates"} on Elasticsearch,
// where a clause without k asks for as many as the search's size; {field: {"vector", "k"}} on OpenSearch, where one without k
// goes by distance.
func (r *raise) clause(value []byte) {
	members := r.members(value)
	if jsonedit.Get(members, "query_vector") == nil && jsonedit.Get(members, "query_vector_builder") == nil {
		for _, m := range members {
			inner, err := jsonedit.Members(m.Value)
			if err == nil && jsonedit.Get(inner, "vector") != nil && jsonedit.Get(inner, "k") != nil {
				r.number(inner, "k", 0)
			}
		}
		return
	}
	r.number(members, "k", r.size)
	if jsonedit.Get(members, "num_candidates") != nil {
		r.number(members, "num_candidates", 0)
	}
}

// number raises a number in an object. Where it lacks, what the engine takes instead is written down, if that is not 0: it
// would grow with the size that we ask for.
func (r *raise) number(object []jsonedit.Member, key string, instead int) {
	n, value := instead, jsonedit.Get(object, key)
	if value != nil {
		var err error
		if n, err = strconv.Atoi(string(value)); err != nil {
			r.err = cmp.Or(r.err, err)
			return
		}
	}
	n = max(n, r.least)
	if key == "k" {
		r.most = max(r.most, n)
	}
	if text := strconv.Itoa(n); value == nil {
		last := object[len(object)-1].Value
		end := r.at(last) + len(last)
		r.edits = append(r.edits, jsonedit.Edit{From: end, To: end, With: []byte(`,"` + key + `":` + text)})
	} else if text != string(value) {
		r.edits = append(r.edits, jsonedit.Edit{From: r.at(value), To: r.at(value) + len(value), With: []byte(text)})
	}
}

// at returns the place of a part of the body that shares its memory.
func (r *raise) at(part []byte) int { return cap(r.body) - cap(part) }

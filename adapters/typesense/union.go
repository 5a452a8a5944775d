package typesense

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// union is a multi-search of release 28 or later whose lists the engine merges into one: the list of its first search with those of the others in it. The page
// counts from the query string alone. Each reading asks every search for the same. As documented, a reply does not say of which search or collection a hit
// is. So all searches have to be of one collection and to ask for the same fields. Later releases name the search (search_index), which tells the hits of one document
// apart where the engine does not remove such duplicates. It implements adapters.Search, as far as it differs from its first search.
type union struct {
	*query   // the first search
	searches []*query
	request  *adapters.Request // the client's, less the page and what a reading steers
	own      *adapters.Request
	sketched []string
}

// ownPage are the parameters of a page, which a search of a union has in vain.
var ownPage = []string{"page", "per_page", "offset", "limit", "limit_hits"}

// unite returns the union of searches, or why it is left alone.
func unite(plain *adapters.Request, list []*query, params []adapters.Param, p adapters.Plan) (*union, adapters.Reason) {
	first := list[0]
	for _, q := range list {
		a := &q.asked
		switch {
		case a.Reason != "":
			return nil, a.Reason
		case a.Counting != nil && a.Size == 0:
			return nil, adapters.ReasonUncountable
		case a.Target != first.asked.Target || !reflect.DeepEqual(q.controls, first.controls) || q.vector != nil || a.Unseen != "" || q.key.own || len(q.key.fixed) > 0 ||
			!slices.Equal(q.fields.include, first.fields.include) || !slices.Equal(q.fields.exclude, first.fields.exclude):
			return nil, "union"
		}
		q.atOnce = adapters.MaxAtOnce // each page is a request of its own
	}
	u := &union{query: first, searches: list, own: plain, sketched: sketchedBy(p.Rules)}
	request := *plain
	request.RawQuery = unsteered(params, steered, list)
	u.request, first.asked.Native, first.asked.Sequence = &request, nil, u
	first.asked.Counting, first.asked.Uncounted = nil, first.asked.Uncounted || first.asked.Counting != nil // its facets are of several searches
	return u, ""
}

// Requests implements adapters.Search. Each is a page of one content, for all searches.
func (u *union) Requests(r *adapters.Reading, replies []*adapters.Reply) ([]*adapters.Request, error) {
	if r.AsWritten {
		own := *u.own
		own.Hits, own.Own = u.page.size, true
		return []*adapters.Request{&own}[min(len(replies), 1):], nil
	}
	var requests []*adapters.Request
	var bodies [][][]byte
	for i, q := range u.searches {
		parts, err := q.Requests(r, nil)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			requests, bodies = parts, make([][][]byte, len(parts))
		}
		for j, part := range parts {
			bodies[j] = append(bodies[j], part.Body)
		}
	}
	requests = requests[len(replies):min(len(replies)+adapters.MaxAtOnce, len(requests))]
	for j, part := range requests {
		request, page := *u.request, part.For.(enginePage)
		request.Hits, request.JudgingOnly, request.For = part.Hits, part.JudgingOnly, page
		if request.RawQuery != "" {
			request.RawQuery += "&"
		}
		request.RawQuery += fmt.Sprintf("page=%d&per_page=%d", page.number, page.size)
		var err error
		if request.Body, err = jsonedit.Set(request.Body, "searches", jsonedit.Array(bodies[len(replies)+j])); err != nil {
			return nil, err
		}
		requests[j] = &request
	}
	return requests, nil
}

// Listing implements adapters.Search.
func (u *union) Listing(r *adapters.Reading, replies []*adapters.Reply) (*adapters.Listing, error) {
	pages := u.pagesOf(r)
	for i, reply := range replies {
		in := jsonedit.NewReader(reply.Body)
		res := readResult(&in, reply.Body, maxPerPage, u.sketched)
		if !in.Done() {
			return nil, jsonedit.ErrMalformed
		}
		if neighbours, fused := res.holdsNeighbours(); neighbours || fused {
			return nil, adapters.Alone{Reason: adapters.ReasonVector, Searched: true}
		}
		res.requested = pages[i%len(pages)] // all of the first content, then all of the second
		reply.Parsed = res
	}
	return u.query.Listing(r, replies)
}

// Narrowed implements adapters.Search.
func (u *union) Narrowed(error) adapters.Search { return nil }

// List implements adapters.Sequence.
func (u *union) List() string {
	lists := make([]string, len(u.searches))
	for i, q := range u.searches {
		lists[i] = q.List()
	}
	return strings.Join(lists, "\n")
}

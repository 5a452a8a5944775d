package typesense

import (
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// result is the engine's answer to one search.
type result struct {
	raw  []byte
	hits []hit
	// found is the engine's total; collection the name of what was searched, not that of an alias.
	found      int
	collection string
	// page and the rank of its first hit are those that the engine names, -1 where it names none. grouped says that there are groups, not hits.
	page    enginePage
	first   int
	grouped bool
	// Where some of its members are, zero for those that are not there. atPerPage and atCopy, another page, are among the parameters.
	atHits, atFound, atPage, atPerPage, atCopy extent
	members                                    []jsonedit.Member // room for those of the hits
	err                                        error             // why it is no answer; a *Declined is the engine's own error
}

// extent is where something begins and ends in a result or in a hit.
type extent struct{ from, to int }

// hit is one hit of a result.
type hit struct {
	raw      []byte
	id       string
	document []byte
	at       int    // where in raw the document begins
	stored   []byte // the sketch, as its field holds it
	// ours is where in raw our fields are, each with the comma before it. scattered says that they do not follow one another like this.
	ours      extent
	scattered bool
	curated   bool              // the operator put it in its place
	near      bool              // it is a neighbour of a vector, or ranked as one
	dotted    bool              // the document has a name with a dot in it
	members   []jsonedit.Member // of the document, those that may lead to a sketched text
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

// near reports whether the list is one of neighbours, wholly or in part: then it differs with how many ranks are asked for.
func (res *result) near() bool {
	return slices.ContainsFunc(res.hits, func(h hit) bool { return h.near })
}

// hits are those of a reading.
type hits struct {
	*reader
	in *result // that of the first page, around its hits
	// list are the hits in the first content, judged the same hits in the last.
	list, judged []hit
	withheld     bool // the sketched texts can't be read
	at           int  // the hit that is looked at
}

// listing joins the pages of each content to a list of hits, once each reply is the one to the search for its page and all are of one collection.
func (r *reader) listing(replies []*adapters.Reply) (*adapters.Listing, error) {
	results := make([]*result, len(replies))
	for i, reply := range replies {
		results[i] = resultOf(reply)
		if err := results[i].check(&r.pages[i%len(r.pages)]); err != nil {
			return nil, err
		}
		if results[i].collection != results[0].collection {
			return nil, adapters.ErrMoved
		}
		if r.q.vector == nil && results[i].near() {
			return nil, adapters.Alone{Reason: adapters.ReasonVector, Searched: true} // newer engines make vectors of texts by themselves
		}
	}
	q, first, n, err := r.q, results[0], len(r.pages), error(nil)
	rule := q.rules.For(first.collection)
	h := &hits{reader: r, in: first, withheld: rule == nil || !q.mayRead(rule.Fields) || q.hidesID()}
	l := &adapters.Listing{
		Hits: h, Total: first.found, Framed: r.Frame, Full: r.Neighbours > 0 && first.found == max(r.Neighbours, r.pages[0].to()),
	}
	if r.contents[0] == frame {
		return l, nil
	}
	if h.list, err = r.joined(results[:n]); err != nil {
		return nil, err
	}
	if h.judged = h.list; len(r.contents) > 1 {
		if h.judged, err = r.joined(results[n:]); err != nil {
			return nil, err
		}
	}
	if len(h.judged) != len(h.list) {
		return nil, adapters.ErrMoved
	}
	for i := range h.list {
		switch {
		case h.list[i].id == "" && !q.hidesID():
			return nil, errors.New("a hit without id")
		case h.judged[i].id != h.list[i].id:
			return nil, adapters.ErrMoved
		}
	}
	return l, nil
}

// asSent reads the result of the client's own search. Where nothing else tells the page, it finds out whether that can be cut from a list.
func (r *reader) asSent(own *result) (*adapters.Listing, error) {
	unseen := r.q.asked.Unseen
	if err := own.check(nil); err != nil && (unseen == "" || !own.grouped) {
		return nil, err
	}
	var reason adapters.Reason
	switch {
	case unseen == "":
	case own.grouped:
		reason = "grouped"
	case own.page.size == 0:
		reason = adapters.ReasonSizeZero
	case own.page.size < 0 || own.first < 0 || own.page.size > maxPerPage:
		reason = unseen
	case own.near():
		reason = adapters.ReasonVector
	}
	if reason != "" {
		return nil, adapters.Alone{Reason: reason}
	}
	return &adapters.Listing{Hits: &hits{reader: r, in: own}, Total: own.found, From: own.first, Size: own.page.size}, nil
}

// joined returns the hits of the ranks of a reading, as far as the list goes, from pages of one content. Pages in a row must show the same hits
// where they overlap, and none twice.
func (r *reader) joined(results []*result) ([]hit, error) {
	var list []hit
	if r.Ranks != nil {
		for _, rank := range r.Ranks {
			i := slices.IndexFunc(r.pages, func(p enginePage) bool { return rank >= p.from() && rank < p.to() })
			if i < 0 {
				return nil, adapters.ErrMoved
			}
			at := rank - r.pages[i].from()
			if at >= len(results[i].hits) {
				break
			}
			list = append(list, results[i].hits[at])
		}
		return list, nil
	}
	start, ended, ranks := r.pages[0].from(), false, map[string]int{}
	for i, result := range results {
		from := r.pages[i].from() - start
		if ended && len(result.hits) > 0 && from+len(result.hits) > len(list) {
			return nil, adapters.ErrMoved
		}
		ended = ended || len(result.hits) < r.pages[i].size
		list = slices.Grow(list, len(result.hits))
		for at, h := range result.hits {
			rank, seen := ranks[h.id]
			if from+at < len(list) && list[from+at].id != h.id || h.id != "" && seen && rank != from+at {
				return nil, adapters.ErrMoved
			}
			if ranks[h.id] = from + at; from+at == len(list) {
				list = append(list, h)
			}
		}
	}
	skip := r.From - start
	return list[min(skip, len(list)):min(skip+r.To-r.From, len(list))], nil
}

// inTexts reports whether the hits are judged with their sketched texts shown.
func (h *hits) inTexts() bool { return h.contents[len(h.contents)-1] == texts }

// Len implements adapters.Hits.
func (h *hits) Len() int { return len(h.list) }

// Name implements adapters.Hits.
func (h *hits) Name(i int) []byte { return append(appendID([]byte{'{'}, &h.list[i]), '}') }

// Seen implements adapters.Hits.
func (h *hits) Seen(i int) rule.Seen {
	own, id := &h.list[i], h.list[i].id
	if id == "" { // the document is all that tells it from others
		id = "\x00" + string(own.document)
	}
	h.at = i
	seen := rule.Seen{
		Index: h.in.collection, ID: id, Stored: h.judged[i].stored, Shown: h, Withheld: h.withheld, Pinned: own.curated,
	}
	if !h.inTexts() && !own.dotted {
		seen.Members = own.members
	}
	return seen
}

// Values implements adapters.Shown.
func (h *hits) Values(d rule.Deciding) []string {
	if len(h.q.asked.Scope.Deciding) == 0 {
		return nil
	}
	return deciding(h.judged[h.at].unflattened(), d)
}

// Document implements adapters.Shown.
func (h *hits) Document(rule *rule.Rule) []byte {
	switch {
	case !h.q.mayRead(rule.Fields):
		return nil
	case h.inTexts() && rule.Compute:
		return h.judged[h.at].unflattened()
	case h.contents[0] != full || !h.q.seesText(rule.Fields):
		return nil
	}
	return h.list[h.at].unflattened()
}

// unflattened returns the hit's document [unflattened].
func (h *hit) unflattened() []byte {
	if !h.dotted {
		return h.document
	}
	return unflattened(h.document)
}

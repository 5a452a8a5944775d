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
	requested enginePage // the page that the search was for, where it is one of a reading
	raw       []byte
	hits      []hit
	// found is the engine's total; collection the name of what was searched, not that of an alias.
	found      int
	collection string
	// page and the rank of its first hit are those that the engine names, -1 where it names none. grouped says that there are groups, not hits.
	page    enginePage
	first   int
	grouped bool
	// Where some of its members are, zero for those that are not there. atPerPage and atCopy are in request_params: its per_page and its page.
	atHits, atFound, atPage, atPerPage, atCopy extent
	atPerPages                                 []extent          // of a union, in the parameters of each search
	members                                    []jsonedit.Member // room for those of the hits
	ids                                        jsonedit.Strings
	err                                        error // why it is no answer; a *Declined is the engine's own error
}

// extent is where something begins and ends in a result or in a hit.
type extent struct{ from, to int }

// hit is one hit of a result. It implements rule.Shown.
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
	neighbour bool              // of a vector
	fused     bool              // ranked in two lists
	search    string            // of a union, the number of the search that found it, with a colon
	dotted    bool              // the document has a name with a dot in it
	members   []jsonedit.Member // of the document, those that may lead to a sketched text
	// withTexts is the hit, in this content or another, whose document shows all sketched texts; withDeciding is the one whose document shows the
	// deciding fields. They are nil where none does.
	withTexts, withDeciding *hit
}

// Listing implements adapters.Search. It joins the pages of each content to a list of hits, once each reply is the one to the search for its page
// and all are of one collection.
func (q *query) Listing(r *adapters.Reading, replies []*adapters.Reply) (*adapters.Listing, error) {
	if r.AsWritten {
		return q.listingAsWritten(resultOf(replies[0]))
	}
	results := make([]*result, len(replies))
	for i, reply := range replies {
		results[i] = resultOf(reply)
		if err := results[i].check(&results[i].requested); err != nil {
			return nil, err
		}
		if results[i].collection != results[0].collection {
			return nil, adapters.ErrMoved
		}
		if err := q.checkKind(results[i]); err != nil {
			return nil, err
		}
	}
	first := results[0]
	l := &adapters.Listing{Parsed: first, Total: first.found, Framed: r.Frame && r.Sources}
	if neighbours := q.neighbourCount(r); neighbours > 0 {
		l.Full = first.found == max(neighbours, first.requested.to())
	}
	contents := q.contentsOf(r)
	if contents[0] == noHits {
		return l, nil
	}
	pages := len(results) / len(contents)
	list, err := joinPages(r, results[:pages])
	if err != nil {
		return nil, err
	}
	judged := list // as a rule what is shown is what is judged
	if len(contents) > 1 {
		if judged, err = joinPages(r, results[pages:]); err != nil {
			return nil, err
		}
	}
	if len(judged) != len(list) {
		return nil, adapters.ErrMoved
	}
	for i := range list {
		switch {
		case list[i].id == "" && !q.hidesID():
			return nil, errors.New("a hit without id")
		case judged[i].id != list[i].id:
			return nil, adapters.ErrMoved
		}
	}
	l.Hits = q.seen(first.collection, contents[0], contents[len(contents)-1], list, judged)
	return l, nil
}

// seen returns what is judged of hits, given them in the first content and the same ones in the last.
func (q *query) seen(collection string, shown, judging content, list, judged []hit) []rule.Seen {
	r := q.rules.For(collection)
	readable, inTexts := r != nil && q.mayRead(r.Fields), judging == texts
	seen := make([]rule.Seen, len(list))
	for i := range list {
		h, last := &list[i], &judged[i]
		switch {
		case !readable:
		case inTexts && r.Compute:
			h.withTexts = last
		case shown == full && q.seesText(r.Fields):
			h.withTexts = h
		}
		if len(q.asked.Scope.Deciding) > 0 {
			h.withDeciding = last
		}
		s := &seen[i]
		*s = rule.Seen{
			Index: collection, ID: h.search + h.id, Document: h.id, Stored: last.stored, Shown: h, Withheld: !readable || q.hidesID(), Pinned: h.curated,
		}
		if q.asked.Scope.Group {
			s.Cluster, _ = jsonedit.Text(jsonedit.Lookup(last.document, rule.ClusterField))
		}
		if h.id == "" { // the document is all that tells it from others
			s.ID = "\x00" + string(h.document)
		}
	}
	return seen
}

// listingAsWritten reads the result of the client's own search. Where nothing else tells the page, it finds out whether that can be cut from a list.
func (q *query) listingAsWritten(own *result) (*adapters.Listing, error) {
	unseen := q.asked.Unseen
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
	default:
		if neighbours, fused := own.holdsNeighbours(); neighbours || fused {
			reason = adapters.ReasonVector
		}
	}
	if reason != "" {
		return nil, adapters.Alone{Reason: reason}
	}
	return &adapters.Listing{Parsed: own, Total: own.found, From: own.first, Size: own.page.size}, nil
}

// joinPages returns the hits of the ranks of a reading, as far as the list goes, from its pages of one content. Pages in a row must show the same hits
// where they overlap, and none twice.
func joinPages(r *adapters.Reading, results []*result) ([]hit, error) {
	var list []hit
	if r.Ranks != nil {
		for _, rank := range r.Ranks {
			i := slices.IndexFunc(results, func(p *result) bool { return rank >= p.requested.from() && rank < p.requested.to() })
			if i < 0 {
				return nil, adapters.ErrMoved
			}
			at := rank - results[i].requested.from()
			if at >= len(results[i].hits) {
				break
			}
			list = append(list, results[i].hits[at])
		}
		return list, nil
	}
	list = results[0].hits[:0] // the first page stays where it is
	start, ended, ranks := results[0].requested.from(), false, make(map[string]int, len(results)*len(results[0].hits))
	for _, result := range results {
		from := result.requested.from() - start
		if ended && len(result.hits) > 0 && from+len(result.hits) > len(list) {
			return nil, adapters.ErrMoved
		}
		ended = ended || len(result.hits) < result.requested.size
		for at, h := range result.hits {
			rank, seen := ranks[h.search+h.id]
			if from+at < len(list) && list[from+at].id != h.id || h.id != "" && seen && rank != from+at {
				return nil, adapters.ErrMoved
			}
			if ranks[h.search+h.id] = from + at; from+at == len(list) {
				list = append(list, h)
			}
		}
	}
	skip := r.From - start
	return list[min(skip, len(list)):min(skip+r.To-r.From, len(list))], nil
}

// Name implements adapters.Search.
func (q *query) Name(hit *rule.Seen) []byte { return append(appendID([]byte{'{'}, hitOf(hit)), '}') }

// Values implements rule.Shown.
func (h *hit) Values(d rule.Deciding) []string {
	if h.withDeciding == nil {
		return nil
	}
	return deciding(h.withDeciding.unflattened(), d)
}

// Document implements rule.Shown.
func (h *hit) Document(*rule.Rule) []byte {
	if h.withTexts == nil {
		return nil
	}
	return h.withTexts.unflattened()
}

// Members implements rule.Parsed.
func (h *hit) Members() []jsonedit.Member {
	if h.withTexts != h || h.dotted {
		return nil
	}
	return h.members
}

// unflattened returns the hit's document [unflattened].
func (h *hit) unflattened() []byte {
	if !h.dotted {
		return h.document
	}
	return unflattened(h.document)
}

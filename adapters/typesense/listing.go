package typesense

import (
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Listing implements adapters.Search. It joins the pages of each content to a list of hits, once each reply is the one to the search for its page
// and all are of one collection.
func (q *query) Listing(r *adapters.Reading, replies []*adapters.Reply) (*adapters.Listing, error) {
	if r.AsWritten {
		return q.listingAsWritten(resultOf(replies[0]))
	}
	results := make([]*result, len(replies))
	for i, reply := range replies {
		results[i] = resultOf(reply)
		if err := results[i].check(&results[i].asked.enginePage); err != nil {
			return nil, err
		}
		if results[i].collection != results[0].collection {
			return nil, adapters.ErrMoved
		}
		if q.vector == nil && results[i].near() {
			return nil, adapters.Alone{Reason: adapters.ReasonVector, Searched: true} // newer engines make vectors of texts by themselves
		}
	}
	first, last := results[0], results[len(results)-1]
	l := &adapters.Listing{Parsed: first, Total: first.found, Framed: r.Frame && r.Sources}
	if neighbours := q.neighbours(r); neighbours > 0 {
		l.Full = first.found == max(neighbours, first.asked.to())
	}
	if first.asked.content == frame {
		return l, nil
	}
	list, err := joined(r, results, first.asked.content)
	if err != nil {
		return nil, err
	}
	judged := list
	if last.asked.content != first.asked.content {
		if judged, err = joined(r, results, last.asked.content); err != nil {
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
	l.Hits = q.seen(first.collection, first.asked.content, last.asked.content, list, judged)
	return l, nil
}

// seen returns what is judged of hits, given them in the first content and the same ones in the last.
func (q *query) seen(collection string, shown, judging content, list, judged []hit) []rule.Seen {
	r := q.rules.For(collection)
	readable, inTexts := r != nil && q.mayRead(r.Fields), judging == texts
	seen := make([]rule.Seen, len(list))
	for i := range list {
		own, last := &list[i], &judged[i]
		switch {
		case !readable:
		case inTexts && r.Compute:
			own.texts = last
		case shown == full && q.seesText(r.Fields):
			own.texts = own
		}
		if len(q.asked.Scope.Deciding) > 0 {
			own.decided = last
		}
		s := &seen[i]
		*s = rule.Seen{
			Index: collection, ID: own.id, Stored: last.stored, Shown: own, Withheld: !readable || q.hidesID(), Pinned: own.curated,
		}
		if own.id == "" { // the document is all that tells it from others
			s.ID = "\x00" + string(own.document)
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
	case own.near():
		reason = adapters.ReasonVector
	}
	if reason != "" {
		return nil, adapters.Alone{Reason: reason}
	}
	return &adapters.Listing{Parsed: own, Total: own.found, From: own.first, Size: own.page.size}, nil
}

// joined returns the hits of the ranks of a reading, as far as the list goes, from the pages of one content. Pages in a row must show the same hits
// where they overlap, and none twice.
func joined(r *adapters.Reading, all []*result, of content) ([]hit, error) {
	results := slices.DeleteFunc(slices.Clone(all), func(result *result) bool { return result.asked.content != of })
	var list []hit
	if r.Ranks != nil {
		for _, rank := range r.Ranks {
			i := slices.IndexFunc(results, func(p *result) bool { return rank >= p.asked.from() && rank < p.asked.to() })
			if i < 0 {
				return nil, adapters.ErrMoved
			}
			at := rank - results[i].asked.from()
			if at >= len(results[i].hits) {
				break
			}
			list = append(list, results[i].hits[at])
		}
		return list, nil
	}
	start, ended, ranks := results[0].asked.from(), false, map[string]int{}
	for _, result := range results {
		from := result.asked.from() - start
		if ended && len(result.hits) > 0 && from+len(result.hits) > len(list) {
			return nil, adapters.ErrMoved
		}
		ended = ended || len(result.hits) < result.asked.size
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

// Name implements adapters.Search.
func (q *query) Name(hit *rule.Seen) []byte { return append(appendID([]byte{'{'}, hitOf(hit)), '}') }

// Values implements rule.Shown.
func (h *hit) Values(d rule.Deciding) []string {
	if h.decided == nil {
		return nil
	}
	return deciding(h.decided.unflattened(), d)
}

// Document implements rule.Shown.
func (h *hit) Document(*rule.Rule) []byte {
	if h.texts == nil {
		return nil
	}
	return h.texts.unflattened()
}

// Members implements rule.Parsed.
func (h *hit) Members() []jsonedit.Member {
	if h.texts != h || h.dotted {
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

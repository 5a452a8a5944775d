package typesense

import (
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// hits are those of a reading.
type hits struct {
	q  *query
	in *result // that of the first page, around its hits
	// list are the hits in the reading's own content; of sketches alone they show no more than what is judged. judged are the same hits
	// as they are read beside that, nil where they are not; inTexts says that these show the sketched texts.
	list, judged []hit
	bare         bool
	inTexts      bool
	// readable says that the client's key lets the texts be seen, withheld that they can't be read again.
	readable, withheld bool
	at                 int    // the hit that is looked at
	clean              []byte // its document [unflattened], once its values were asked for
}

// Listing implements adapters.Reader. It joins the pages of each content to a list of hits.
func (r *reader) Listing(given []adapters.QueryResult) (*adapters.Listing, error) {
	q, asks := r.q, r.asks
	if len(given) != len(asks) {
		return nil, errors.New("not as many results as searches")
	}
	results := make([]*result, len(given))
	for i := range given {
		results[i] = given[i].(*result)
		if err := results[i].check(asks[i]); err != nil && !(r.AsSent && q.asked.Unseen != "" && results[i].grouped) {
			return nil, results[i].declined(err)
		}
		if results[i].collection != results[0].collection {
			return nil, adapters.ErrMoved
		}
		if q.vector == nil && !r.AsSent && results[i].near() {
			return nil, adapters.Alone{Reason: adapters.ReasonVector, Searched: true} // newer engines make vectors of texts by themselves
		}
	}
	first := results[0]
	if r.AsSent && q.asked.Unseen != "" {
		if reason := q.inTheWay(first); reason != "" {
			return nil, adapters.Alone{Reason: reason}
		}
	}
	h := &hits{q: q, in: first}
	l := &adapters.Listing{Hits: h, Total: first.found, From: first.first, Size: first.perPage, Framed: asks[0].facets}
	l.Full = r.Neighbours > 0 && first.found == max(r.Neighbours, asks[0].page*asks[0].perPage)
	switch {
	case asks[0].content == frame:
		return l, nil
	case r.Own:
		h.list = first.hits
		return l, nil
	}
	rule := q.rules.For(first.collection)
	hidesID := q.hidesID()
	h.readable = rule != nil && q.mayRead(rule.Fields)
	h.withheld, h.bare = !h.readable || hidesID, !r.Sources && !hidesID
	for i := 0; i < len(results); {
		n := i
		for n < len(results) && asks[n].content == asks[i].content {
			n++
		}
		var list []hit
		var err error
		if r.Ranks != nil {
			list, err = picked(r.Ranks, results[i:n], asks[i:n])
		} else {
			list, err = inARow(&r.Reading, results[i:n], asks[i:n])
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			h.list = list
		}
		if asks[i].content != full {
			h.judged, h.inTexts = list, asks[i].content == texts
		}
		i = n
	}
	return l, h.check()
}

// inTheWay returns why the client's own page can't be cut from a list, or nothing, by the engine's reply to its own search.
func (q *query) inTheWay(r *result) adapters.Reason {
	switch {
	case r.grouped:
		return "grouped"
	case r.perPage == 0:
		return adapters.ReasonSizeZero
	case r.perPage < 0 || r.first < 0 || r.perPage > maxPerPage:
		return q.asked.Unseen
	case r.near():
		return adapters.ReasonVector
	}
	return ""
}

// inARow returns the hits of the ranks of a reading from pages in order, which must show the same hits where they overlap, and none twice.
func inARow(r *adapters.Reading, results []*result, asks []ask) ([]hit, error) {
	start, most := asks[0].from(), 0
	for _, r := range results {
		most += len(r.hits)
	}
	list, ended := make([]hit, 0, most), false
	ranks := make(map[string]int, most)
	for i, r := range results {
		from := asks[i].from() - start
		if ended && len(r.hits) > 0 && from+len(r.hits) > len(list) {
			return nil, adapters.ErrMoved
		}
		ended = ended || len(r.hits) < asks[i].perPage
		for at, h := range r.hits {
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

// picked returns the hits of ranks, in their order, up to where the list ends.
func picked(ranks []int, results []*result, asks []ask) ([]hit, error) {
	var list []hit
	for _, rank := range ranks {
		i := slices.IndexFunc(asks, func(a ask) bool { return rank >= a.from() && rank < a.from()+a.perPage })
		if i < 0 {
			return nil, adapters.ErrMoved
		}
		at := rank - asks[i].from()
		if at >= len(results[i].hits) {
			break
		}
		list = append(list, results[i].hits[at])
	}
	return list, nil
}

// check reports whether all contents show the same hits.
func (h *hits) check() error {
	if h.judged != nil && len(h.judged) != len(h.list) {
		return adapters.ErrMoved
	}
	for i := range h.list {
		switch {
		case h.list[i].id == "" && !h.q.hidesID():
			return errors.New("a hit without id")
		case h.judged != nil && h.judged[i].id != h.list[i].id:
			return adapters.ErrMoved
		}
	}
	return nil
}

// Len implements adapters.Hits.
func (h *hits) Len() int { return len(h.list) }

// Name implements adapters.Hits.
func (h *hits) Name(i int) []byte { return append(appendID([]byte{'{'}, &h.list[i]), '}') }

// Seen implements adapters.Hits.
func (h *hits) Seen(i int) rule.Seen {
	shown := &h.list[i]
	read := shown
	if h.judged != nil {
		read = &h.judged[i]
	}
	h.at, h.clean = i, nil
	seen := rule.Seen{
		Index: h.in.collection, ID: shown.identity(), Stored: read.stored, Shown: h, Withheld: h.withheld, Pinned: shown.curated,
	}
	if !h.inTexts && !shown.dotted {
		seen.Members = shown.members
	}
	return seen
}

// Values implements adapters.Shown.
func (h *hits) Values(d rule.Deciding) []string {
	if len(h.q.asked.Scope.Deciding) == 0 {
		return nil
	}
	if h.clean == nil {
		read := h.list
		if h.judged != nil {
			read = h.judged
		}
		h.clean = unflattened(read[h.at].document)
	}
	return deciding(h.clean, d)
}

// Document implements adapters.Shown.
func (h *hits) Document(rule *rule.Rule) []byte {
	switch {
	case !h.readable:
		return nil
	case h.inTexts && rule.Compute:
		return h.judged[h.at].plain()
	case h.bare || !h.q.seesText(rule.Fields):
		return nil
	}
	return h.list[h.at].plain()
}

// identity tells whether two readings show the same hit. Where the id is hidden, it is all that is shown.
func (h *hit) identity() string {
	if h.id == "" {
		return "\x00" + string(h.document)
	}
	return h.id
}

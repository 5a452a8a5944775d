package typesense

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// hits are those of a reading.
type hits struct {
	q  *query
	in *result // that of the first page, around its hits
	// list are the hits as the reading shows them, judged the same hits as they are read to be judged: others only where that is more than the
	// client sees.
	list, judged []hit
	// bare says that list shows no more than what is judged, inTexts that judged shows the sketched texts, withheld that these can't be read.
	bare, inTexts, withheld bool
	at                      int // the hit that is looked at
}

// Listing implements adapters.Reader. It joins the pages of each content to a list of hits.
func (r *reader) Listing(given []adapters.QueryResult) (*adapters.Listing, error) {
	q, asks := r.q, r.asks
	if len(given) != len(asks) {
		return nil, errors.New("not as many results as searches")
	}
	guessed := r.AsSent && q.asked.Unseen != "" // which page it is
	results := make([]*result, len(given))
	for i := range given {
		results[i] = given[i].(*result)
		if err := results[i].check(asks[i]); err != nil && !(guessed && results[i].grouped) {
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
	if guessed {
		if reason := q.inTheWay(first); reason != "" {
			return nil, adapters.Alone{Reason: reason}
		}
	}
	h := &hits{q: q, in: first, bare: true}
	l := &adapters.Listing{Hits: h, Total: first.found, From: first.first, Size: first.perPage, Framed: asks[0].facets}
	l.Full = r.Neighbours > 0 && first.found == max(r.Neighbours, asks[0].to())
	switch {
	case asks[0].content == frame:
		return l, nil
	case r.Own:
		h.list, h.judged = first.hits, first.hits
		return l, nil
	}
	rule := q.rules.For(first.collection)
	h.withheld, h.bare = rule == nil || !q.mayRead(rule.Fields) || q.hidesID(), !r.Sources && !q.hidesID()
	n, last := len(asks), asks[len(asks)-1].content
	if h.inTexts = last == texts; last != asks[0].content {
		n /= 2
	}
	var err error
	if h.list, err = r.joined(asks[:n], results[:n]); err != nil {
		return nil, err
	}
	if h.judged = h.list; n < len(asks) {
		if h.judged, err = r.joined(asks[n:], results[n:]); err != nil {
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

// joined returns the hits of the ranks of a reading, as far as the list goes, from pages of one content. Pages in a row must show the same hits
// where they overlap, and none twice.
func (r *reader) joined(asks []ask, results []*result) ([]hit, error) {
	var list []hit
	if r.Ranks != nil {
		for _, rank := range r.Ranks {
			i := slices.IndexFunc(asks, func(a ask) bool { return rank >= a.from() && rank < a.to() })
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
	start, ended, ranks := asks[0].from(), false, map[string]int{}
	for i, result := range results {
		from := asks[i].from() - start
		if ended && len(result.hits) > 0 && from+len(result.hits) > len(list) {
			return nil, adapters.ErrMoved
		}
		ended = ended || len(result.hits) < asks[i].perPage
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

// Len implements adapters.Hits.
func (h *hits) Len() int { return len(h.list) }

// Name implements adapters.Hits.
func (h *hits) Name(i int) []byte { return append(appendID([]byte{'{'}, &h.list[i]), '}') }

// Seen implements adapters.Hits.
func (h *hits) Seen(i int) rule.Seen {
	shown, id := &h.list[i], h.list[i].id
	if id == "" { // the document is all that tells it from others
		id = "\x00" + string(shown.document)
	}
	h.at = i
	seen := rule.Seen{
		Index: h.in.collection, ID: id, Stored: h.judged[i].stored, Shown: h, Withheld: h.withheld, Pinned: shown.curated,
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
	return deciding(h.judged[h.at].plain(), d)
}

// Document implements adapters.Shown.
func (h *hits) Document(rule *rule.Rule) []byte {
	switch {
	case !h.q.mayRead(rule.Fields):
		return nil
	case h.inTexts && rule.Compute:
		return h.judged[h.at].plain()
	case h.bare || !h.q.seesText(rule.Fields):
		return nil
	}
	return h.list[h.at].plain()
}

// Dates are whole numbers of Unix seconds, as the engine recommends. A number that as seconds lies beyond the year 9999 is taken for
// milliseconds, which many write; anything but a number is no date.
const endOfSeconds = 253402300800

// decidingFields returns the fields by which hits are folded or chosen, each with the object that it stands in.
func decidingFields(deciding []rule.Deciding) []string {
	var fields []string
	for _, d := range deciding {
		fields = append(fields, d.Field)
	}
	return rooted(fields)
}

// rooted returns fields, each with the object that it stands in: a collection without nested fields takes a dotted name for a name.
func rooted(fields []string) []string {
	var list []string
	for _, field := range fields {
		root, _, _ := strings.Cut(field, ".")
		for _, name := range []string{field, root} {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// deciding returns the values of a deciding field in a document that is [unflattened]. What is not shown of it, by a key's will above all, is
// not there.
func deciding(document []byte, d rule.Deciding) (values []string) {
	visit(document, d.Field, func(value []byte) {
		text, ok := jsonedit.ValueText(value)
		if d.Date {
			text, ok = milliseconds(value)
		}
		if ok {
			values = append(values, text)
		}
	})
	return values
}

// visit calls found with each value, be it in an array, that a path leads to in a JSON value: neither an object nor null. Where several members
// of an object lead along it, that with the shortest name counts, if it leads to anything: others are copies that the engine has written beside it.
func visit(value []byte, path string, found func(value []byte)) {
	jsonedit.Leaves(value, func(leaf []byte) {
		if path == "" {
			if leaf[0] != '{' && leaf[0] != 'n' {
				found(leaf)
			}
			return
		}
		members, _ := jsonedit.Members(leaf) // there are none in what is no object
		slices.SortStableFunc(members, func(a, b jsonedit.Member) int { return cmp.Compare(len(a.Key), len(b.Key)) })
		any := false
		for _, m := range members {
			rest, leads := strings.CutPrefix(path, m.Key)
			if path == "" || any || !leads || rest != "" && rest[0] != '.' {
				continue
			}
			visit(m.Value, strings.TrimPrefix(rest, "."), func(value []byte) {
				any = true
				found(value)
			})
		}
	})
}

// milliseconds returns a date as Unix milliseconds in digits, and false for what is none.
func milliseconds(value []byte) (digits string, ok bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		number, err := strconv.ParseFloat(string(value), 64)
		if err != nil || !(math.Abs(number) < 1e18) {
			return "", false
		}
		if math.Abs(number) < endOfSeconds {
			return strconv.FormatInt(int64(number*1000), 10), true
		}
		n = int64(number)
	}
	if n > -endOfSeconds && n < endOfSeconds {
		n *= 1000
	}
	return strconv.FormatInt(n, 10), true
}

package elastic

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

const (
	// spanAlways is how many ranks are read in a row rather than picked where all hits are scored again either way: the ids would be no
	// shorter.
	spanAlways = 50
	// mostPicked is how many are picked at most from a row that is no longer than that or not much longer than they are.
	mostPicked = 1000
)

// document is what tells a document from all others.
type document struct{ index, id string }

// pick says how to read ranks whose hits were judged: picked by a filter, or in a row.
func (r *reader) pick() error {
	q := r.q
	r.From, r.To = r.Ranks[0], r.Ranks[len(r.Ranks)-1]+1
	known := r.known()
	if known == nil {
		return nil
	}
	r.numbered = known.reading.numbered
	wide := r.To-r.From > max(spanAlways, 3*len(r.Ranks)) // else it is not worth to have hits scored again
	if !wide && !(q.narrows && len(r.Ranks) <= mostPicked) || !q.picks || !known.tellable(r.Ranks) {
		return nil
	}
	if r.numbered && !known.oneShard { // several shards share numbers
		if scope := &q.asked.Scope; wide && (scope.Chooses || scope.Transitive || scope.CollapsedTotals) { // they can be anywhere in the window
			return errUnnumbered
		}
		return nil
	}
	r.picked = true
	return nil
}

// known returns the hits that the ranks were chosen from, nil if there are none.
func (r *reader) known() *hits {
	known, _ := r.Known.(*hits)
	return known
}

// mostIndices is of how many indices hits are picked at most: each takes a clause, of which engines grant 1,024.
const mostIndices = 64

// tellable reports whether the ranks' hits can be named: they were read, and no other hit has the key of one of them. (Documents that
// were written with different routing can have one id between them.)
func (h *hits) tellable(ranks []int) bool {
	wanted, indices := make(map[string]int, len(ranks)), map[string]bool{}
	for _, rank := range ranks {
		if rank >= h.Len() {
			return false
		}
		wanted[h.keys[rank].id] = 0
		indices[h.document(rank).index] = true
	}
	for i := range h.keys {
		if n, ok := wanted[h.keys[i].id]; ok {
			if n > 0 {
				return false
			}
			wanted[h.keys[i].id] = 1
		}
	}
	return len(indices) <= mostIndices
}

// document returns which document a hit is of.
func (h *hits) document(at int) document {
	index, id, _ := strings.Cut(h.keys[at].id, "\x00")
	return document{index, id}
}

// only returns a filter for the documents of ranks: by their ids or, those of one shard, by their sequence numbers.
func (h *hits) only(ranks []int) []byte {
	if !h.reading.numbered {
		list := make([]document, len(ranks))
		for i, rank := range ranks {
			list[i] = h.document(rank)
		}
		return theseDocuments(list)
	}
	out := []byte(`{"terms":{"_seq_no":[`)
	for i, rank := range ranks {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, h.list[rank].at(h.list[rank].number)...)
	}
	return append(out, `]}}`...)
}

// pickable reports whether a search with a further filter after its query leaves the remaining hits as they were: with the
// same scores, in the same order, and nothing else of the reply needed. A list of neighbours, one that is rescored and one
// that ends early depend on what is collected, and so do hits in aggregations; one can't filter by the name of
// another cluster's index.
func (q *clientSearch) pickable() bool {
	return !q.has("rescore", "retriever", "profile", "terminate_after") && !q.hasParam("terminate_after") && !q.inherits() && !bytes.Contains(q.body, []byte(`"knn"`)) && !remote(q.asked.Target)
}

// narrowable reports whether a search that picks can do so within its query, so that no other hits are scored: each that is left has the
// score it had, since nothing else in the query counts. It can't where the query itself shows in a hit, as what is highlighted or
// explained does, where the engine takes the query at the top alone, or where it looks for one of its clauses there.
func (q *clientSearch) narrowable() bool {
	return !q.has("highlight", "explain") && !q.hasParam("q", "explain") &&
		!slices.ContainsFunc(topClauses, func(clause string) bool { return bytes.Contains(q.body, []byte(clause)) })
}

// topClauses are valid at the top of a query alone, or mean something else within another one.
var topClauses = []string{`"hybrid"`, `"percolate"`, `"neural"`, `"semantic"`, `"inner_hits"`}

// within returns the client's query, less all hits that a filter leaves out.
func within(client, filter []byte) []byte {
	if client == nil || string(client) == "null" {
		client = []byte(`{"match_all":{}}`)
	}
	return slices.Concat([]byte(`{"bool":{"must":[`), client, []byte(`],"filter":[`), filter, []byte(`]}}`))
}

// theseDocuments returns a filter for documents by their ids.
func theseDocuments(list []document) []byte {
	byIndex := map[string][]string{}
	var indices []string
	for _, d := range list {
		if byIndex[d.index] == nil {
			indices = append(indices, d.index)
		}
		byIndex[d.index] = append(byIndex[d.index], d.id)
	}
	out := []byte(`{"bool":{"should":[`)
	for i, index := range indices {
		if i > 0 {
			out = append(out, ',')
		}
		ids := slices.Concat([]byte(`{"ids":{"values":`), stringsOf(byIndex[index]), []byte(`}}`))
		out = append(jsonedit.AppendString(append(out, `{"bool":{"filter":[{"term":{"_index":`...), index), `}},`...)
		out = append(append(out, ids...), `]}}`...)
	}
	return append(out, `]}}`...)
}

// filteredToo returns a filter that lets through what the client's does, if there is one, and ours does as well.
func filteredToo(client, ours []byte) []byte {
	out := []byte(`{"bool":{"filter":[`)
	if client != nil && string(client) != "null" {
		out = append(append(out, client...), ',')
	}
	return append(append(out, ours...), `]}}`...)
}

// keepSort gives hits that were picked in a client's point in time the sort values that they were listed with. Elasticsearch tells ties apart
// there by the number of the shard among those that the search needs, which are fewer where a filter leaves an index out: in the client's
// next page, which needs them all, such a value would mean another shard.
func (r *reader) keepSort(list []hit) []hit {
	if !r.q.inPIT() {
		return list
	}
	for i := range list {
		own, listed := &list[i], &r.known().list[r.Ranks[i]]
		values := listed.at(listed.sort)
		if values == nil || canonical(values) == canonical(own.at(own.sort)) {
			continue
		}
		if raw, err := jsonedit.Set(own.raw, "sort", values); err == nil {
			r := jsonedit.NewReader(raw)
			*own = new(parsedReply).readHit(&r, raw)
		}
	}
	return list
}

// For a hit's id the engine unpacks its stored document, which takes several times as long as all else that a reading of sketches
// costs it. So where no one sees their ids, hits are identified by their sequence numbers. These are read as fast as the sketches. No
// two documents of a shard share them, and a document that changes gets new ones. Documents of several shards can share them, and
// even what they are sorted by: that two such change places between two readings, and nothing else does, is all that would not be
// seen. (Their scores would tell them apart too, but those of one document differ between copies of a shard.)

// errUnnumbered: hits came without sequence numbers, or are to be picked from several shards, which share numbers.
var errUnnumbered = errors.New("hits that can't be told by sequence numbers")

// Narrowed implements adapters.Search: with hits that are identified by their ids.
func (q *clientSearch) Narrowed(err error) adapters.Search {
	if !errors.Is(err, errUnnumbered) || !q.numbers {
		return nil
	}
	named := *q
	named.numbers = false
	if q.asked.Point != nil {
		named.asked.Point = &named
	}
	return &named
}

// asksNumbers reports whether the client itself asks for sequence numbers.
func (q *clientSearch) asksNumbers() bool {
	value, inURL := adapters.Last(q.params, "seq_no_primary_term")
	if !inURL {
		value = strings.Trim(string(jsonedit.Get(q.members, "seq_no_primary_term")), `"`)
	}
	return value == "true" || inURL && value == ""
}

// appendID appends what tells a hit from the others of its index.
func (r *reader) appendID(dst []byte, one *hit) ([]byte, error) {
	if r.numbered {
		number, term := one.at(one.number), one.at(one.term)
		if len(number) == 0 || number[0] == '-' || len(term) == 0 { // an index can be without them
			return nil, errUnnumbered
		}
		dst = append(append(append(dst, number...), '.'), term...)
		return append(append(dst, '.'), one.at(one.sort)...), nil
	}
	id, ok := jsonedit.Text(one.at(one.id))
	if !ok {
		return nil, errors.New("a hit without _id")
	}
	return append(dst, id...), nil
}
